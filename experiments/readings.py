"""What is read off regret curves, [seeds, C] at C rounds."""

from typing import Any

import numpy as np

import jaxbandit as jb

Runs = dict[str, jb.Run]
"""By policy."""


def mean_at(rounds: Any, regret: Any, t: float) -> float:
    """Mean regret at the checkpoint nearest to round t."""
    nearest = np.abs(np.asarray(rounds) - t).argmin()
    return float(np.asarray(regret)[:, nearest].mean())


def growth(rounds: Any, regret: Any) -> float:
    """Regret of the second half of the rounds over that of the first: 1 if it grows linearly, 0 if it stops."""
    half = mean_at(rounds, regret, float(rounds[-1]) / 2)
    return (mean_at(rounds, regret, float(rounds[-1])) - half) / half
