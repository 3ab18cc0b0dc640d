"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008), and names of arms."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#999999"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)


def colours(count: int) -> list[Any]:
    """So many colours: the palette, or shades from dark blue to yellow (cividis) where it does not suffice."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    return [plt.get_cmap("cividis")(i / (count - 1)) for i in range(count)]


def line_style(i: int) -> dict[str, Any]:
    """Of the i-th of several lines: colours repeat with other dashes."""
    return {"color": COLOURS[i % len(COLOURS)], "ls": ("-", "--", ":", "-.")[i // len(COLOURS) % 4]}


def ink_on(colour: Any) -> str:
    """Black or white, whichever can be read on this colour."""
    red, green, blue = colour[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.45 else "white"


def soft(colour: Any) -> tuple[float, float, float]:
    """A lighter shade, to fill areas with."""
    red, green, blue = (0.35 + 0.65 * part for part in to_rgb(colour))
    return red, green, blue


def axes_or_current(ax: Axes | None) -> Axes:
    """``ax``, else the current axes; where there are none, axes in a figure that makes room for what is beside them.

    Raises:
        TypeError: something that is not matplotlib's axes.
    """
    if isinstance(ax, Axes):
        return ax
    if ax is not None:
        raise TypeError(
            f"ax must be matplotlib axes, got {type(ax).__name__}; of figure, axes = plt.subplots(), pass axes"
        )
    if not plt.get_fignums():
        plt.figure(layout="constrained")
    return plt.gca()


def inches_high(ax: Axes) -> float:
    return ax.get_window_extent().height / ax.get_figure(root=True).dpi  # pyright: ignore[reportOptionalMemberAccess]


def text_size(ax: Axes) -> str:
    """Of a legend inside the axes, so that a small picture is not full of it."""
    return "small" if inches_high(ax) > 2.6 else "xx-small"


def arm_names(function: str, names: Sequence[str] | None, num_arms: int) -> list[str]:
    """One name an arm.

    Raises:
        TypeError: a single string.
        ValueError: more arms than names.
    """
    if names is None:
        return [f"arm {i}" for i in range(num_arms)]
    if isinstance(names, str):
        raise TypeError(f"{function}: names must be a list with one name an arm, got {names!r}")
    if len(names) < num_arms:
        raise ValueError(f"{function}: names must have one entry an arm, got {len(names)} for {num_arms} arms")
    return [str(name) for name in names]


def short(x: Any) -> str:
    """Three digits, or all before the point."""
    return f"{x:.0f}" if 1000 <= abs(x) < 1e6 else f"{x:.3g}"


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
