"""A labelled grid of runs, stored and resumable, on every device and on a cluster.

From the axes (``grid``) to blocks of runs (``block``, with sums that are ``exact``), to a ``store`` with its ``plan``
and the ``fingerprint`` of what made it, to ``labels`` and the ``result``; ``run`` has the public call, ``executors``
compute. May import the rooms up to ``engine``; the extra ``sweep`` is imported when it is called.
"""

from jaxbandit.sweeps.result import open_sweep
from jaxbandit.sweeps.run import sweep

__all__ = ["open_sweep", "sweep"]
