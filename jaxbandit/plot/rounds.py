"""One run, round by round."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jaxbandit._checks import NEVER
from jaxbandit.engine.traces import Trace
from jaxbandit.plot.style import BLUE, GREY, SKY, VERMILION, arm_names, axes_or_current, inches_high, legend_above

FEW_ROUNDS = 150
"""Up to so many rounds every pull is drawn."""

MOST_LINES = 500
"""Beyond, so many of an arm's pulls are drawn, evenly chosen."""

TOP, BOTTOM, FLIGHT, MOST = 0.36, -0.36, 0.06, 0.3
"""In the row of an arm: where rewards arrive, where pulls are made, and the area of those in flight."""


class Fate(NamedTuple):
    """Pulls by what has become of their reward by round T."""

    known: Bool[np.ndarray, " T"]
    censored: Bool[np.ndarray, " T"]
    out: Bool[np.ndarray, " T"]
    lost: Bool[np.ndarray, " T"]
    nothing: Bool[np.ndarray, " T"]


def fate(trace: Trace) -> Fate:
    """``known`` to the policy; ``censored``: it has arrived, but the policy does not take note; still ``out``;
    ``lost``; or there is ``nothing`` to come, a reward of 0 that does not announce itself."""
    rounds = np.arange(1, len(trace.arms) + 1)
    delays = np.asarray(trace.delays)
    known = np.asarray(trace.known) > 0
    nothing = ~known & (np.asarray(trace.rewards) == 0)
    rest = ~known & ~nothing
    lost = rest & (delays >= NEVER)
    late = rounds + np.maximum(delays, 1) > rounds[-1]
    return Fate(known, rest & ~lost & ~late, rest & ~lost & late, lost, nothing)


def timeline(trace: Trace, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Pulls and the arrivals of their rewards, arm by arm.

    Each arm has a row. A line leads from each pull, at the bottom of the row, up to the round in which its reward is
    known, at the top: a steep line is a short delay. Rewards still out after the last round leave on the right. Rewards
    of 0 that do not announce themselves are a grey dot, rewards that never arrive a cross.

    Above 150 rounds at most 500 lines an arm are drawn, evenly chosen, in the lower part of the row; the area in its
    upper part is the number of rewards in flight, whose largest value stands beside it.

    Args:
        trace: of one run, from ``trace`` or ``replay``; ``trace.head(80)`` is its beginning.
        names: of the arms; also arms that were never pulled get a row then.
        ax: where to draw; by default the current axes.

    Returns:
        The axes.

    Raises:
        TypeError: something that is not a trace.
        ValueError: traces of several runs, or more arms than names.
    """
    if not isinstance(trace, Trace):
        raise TypeError(
            f"timeline: trace must be a jaxbandit.Trace, got {type(trace).__name__}; that of seed i of a batch is "
            "jaxbandit.trace(jaxbandit.fold_in(key, i), instance, policy, horizon=...)"
        )
    if np.ndim(trace.arms) != 1:
        raise ValueError(
            f"timeline: trace must be of one run, got arms of shape {np.shape(trace.arms)}; "
            "take one, jax.tree.map(lambda x: x[0], trace)"
        )
    trace = jax.device_get(trace)
    num_arms = int(trace.arms.max()) + 1 if trace.scores is None else trace.scores.shape[1]
    num_arms = max(num_arms, len(names or ()))
    labels = arm_names("timeline", names, num_arms)
    ax = axes_or_current(ax)
    horizon, fates = len(trace.arms), fate(trace)
    few = horizon <= FEW_ROUNDS
    told = "\n{pulls} pulls\n{out} still out" if inches_high(ax) >= 0.6 * len(labels) else ": {pulls}, {out} out"
    for arm in range(num_arms):
        pulled = np.asarray(trace.arms) == arm
        if few:
            _lines(ax, trace, fates, pulled, arm, top=TOP)
            _points(ax, trace, fates, pulled, arm)
        else:
            _lines(ax, trace, fates, pulled & _evenly(pulled), arm, top=FLIGHT - 0.06)
            _in_flight(ax, trace, fates, pulled, arm)
        labels[arm] += told.format(pulls=pulled.sum(), out=(pulled & fates.out).sum())
    ax.set(xlim=(0, horizon + 1), ylim=(-0.5, len(labels) - 0.5), xlabel="round t")
    ax.set_yticks(range(len(labels)), labels, fontsize="medium" if inches_high(ax) >= 0.2 * len(labels) else "x-small")
    ax.tick_params(axis="y", length=0)
    for edge in range(1, len(labels)):
        ax.axhline(edge - 0.5, color=GREY, lw=0.5)
    legend_above(ax, _handles(fates, few))
    return ax


def _evenly(pulled: Bool[np.ndarray, " T"]) -> Bool[np.ndarray, " T"]:
    chosen = np.zeros_like(pulled)
    chosen[np.flatnonzero(pulled)[:: max(1, -(-int(pulled.sum()) // MOST_LINES))]] = True
    return chosen


def _arrivals(trace: Trace, fates: Fate) -> Int[np.ndarray, " T"]:
    """The round in which a line reaches the top: when the reward is known, or else arrives."""
    rounds = np.arange(1, len(trace.arms) + 1)
    return np.where(fates.known, trace.known, rounds + np.maximum(trace.delays, 1))


def _lines(ax: Axes, trace: Trace, fates: Fate, pulled: Bool[np.ndarray, " T"], arm: int, top: float) -> None:
    rounds, arrivals = np.arange(1, len(trace.arms) + 1), _arrivals(trace, fates)
    few = len(rounds) <= FEW_ROUNDS
    edge = len(rounds) + 1
    for which, colour, style in ((fates.known, BLUE, "-"), (fates.censored, GREY, ":"), (fates.out, VERMILION, "-")):
        start, stop = rounds[pulled & which], arrivals[pulled & which]
        end = np.minimum(stop, edge)
        height = arm + BOTTOM + (top - BOTTOM) * (end - start) / (stop - start)
        lines = np.stack([np.stack([start, np.full(len(start), arm + BOTTOM)], -1), np.stack([end, height], -1)], 1)
        ax.add_collection(
            LineCollection(
                list(lines),
                colors=colour,
                linestyles=style,
                lw=1.1 if few else 0.5,
                alpha=0.9 if few else 0.35,
                rasterized=not few,
            )
        )


def _points(ax: Axes, trace: Trace, fates: Fate, pulled: Bool[np.ndarray, " T"], arm: int) -> None:
    rounds = np.arange(1, len(trace.arms) + 1)
    size: dict[str, Any] = {"ms": 3.5, "ls": "", "clip_on": False}
    for which, colour, marker in (
        (fates.known, BLUE, "o"),
        (fates.censored, GREY, "o"),
        (fates.out, VERMILION, "o"),
        (fates.lost, VERMILION, "x"),
        (fates.nothing, "#cccccc", "o"),
    ):
        at = rounds[pulled & which]
        if len(at):  # of a line without points, which is not clipped, matplotlib believes that it lies in a corner
            ax.plot(at, np.full(len(at), arm + BOTTOM), marker, color=colour, **size)
    for which, face in ((trace.rewards > 0, BLUE), (trace.rewards == 0, "white")):
        at = trace.known[pulled & fates.known & which]
        if len(at):
            ax.plot(at, np.full(len(at), arm + TOP), "v", color=BLUE, mfc=face, **size)


def _in_flight(ax: Axes, trace: Trace, fates: Fate, pulled: Bool[np.ndarray, " T"], arm: int) -> None:
    """The number of the arm's rewards that have not arrived by the end of the round, after its pull."""
    count = in_flight(trace, pulled & ~fates.nothing & ~fates.lost, fates)
    most = max(int(count.max()), 1)
    base, height = arm + FLIGHT, MOST - FLIGHT
    rounds = np.arange(1, len(trace.arms) + 1)
    ax.fill_between(rounds, base, base + height * count / most, color=SKY, lw=0, step="mid")
    at = int(rounds[count.argmax()])
    side = "left" if at < 0.1 * len(rounds) else "right" if at > 0.9 * len(rounds) else "center"
    point: dict[str, Any] = {
        "xytext": (0, 1),
        "textcoords": "offset points",
        "ha": side,
        "va": "bottom",
        "fontsize": "x-small",
    }
    ax.annotate(f"at most {count.max()}", (at, base + height), **point)


def in_flight(trace: Trace, which: Bool[np.ndarray, " T"], fates: Fate) -> Int[np.ndarray, " T"]:
    """How many of the pulls of rounds 1..t arrive later than t."""
    horizon = len(trace.arms)
    change = np.zeros(horizon + 2, int)
    np.add.at(change, np.flatnonzero(which) + 1, 1)
    np.add.at(change, np.minimum(_arrivals(trace, fates)[which], horizon + 1), -1)
    return np.cumsum(change)[1:-1]


def _handles(fates: Fate, few: bool) -> list[Line2D | Patch]:
    lines: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("known", fates.known, {"color": BLUE}),
        ("arrives, not used", fates.censored, {"color": GREY, "ls": ":"}),
        ("still out", fates.out, {"color": VERMILION}),
    )
    found: list[Line2D | Patch] = [Line2D([], [], label=name, **style) for name, which, style in lines if which.any()]
    if not few:
        return [*found, Patch(color=SKY, label="in flight")]
    points: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("never arrives", fates.lost, {"color": VERMILION, "marker": "x"}),
        ("reward 0", fates.nothing, {"color": "#cccccc", "marker": "o"}),
    )
    return found + [Line2D([], [], label=name, ls="", ms=4, **style) for name, which, style in points if which.any()]
