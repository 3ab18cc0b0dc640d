"""What is read off regret curves, [seeds, C] at C rounds."""

from typing import Any

import jax
import numpy as np

import jaxbandit as jb

Runs = dict[str, jb.Run]
"""By policy."""


def rows(run: jb.Run) -> list[dict[str, object]]:
    """Tidy rows, one a checkpoint: mean regret with its confidence interval."""
    curve = jax.device_get(jb.mean_ci(run.regret))
    return [
        {"round": t, "regret": curve.mean[c], "low": curve.low[c], "high": curve.high[c], "seeds": len(run.regret)}
        for c, t in enumerate(run.rounds)
    ]


def mean_at(rounds: Any, regret: Any, t: float) -> float:
    """Mean regret at the checkpoint nearest to round t."""
    nearest = np.abs(np.asarray(rounds) - t).argmin()
    return float(np.asarray(regret)[:, nearest].mean())


def growth(rounds: Any, regret: Any) -> float:
    """Regret of the second half of the rounds over that of the first: 1 if it grows linearly, 0 if it stops."""
    half = mean_at(rounds, regret, float(rounds[-1]) / 2)
    return (mean_at(rounds, regret, float(rounds[-1])) - half) / half
