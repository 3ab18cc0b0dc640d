"""Which policy to run: candidates compared over many instances, and what is sure of the outcome.

``candidates`` are run, as a sweep; ``decision`` is the outcome in numbers and sentences, ``plot`` its picture. May
import the rooms up to ``sweeps``; the extras ``sweep`` and ``plot`` and pandas are imported when they are needed.
"""

from jaxbandit.decisions.candidates import Tuned, compare
from jaxbandit.decisions.decision import Decision

__all__ = ["Decision", "Tuned", "compare"]
