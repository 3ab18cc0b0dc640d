"""Nightly updates: the regret of Thompson sampling and of UCB1 when they learn every 1, 3, ..., 1000 rounds."""

import time
from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.field.shared import apart, measured, quotient
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import band

NUM_ARMS, BEST, GAP = 10, 0.5, 0.1
PERIODS = (1, 3, 10, 32, 100, 316, 1000)
HORIZON = 100_000
SEEDS = 120

Results = dict[tuple[str, int], np.ndarray]
"""By policy and period: the regret of every run."""


def policies() -> Mapping[str, jb.Policy]:
    return {"Thompson": jb.Thompson(), "UCB1": jb.UCB1()}


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (8 if options.quick else SEEDS)
    horizon = options.horizon or (4000 if options.quick else HORIZON)
    instance = jb.Instance(jb.Bernoulli([BEST] + [BEST - GAP] * (NUM_ARMS - 1)), jb.NoDelay())
    results: Results = {}
    with Progress("batches", len(policies()) * len(PERIODS) * seeds) as progress:
        for label, policy in policies().items():
            for period in PERIODS:
                progress.say(f"{label}, every {period} rounds")
                batched = jb.Batched(policy, period)
                run = jb.simulate_batch(
                    options.seed, instance, batched, horizon=horizon, seeds=seeds, checkpoints=[horizon]
                )
                results[label, period] = np.asarray(run.regret[:, -1], float)
                progress.done(seeds)
    settings = {"num_arms": NUM_ARMS, "best": BEST, "gap": GAP, "periods": PERIODS, "horizon": horizon, "seeds": seeds}
    save(
        "batches",
        draw(results, horizon, seeds),
        [{"policy": label, "period": period} | measured(regret) for (label, period), regret in results.items()],
        claims(results),
        settings | {"seed": options.seed},
        started,
        options,
    )


def draw(results: Results, horizon: int, seeds: int) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for label, marker in zip(policies(), "os", strict=True):
        interval = jax.device_get(jb.mean_ci(np.stack([results[label, period] for period in PERIODS], axis=1)))
        band(PERIODS, interval, ax=left, label=label, marker=marker)
    left.set(xscale="log", yscale="log", xlabel="rounds from one update to the next", ylabel=f"regret at T = {horizon}")
    left.legend()
    ratios = [quotient(results["UCB1", period], results["Thompson", period]) for period in PERIODS]
    right.errorbar(PERIODS, [r.value for r in ratios], [2 * r.standard_error for r in ratios], marker="o", capsize=3)
    right.axhline(1, color="grey", ls=":")
    right.set(xscale="log", xlabel="rounds from one update to the next", ylabel="regret of UCB1 over Thompson's")
    right.set_ylim(0)
    figure.suptitle(f"K = {NUM_ARMS}, best mean {BEST}, gap {GAP}; {seeds} runs; 95 % bands, right two standard errors")
    return figure


def claims(results: Results) -> list[Claim]:
    better = {p: apart(results["Thompson", p], results["UCB1", p]) for p in PERIODS}
    ratio = {p: quotient(results["UCB1", p], results["Thompson", p]) for p in PERIODS}
    added = {label: apart(results[label, PERIODS[-1]], results[label, 1])[1] for label in policies()}
    first, last = ratio[PERIODS[0]], ratio[PERIODS[-1]]
    rise, error = last.value - first.value, float(np.hypot(first.standard_error, last.standard_error))
    return [
        Claim(
            "(Chapelle and Li 2011, from a secondary source) Thompson sampling has less regret than UCB1 whatever the "
            "batch",
            all(difference.high < 0 for difference, _ in better.values()),
            "Thompson minus UCB1, paired: " + ", ".join(f"{words} (every {p})" for p, (_, words) in better.items()),
        ),
        Claim(
            "the ratio of the two grows with the batch: it is larger for the longest than for the shortest",
            bool(rise > 2 * error),
            f"{rise:+.2f} ± {error:.2f}; " + ", ".join(f"{value} (every {p})" for p, value in ratio.items()),
        ),
        Claim(
            "(not in the paper) updates every 100 rounds cost Thompson sampling less than half its regret with updates "
            "every round",
            bool(apart(results["Thompson", 100], 1.5 * results["Thompson", 1])[0].high < 0),
            f"{quotient(results['Thompson', 100], results['Thompson', 1])} times; every {PERIODS[-1]} rounds adds "
            + ", ".join(f"{words} ({label})" for label, words in added.items()),
        ),
    ]
