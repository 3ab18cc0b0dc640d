"""Regret against the round."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from jaxbandit.plot.style import axes_or_current, line_style, text_size
from jaxbandit.statistics import MeanCI, mean_ci, quantiles
from jaxbandit.statistics.reports import check_named_runs

Band = Literal["runs", "mean"]
LEVELS: dict[str, float] = {"runs": 0.9, "mean": 0.95}


class Curve(NamedTuple):
    """A policy's mean regret at ``rounds`` and the ends of its band, each of so many runs."""

    rounds: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int
    seeds_of_band: int


def band(x: Any, interval: MeanCI, *, ax: Axes, label: str, **line: Any) -> None:
    """A mean as a line, its confidence interval as a band of the same colour."""
    (drawn,) = ax.plot(x, interval.mean, label=label, **line)
    ax.fill_between(x, np.asarray(interval.low), np.asarray(interval.high), color=drawn.get_color(), alpha=0.2, lw=0)


def regret_curves(
    runs: Any,
    *,
    ax: Axes | None = None,
    band: Band = "runs",
    level: float | None = None,
    log: str = "",
    theory: Mapping[str, Callable[[Array | np.ndarray], Any]] | None = None,
) -> Axes:
    """Mean regret against the round, one curve a policy, with bands. The legend says what the bands are.

    Args:
        runs: results of ``simulate_batch`` by the label of their curve, or the dataset of ``sweep``, of which one cell
            is selected: ``data.sel(delta=0.2)``.
        ax: where to draw; by default the current axes.
        band: ``"runs"`` shows how runs spread: between quantiles, 90 % of the runs lie in it at each round.
            ``"mean"`` shows how well the mean is known: its 95 % confidence interval, often thinner than the line.
        level: another share than 0.9 or 0.95.
        log: which axes are logarithmic: ``"x"``, ``"y"`` or ``"xy"``.
        theory: further curves, functions of the rounds by label, dashed, such as
            ``{"Lai–Robbins": lambda t: jb.lai_robbins_slope(instance) * jnp.log(t)}``.

    Returns:
        The axes.

    Raises:
        TypeError: runs that are neither.
        ValueError: a single run, which has no mean; a dataset of several cells, or one that has not kept the quantiles
            of the band; or another word than the above for ``band`` or ``log``.
    """
    if band not in LEVELS:
        raise ValueError(f"regret_curves: band must be 'runs' or 'mean', got {band!r}")
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"regret_curves: log must be '', 'x', 'y' or 'xy', got {log!r}")
    level = LEVELS[band] if level is None else level
    if not 0 < level < 1:
        raise ValueError(f"regret_curves: level must lie between 0 and 1, got {level}; 0.95 is usual")
    curves = _of_dataset(runs, band, level) if hasattr(runs, "data_vars") else _of_runs(runs, band, level)
    ax = axes_or_current(ax)
    for i, (label, curve) in enumerate(curves.items()):
        style = line_style(i)
        ax.plot(curve.rounds, curve.mean, label=label, **style)
        edges = {"facecolor": to_rgba(style["color"], 0.15), "edgecolor": to_rgba(style["color"], 0.5), "lw": 0.6}
        ax.fill_between(curve.rounds, curve.low, curve.high, **edges)
    rounds = next(iter(curves.values())).rounds
    for i, (label, of) in enumerate((theory or {}).items()):
        values = np.broadcast_to(np.asarray(of(rounds.astype(float)), float), rounds.shape)
        ax.plot(rounds, values, label=label, color="black", lw=1, ls=("--", ":", "-.")[i % 3])
    _scales(ax, log, curves)
    ax.set(xlabel="round t", ylabel="regret")
    size = text_size(ax)
    ax.legend(title=_title(curves, band, level), fontsize=size, title_fontsize=size, alignment="left")
    return ax


def _scales(ax: Axes, log: str, curves: Mapping[str, Curve]) -> None:
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
        positive = np.concatenate([curve.mean[curve.mean > 0] for curve in curves.values()])
        if positive.size:  # a band that goes down to 0 must not set the scale
            ax.set_ylim(bottom=positive.min() / 2)


def _title(curves: Mapping[str, Curve], band: str, level: float) -> str:
    seeds = _from_to([curve.seeds for curve in curves.values()])
    fewer = [curve.seeds_of_band for curve in curves.values() if curve.seeds_of_band < curve.seeds]
    of = f"first {_from_to(fewer)} runs" if fewer else "runs"
    what = f"{100 * level:.4g} % of the {of}" if band == "runs" else f"{100 * level:.4g} % interval of the mean"
    return f"mean of {seeds} runs\nband: {what}"


def _from_to(counts: list[int]) -> str:
    return f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _of_runs(runs: Any, band: str, level: float) -> dict[str, Curve]:
    check_named_runs("regret_curves: runs", runs)
    curves: dict[str, Curve] = {}
    for label, run in runs.items():
        if np.ndim(run.regret) != 2:
            raise ValueError(
                f"regret_curves: run {label!r} must be a batch of seeds, got regret of shape {np.shape(run.regret)}; "
                "use simulate_batch"
            )
        mean = np.asarray(run.regret, np.float64).mean(axis=0)
        if band == "mean":
            mean, low, high, _ = map(np.asarray, mean_ci(run.regret, level=level))
        else:
            low, high = np.asarray(quantiles(run.regret, [(1 - level) / 2, (1 + level) / 2]))
        seeds = run.regret.shape[0]
        curves[label] = Curve(np.asarray(run.rounds), mean, low, high, seeds, seeds)
    return curves


def _of_dataset(data: Any, band: str, level: float) -> dict[str, Curve]:
    if "policy" not in data.dims:
        data = data.expand_dims("policy")
    grid = {name: n for name, n in data.regret_mean.sizes.items() if name not in ("policy", "round")}
    if grid:
        raise ValueError(
            f"regret_curves: runs must be of a single cell of the sweep, got the axes {grid}; select one, as in "
            f"data.isel({next(iter(grid))}=0), and draw the others into axes of their own"
        )
    low, high = _interval(data, level) if band == "mean" else _spread(data, level)
    rounds, seeds = data["round"].to_numpy(), data.sizes["seed"]
    kept = seeds if band == "mean" else min(seeds, int(data.attrs.get("curves", seeds)))
    curves: dict[str, Curve] = {}
    for name in data["policy"].to_numpy():
        mean, below, above = (x.sel(policy=name).to_numpy() for x in (data.regret_mean, low, high))
        curves[str(name)] = Curve(rounds, mean, below, above, seeds, kept)
    return curves


def _interval(data: Any, level: float) -> tuple[Any, Any]:
    from scipy.special import stdtrit

    half = data.regret_standard_error * stdtrit(data.sizes["seed"] - 1, (1 + level) / 2)
    return data.regret_mean - half, data.regret_mean + half


def _spread(data: Any, level: float) -> tuple[Any, Any]:
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    if "regret_curve" in data:
        found = data.regret_curve.quantile(ends, "curve").transpose("quantile", ...)
        return found[0], found[1]
    kept = data["quantile"].to_numpy()
    nearest = [int(np.abs(kept - q).argmin()) for q in ends]
    found = [data.regret_quantile.isel(quantile=at, drop=True) for at in nearest]
    if np.abs(kept[nearest] - ends).max() > 1e-6 or any(bool(x.isnull().any()) for x in found):
        raise ValueError(
            f"regret_curves: runs have not kept the quantiles {ends.round(6).tolist()} of every round, only "
            f"{kept.tolist()}; call sweep with quantiles= or curves=, or draw band='mean'"
        )
    return found[0], found[1]
