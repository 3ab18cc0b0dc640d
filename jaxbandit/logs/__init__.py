"""From a conversion log to a decision: what delays and rates a log shows, and what it cannot tell.

``read`` and ``columns`` bring a log into rounds, ``lifetable`` counts it, ``families`` has the likelihood, ``newton``
and ``profile`` find its maxima and intervals, ``fit`` puts them together, ``tails`` reads tail indexes off it,
``bootstrap`` makes instances, ``report`` and ``plot`` say and show it. CSV files and dates as text need pandas (the
extra ``logs``), imported where they are read.
"""

from jaxbandit.logs.fit import ArmFit, FamilyFit, LogFit, fit_log
from jaxbandit.logs.read import Log, example_log, read_log

__all__ = ["ArmFit", "FamilyFit", "Log", "LogFit", "example_log", "fit_log", "read_log"]
