"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008), and names of arms."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#999999"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)


def axes_or_current(ax: Axes | None) -> Axes:
    return plt.gca() if ax is None else ax


def arm_names(function: str, names: Sequence[str] | None, num_arms: int) -> list[str]:
    """One name an arm.

    Raises:
        ValueError: more arms than names.
    """
    if names is None:
        return [f"arm {i}" for i in range(num_arms)]
    if len(names) < num_arms:
        raise ValueError(f"{function}: names must have one entry an arm, got {len(names)} for {num_arms} arms")
    return [str(name) for name in names]


def legend_above(ax: Axes, handles: Any) -> None:
    """A legend in one line above the axes, where no data can be under it."""
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(handles),
        frameon=False,
        fontsize="small",
        borderaxespad=0.2,
        handlelength=1.4,
        columnspacing=1.2,
    )
