"""How the regret of Figure 3 changes with the better arm's mean and tail index: derivatives with bands."""

import time

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.paper import fig3
from experiments.report import Claim, Options, Progress, save

GAPS = fig3.GAPS[::2]
SEEDS = 200
SMOOTHING = 0.01  # of means and tail indexes; the smallest gap and the largest mean allow for it
Z = 1.96


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (20 if options.quick else SEEDS)
    horizon = options.horizon or fig3.HORIZON
    gaps = GAPS[::3] if options.quick else GAPS
    rows = []
    with Progress("sensitivity", len(gaps) * len(fig3.TAIL_INDEXES) * seeds) as progress:
        for tail_index in fig3.TAIL_INDEXES:
            for gap in gaps:
                found = jb.regret_and_gradient(
                    *fig3.build(gap, tail_index),
                    options.seed,
                    horizon=horizon,
                    seeds=seeds,
                    estimator="crn",
                    smoothing=SMOOTHING,
                    wrt=lambda instance, policy: (instance.reward.mean, instance.delay.tail_index),
                )
                rows.append(row(tail_index, gap, horizon, seeds, jax.device_get(found)))
                progress.done(seeds)
    settings = {"worse_mean": fig3.WORSE_MEAN, "gaps": gaps, "tail_indexes": fig3.TAIL_INDEXES, "horizon": horizon}
    settings |= {"seeds": seeds, "seed": options.seed, "estimator": "crn", "smoothing": SMOOTHING}
    save("sensitivity", draw(rows, horizon), rows, claims(rows), settings, started, options)


def row(tail_index: float, gap: float, horizon: int, seeds: int, found: jb.RegretGradient) -> dict[str, float]:
    half = Z * float(found.value_error)
    result = {"tail_index": tail_index, "gap": float(gap), "round": horizon, "seeds": seeds}
    result |= {"regret": float(found.value), "low": float(found.value) - half, "high": float(found.value) + half}
    for name, mean, error in zip(("mean", "tail_index"), found.gradient, found.gradient_error, strict=True):
        for arm in range(2):
            result[f"d_{name}_{arm + 1}"] = float(mean[arm])
            result[f"d_{name}_{arm + 1}_error"] = float(error[arm])
    return result


def draw(rows: list[dict[str, float]], horizon: int) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for tail_index in fig3.TAIL_INDEXES:
        mine = [row for row in rows if row["tail_index"] == tail_index]
        gaps = np.array([row["gap"] for row in mine])
        for ax, name in zip(axes, ("mean_2", "tail_index_2"), strict=True):
            slope, error = (np.array([row[f"d_{name}{end}"] for row in mine]) for end in ("", "_error"))
            (line,) = ax.plot(gaps, slope, ".-", label=f"α₂ = ᾱ = {tail_index}")
            ax.fill_between(gaps, slope - Z * error, slope + Z * error, color=line.get_color(), alpha=0.2, lw=0)
    for ax, what in zip(axes, ("dR / dμ₂", "dR / dα₂"), strict=True):
        ax.axhline(0, color="grey", lw=1)
        ax.set(xlabel="gap Δ", ylabel=f"{what} at T = {horizon}")
        ax.legend(fontsize=8)
    return figure


def claims(rows: list[dict[str, float]]) -> list[Claim]:
    """What the derivatives say about the curves of Figure 3, and whether they fit their differences."""
    heavier = [row for row in rows if row["d_tail_index_2"] > 3 * row["d_tail_index_2_error"]]
    lightest = max(row["d_tail_index_2"] / max(row["d_tail_index_2_error"], 1e-9) for row in rows)
    first = [row for row in rows if row["gap"] == min(r["gap"] for r in rows)]
    last = [row for row in rows if row["gap"] == max(r["gap"] for r in rows)]
    misfit = [
        abs(z) for tail_index in fig3.TAIL_INDEXES for z in misfits([r for r in rows if r["tail_index"] == tail_index])
    ]
    return [
        Claim(
            "the regret rises with the gap at its smallest and falls at its largest",
            all(r["d_mean_2"] > 2 * r["d_mean_2_error"] for r in first)
            and all(r["d_mean_2"] < -2 * r["d_mean_2_error"] for r in last),
            f"dR/dμ₂ at the ends, α₂ = {fig3.TAIL_INDEXES}: "
            + "; ".join(f"{r['d_mean_2']:.0f} ± {r['d_mean_2_error']:.0f}" for r in (*first, *last)),
        ),
        Claim(
            "a heavier tail of the better arm never lowers the regret (by more than 3 standard errors)",
            not heavier,
            f"dR/dα₂ is above 0 by that much at {len(heavier)} of {len(rows)} points; at most by {lightest:.1f}",
        ),
        Claim(
            "the derivatives fit the differences of the curve (Simpson's rule, 4 standard errors and its own)",
            bool(np.mean(np.array(misfit) > 4) <= 0.05),
            f"beyond it at {np.sum(np.array(misfit) > 4)} of {len(misfit)} steps of the grid",
        ),
    ]


def misfits(mine: list[dict[str, float]]) -> list[float]:
    """Of every step of the grid but the ends: difference of regrets less the integral of the derivative, in errors.

    The integral is Simpson's over pairs of steps, whose own error is taken for its distance to the trapezium rule.
    """
    result = []
    for left, middle, right in zip(mine, mine[1:], mine[2:], strict=False):
        width = right["gap"] - left["gap"]
        slopes = [r["d_mean_2"] for r in (left, middle, right)]
        simpson = width * (slopes[0] + 4 * slopes[1] + slopes[2]) / 6
        trapezium = width * (slopes[0] + 2 * slopes[1] + slopes[2]) / 4
        errors = [width * r["d_mean_2_error"] for r in (left, middle, right)] + [
            (r["high"] - r["low"]) / 4 for r in (left, right)
        ]
        own = abs(simpson - trapezium)
        result.append((right["regret"] - left["regret"] - simpson) / (np.linalg.norm(errors) + own))
    return result
