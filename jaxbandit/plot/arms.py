"""What is known arm by arm: how long rewards take, and how often an arm is pulled."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from jaxbandit import _checks
from jaxbandit.engine.run import Run
from jaxbandit.laws.base import DelayLaw
from jaxbandit.plot.style import arm_names, axes_or_current, colours, line_style, soft, text_size

POINTS = 500


def survival(
    law: DelayLaw,
    *,
    horizon: int = 1000,
    log: bool = True,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """``P(D > m)`` against m, one curve an arm: the share of rewards still out after m rounds.

    On logarithmic axes a Pareto tail is a straight line whose slope is minus its tail index.

    Args:
        law: of the delays, such as ``instance.delay``.
        horizon: the last m.
        log: both axes are logarithmic, from m = 1 on; else linear, from m = 0 on.
        names: of the arms.
        ax: where to draw; by default the current axes.

    Returns:
        The axes.

    Raises:
        TypeError: something other than a delay law.
        ValueError: laws for several problems, or another number of names than arms.
    """
    if not isinstance(law, DelayLaw):
        raise TypeError(f"survival: law must be a delay law such as Pareto, got {law!r}")
    if len(law.batch_shape) > 1:
        raise ValueError(f"survival: law must be of a single problem, got the shape {law.batch_shape}")
    horizon = _checks.whole_number("survival: horizon", horizon, 1, _checks.NEVER, "give the last number of rounds")
    grid = np.geomspace(1, horizon, POINTS) if log else np.linspace(0, horizon, POINTS)
    m = np.unique(np.round(grid).astype(np.int32))
    values = np.asarray(jax.vmap(law.survival)(jnp.asarray(m))).reshape(len(m), -1)
    labels = arm_names("survival", names, values.shape[1]) if law.batch_shape or names else [""]
    ax = axes_or_current(ax)
    for arm in range(values.shape[1]):
        ax.plot(m, values[:, arm], drawstyle="steps-post", label=labels[arm], **line_style(arm))
    if log:
        positive = values[values > 0]
        least = positive.min() / 2 if positive.size else 0.1
        ax.set_ylim(max(least, 0.1 / horizon), 1.5)  # what is rarer than that does not matter by then
        ax.set(xscale="log", yscale="log")
    else:
        ax.set_ylim(-0.03, 1.05)
    ax.set(xlabel="rounds m", ylabel="P(D > m)")
    if any(labels):
        ax.legend(fontsize=text_size(ax))
    return ax


def pulls(runs: Any, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """The share of each arm in the pulls of rounds 1..t, against t: the mean over the runs, as areas on each other.

    Args:
        runs: a result of ``simulate`` or ``simulate_batch``, or the dataset of ``sweep``, of which one cell and policy
            are selected: ``data.sel(delta=0.2, policy="UCB1")``.
        names: of the arms.
        ax: where to draw; by default the current axes.

    Returns:
        The axes.

    Raises:
        TypeError: runs that are neither.
        ValueError: a dataset of several cells or policies, or another number of names than arms.
    """
    if isinstance(runs, Run):
        rounds = np.asarray(runs.rounds)
        mean = np.asarray(runs.pulls, np.float64).reshape(-1, *np.shape(runs.pulls)[-2:]).mean(axis=0)
    elif hasattr(runs, "data_vars"):
        more = {name: n for name, n in runs.pulls_mean.sizes.items() if name not in ("round", "arm")}
        if more:
            raise ValueError(f"pulls: runs must be of one cell and policy, got {more}; select one, as in data.isel")
        rounds, mean = runs["round"].to_numpy(), runs.pulls_mean.transpose("round", "arm").to_numpy()
    else:
        raise TypeError(f"pulls: runs must be a Run or the dataset of sweep, got {type(runs).__name__}")
    labels = arm_names("pulls", names, mean.shape[1])
    ax = axes_or_current(ax)
    ax.stackplot(
        rounds,
        (mean / rounds[:, None]).T,
        labels=labels,
        colors=[soft(colour) for colour in colours(len(labels))],
        edgecolor="white",
        lw=0.3,
    )
    ax.set(xlabel="round t", ylabel="share of the pulls", xlim=(rounds[0], max(rounds[-1], rounds[0] + 1)), ylim=(0, 1))
    handles, found = ax.get_legend_handles_labels()
    ax.legend(  # beside the axes, as the areas fill them, in the order in which they lie on each other
        handles[::-1],
        found[::-1],
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        fontsize="small",
        frameon=False,
        ncols=-(-len(labels) // 16),
    )
    return ax
