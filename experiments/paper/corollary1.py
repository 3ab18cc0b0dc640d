"""Corollary 1: PatientBandits with the schedule α_t = log log t / log t beside fixed values, told no tail index."""

import math
import time
from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.readings import Runs, rows
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import regret_curves
from jaxbandit.plot.style import COLOURS

INSTANCES = {"a gap of 0.2": (0.6, 0.8), "a gap of 0.05": (0.5, 0.55)}
TAIL_INDEXES = (1.0, 0.3)
FIXED = (0.1, 0.3, 0.5)
SCHEDULE = "log log t / log t"
HORIZON = 100_000
SEEDS = 200


def policies() -> Mapping[str, jb.Policy]:
    fixed = {f"ᾱ = {alpha}": jb.PatientBandits(alpha=alpha) for alpha in FIXED}
    return {SCHEDULE: jb.PatientBandits(alpha=jb.corollary1_alpha)} | fixed


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (50 if options.quick else SEEDS)
    horizon = options.horizon or (10_000 if options.quick else HORIZON)
    results: dict[str, Runs] = {}
    with Progress("corollary1", len(INSTANCES) * len(policies()) * seeds) as progress:
        for name, means in INSTANCES.items():
            results[name] = {}
            instance = jb.Instance(reward=jb.Bernoulli(mean=means), delay=jb.Pareto(tail_index=TAIL_INDEXES))
            for label, policy in policies().items():
                run = jb.simulate_batch(options.seed, instance, policy, horizon=horizon, seeds=seeds)
                results[name][label] = jax.device_get(run)
                progress.done(seeds)
    settings = {"means": INSTANCES, "tail_indexes": TAIL_INDEXES, "horizon": horizon, "seeds": seeds}
    verdicts = [claim for name, runs in results.items() for claim in claims(name, runs)]
    save(
        "corollary1",
        draw(results, seeds),
        table(results),
        [conditions(horizon), *verdicts],
        settings | {"seed": options.seed},
        started,
        options,
    )


def draw(results: dict[str, Runs], seeds: int) -> Figure:
    figure, axes = plt.subplots(1, len(results) + 1, figsize=(16, 4), layout="constrained")
    for ax, (name, runs) in zip(axes[1:], results.items(), strict=True):
        regret_curves(runs, ax=ax, band="mean")
        ax.set_title(f"μ = {INSTANCES[name]}, α = {TAIL_INDEXES}; {seeds} runs")
    rounds = next(iter(results.values()))[SCHEDULE].rounds
    axes[0].semilogx(rounds, np.asarray(jax.vmap(jb.corollary1_alpha)(rounds)), label=SCHEDULE, color=COLOURS[0])
    for i, alpha in enumerate(FIXED, start=1):
        axes[0].axhline(alpha, color=COLOURS[i])
    axes[0].set(xlabel="round t", ylabel="ᾱ", ylim=0, title="the schedule and the fixed values")
    return figure


def table(results: dict[str, Runs]) -> list[dict[str, object]]:
    """Tidy rows: one an instance, policy and checkpoint."""
    return [
        {"mean_1": INSTANCES[name][0], "mean_2": INSTANCES[name][1], "policy": label} | row
        for name, runs in results.items()
        for label, run in runs.items()
        for row in rows(run)
    ]


def conditions(horizon: int) -> Claim:
    log_t = math.log(horizon)
    value, least = math.log(log_t) / log_t, min(TAIL_INDEXES)
    gap = max(means[1] - means[0] for means in INSTANCES.values())
    return Claim(
        f"the conditions of Corollary 1 hold at T = {horizon}",
        log_t > math.exp(math.e) and value <= least and 8 / gap <= log_t,
        f"T > e^(e^e) = {math.exp(math.exp(math.e)):.2g}: {log_t > math.exp(math.e)}; log log T / log T = {value:.3f} "
        f"<= min α = {least}: {value <= least}; 8/Δ <= log T: {8 / gap <= log_t}, for Δ = {gap:.1f} it takes T = "
        f"{math.exp(8 / gap):.0e}. The corollary does not follow from Theorem 2, so that no bound is checked",
    )


def claims(name: str, runs: Runs) -> list[Claim]:
    regret = {label: float(run.regret[:, -1].mean()) for label, run in runs.items()}
    best = min((label for label in regret if label != SCHEDULE), key=regret.__getitem__)
    told = f"ᾱ = {min(TAIL_INDEXES)}"
    listed = ", ".join(f"{value:.0f} ({label})" for label, value in regret.items())

    def against(label: str) -> tuple[jb.MeanCI, str]:
        difference = jax.device_get(jb.paired_difference(runs[SCHEDULE].regret[:, -1], runs[label].regret[:, -1]))
        return difference, f"{difference.mean:+.1f} ± {difference.standard_error:.1f} (paired)"

    (more_than_told, by), (more_than_best, by_best) = against(told), against(best)
    return [
        Claim(
            f"{name}: the schedule does at least as well as min α = {min(TAIL_INDEXES)}, which it is not told",
            bool(more_than_told.low <= 0),
            f"{by}; {listed}",
        ),
        Claim(
            f"{name}: the schedule does better than the best fixed value, {best}",
            bool(more_than_best.high < 0),
            by_best,
        ),
    ]
