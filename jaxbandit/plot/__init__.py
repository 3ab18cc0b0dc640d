"""Figures from results. The only room that needs matplotlib (the extra ``plot``); import it as ``jaxbandit.plot``.

Every function draws into ``ax``, by default the current axes, and returns it. May import every room below it.
"""

from jaxbandit.plot.arms import pulls, survival
from jaxbandit.plot.grid import ranking
from jaxbandit.plot.regret import band, regret_curves
from jaxbandit.plot.rounds import timeline

__all__ = ["band", "pulls", "ranking", "regret_curves", "survival", "timeline"]
