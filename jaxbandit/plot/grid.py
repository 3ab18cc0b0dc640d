"""Which policy is best where, over two axes of a sweep."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from jaxbandit.plot.style import axes_or_current, colours, ink_on, short, soft
from jaxbandit.statistics.reports import finals_of, holm, p_values

MOST_TEXT = 14
"""On a side with more cells their numbers are left out."""

MOST_TICKS = 12

MOST_LETTERS = 24
"""Longer labels below the map stand upright."""

HATCH = "#444444"


class Ranks(NamedTuple):
    """Of every cell: mean regret [cells, policies], the best policy, and which others cannot be told from it."""

    mean: np.ndarray
    best: np.ndarray
    ties: np.ndarray


def ranking(
    data: Any, *, x: str | None = None, y: str | None = None, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Which policy has the least mean regret at the last checkpoint, and how much, over two axes of a sweep.

    A cell has the colour of its best policy, and its mean regret in numbers. It is hatched where another policy cannot
    be told from the best: the p-values of the paired differences to the best, adjusted for all of these in the cell
    (Holm), are not all below 1 - level. As the best is chosen by the same runs, the level is not exact.

    Args:
        data: the dataset of ``sweep``, with two axes left and at least two policies.
        x, y: their dimensions; by default the last and the first.
        level: see above.
        ax: where to draw; by default the current axes. The legend stands beside them: make room for it by
            ``plt.subplots(layout="constrained")``.

    Returns:
        The axes.

    Raises:
        TypeError: something other than the dataset of a sweep.
        ValueError: another number of axes, one policy, or runs that are still missing.
    """
    if not hasattr(data, "data_vars"):
        raise TypeError(f"ranking: data must be the dataset of sweep, got {type(data).__name__}")
    grid = [name for name in data.final_regret.dims if name not in ("policy", "seed")]
    if len(grid) != 2:
        raise ValueError(f"ranking: data must have two axes, got {grid}; select the others, as in data.isel")
    y, x = _sides(grid, y, x)
    if not 0 < level < 1:
        raise ValueError(f"ranking: level must lie between 0 and 1, got {level}; 0.95 is usual")
    finals = finals_of("ranking", data.transpose(y, x, ...), None)
    if len(finals.policies) < 2:
        raise ValueError(f"ranking: data must have at least two policies, got {finals.policies}")
    if np.isnan(finals.regret).any():
        raise ValueError(
            "ranking: data has runs that are still missing; finish the sweep, or select its finished cells"
        )
    ax = axes_or_current(ax)
    _draw(ax, ranks(finals.regret, level), finals.policies, (data.sizes[y], data.sizes[x]), level)
    for name, axis in ((x, ax.xaxis), (y, ax.yaxis)):
        labels = _ticks(data, name)
        at = range(0, len(labels), -(-len(labels) // MOST_TICKS))
        axis.set_ticks(list(at), [labels[i] for i in at])
        if name == x and sum(len(labels[i]) for i in at) > MOST_LETTERS:
            axis.set_tick_params(rotation=90)
    ax.set(xlabel=_named(data, x), ylabel=_named(data, y))
    ax.tick_params(length=0)
    return ax


def _sides(grid: list[str], y: str | None, x: str | None) -> tuple[str, str]:
    rows = y or (grid[0] if x != grid[0] else grid[1])
    columns = x or (grid[1] if rows != grid[1] else grid[0])
    if {rows, columns} != set(grid):
        raise ValueError(f"ranking: x and y must be the axes {grid}, got {columns!r} and {rows!r}")
    return rows, columns


def ranks(regret: np.ndarray, level: float) -> Ranks:
    """From the regret of all runs, [cells, policies, seeds]."""
    mean = regret.mean(axis=-1)
    best = mean.argmin(axis=1)
    ties = np.zeros(mean.shape, bool)
    for cell, least in enumerate(best):
        others = np.delete(np.arange(mean.shape[1]), least)
        ties[cell, others] = holm(p_values(regret[cell, others] - regret[cell, least])) >= 1 - level
    return Ranks(mean, best, ties)


def _draw(ax: Axes, found: Ranks, policies: list[str], shape: tuple[int, int], level: float) -> None:
    palette = [soft(colour) for colour in colours(len(policies))]
    best, tied = found.best.reshape(shape), found.ties.any(axis=1).reshape(shape)
    edges = [np.arange(n + 1) - 0.5 for n in reversed(shape)]
    ax.pcolormesh(
        *edges, best, cmap=ListedColormap(palette), vmin=-0.5, vmax=len(policies) - 0.5, edgecolors="white", lw=0.5
    )
    for row, column in np.argwhere(tied):
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="///", ec=HATCH, lw=0))
    if max(shape) <= MOST_TEXT:
        least = found.mean.min(axis=1).reshape(shape)
        for row, column in np.ndindex(shape):
            ink: dict[str, Any] = {
                "color": ink_on(palette[best[row, column]]),
                "fontsize": "small",
                "ha": "center",
                "va": "center",
            }
            box = {"fc": palette[best[row, column]], "ec": "none", "pad": 1.2}
            ax.text(column, row, short(least[row, column]), bbox=box, **ink)
    handles = [Patch(fc=palette[i], label=name) for i, name in enumerate(policies) if (best == i).any()]
    if tied.any():
        handles.append(Patch(fc="white", ec=HATCH, hatch="///", label=f"another is as good\n(at {100 * level:.4g} %)"))
    nowhere = [name for i, name in enumerate(policies) if not (best == i).any()]
    if nowhere:
        handles.append(Patch(fc="none", ec="none", label="nowhere: " + ",\n".join(nowhere)))
    title = "least mean regret" if max(shape) <= MOST_TEXT else "best policy"
    ax.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        alignment="left",
    )


def _ticks(data: Any, name: str) -> list[str]:
    along = [x for x in data.coords.values() if x.dims == (name,)]
    if not along:
        return [str(i) for i in range(data.sizes[name])]
    return [", ".join(map(short, values)) for values in zip(*(x.to_numpy() for x in along), strict=True)]


def _named(data: Any, name: str) -> str:
    along = [str(other) for other, x in data.coords.items() if x.dims == (name,)]
    return ", ".join(along) or name
