"""A labelled grid of runs, stored and resumable, on every device and on a cluster.

From the axes (``grid``) to blocks of runs (``block``, with sums that are ``exact``), to a ``store``, to ``labels``;
``run`` has the public call. May import the rooms up to ``engine``; the extra ``sweep`` is imported when it is called.
"""

from jaxbandit.sweeps.run import sweep

__all__ = ["sweep"]
