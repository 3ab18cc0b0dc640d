"""Figures from results. The only module that needs matplotlib (the extra ``plot``); import it as ``jaxbandit.plot``."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from jaxbandit.engine.run import Run
from jaxbandit.statistics import MeanCI, mean_ci


def band(x: Any, interval: MeanCI, *, ax: Axes, label: str, **line: Any) -> None:
    """A mean as a line, its confidence interval as a band of the same colour."""
    (drawn,) = ax.plot(x, interval.mean, label=label, **line)
    ax.fill_between(x, np.asarray(interval.low), np.asarray(interval.high), color=drawn.get_color(), alpha=0.2, lw=0)


def regret_curves(runs: Mapping[str, Run], *, ax: Axes | None = None, level: float = 0.95) -> Axes:
    """Mean regret against the round, one curve for each batch of runs, with confidence bands.

    Args:
        runs: results of ``simulate_batch`` by the label of their curve.
        ax: where to draw; by default the current axes.
        level: of the confidence bands.

    Returns:
        The axes.

    Raises:
        ValueError: a single run, which has no mean.
    """
    for label, run in runs.items():
        if np.ndim(run.regret) != 2:
            raise ValueError(
                f"regret_curves: run {label!r} must be a batch of seeds, got regret of shape {np.shape(run.regret)}; "
                "use simulate_batch"
            )
    ax = plt.gca() if ax is None else ax
    for label, run in runs.items():
        band(run.rounds, mean_ci(run.regret, level=level), ax=ax, label=label)
    ax.set(xlabel="round t", ylabel="regret")
    ax.legend()
    return ax
