"""Delayed conversions at low and high rates: D-UCB, DKL-UCB, Discarding, and a corrected Thompson sampling."""

import time
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.field.shared import apart, quotient, said
from experiments.readings import Runs, mean_at, rows
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import regret_curves

INSTANCES = {"low rates": (0.1, 0.05, 0.03), "high rates": (0.5, 0.4, 0.3)}
MEAN_DELAY = 500
WINDOW = 1000
HORIZON = 10_000
SEEDS = 200


def policies(window: int) -> Mapping[str, jb.Policy]:
    law = jb.Geometric(MEAN_DELAY)
    return {
        "D-UCB": jb.DUCB(window, law),
        "DKL-UCB": jb.DKLUCB(window, law),
        "Discarding": jb.Discarding(window),
        "CorrectedThompson": jb.CorrectedThompson(law, window),
    }


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (10 if options.quick else SEEDS)
    horizon = options.horizon or (3000 if options.quick else HORIZON)
    window = min(WINDOW, horizon // 2)
    results: dict[str, Runs] = {}
    with Progress("vernade2017", len(INSTANCES) * len(policies(window)) * seeds) as progress:
        for name, means in INSTANCES.items():
            instance = jb.Instance(jb.Bernoulli(means), jb.Geometric(MEAN_DELAY))
            results[name] = {}
            for label, policy in policies(window).items():
                progress.say(f"{name}, {label}")
                results[name][label] = jb.simulate_batch(options.seed, instance, policy, horizon=horizon, seeds=seeds)
                progress.done(seeds)
    settings = {"means": INSTANCES, "mean_delay": MEAN_DELAY, "window": window, "horizon": horizon, "seeds": seeds}
    save(
        "vernade2017",
        draw(results, seeds, window),
        [
            {"means": name, "policy": label} | row
            for name, runs in results.items()
            for label, run in runs.items()
            for row in rows(run)
        ],
        claims(results, window),
        settings | {"seed": options.seed},
        started,
        options,
    )


def draw(results: dict[str, Runs], seeds: int, window: int) -> Figure:
    figure, axes = plt.subplots(1, len(results), figsize=(12, 4.5), layout="constrained")
    for ax, (name, runs) in zip(axes, results.items(), strict=True):
        regret_curves(runs, ax=ax)
        ax.set_title(f"{name}: μ = {INSTANCES[name]}; {seeds} runs")
    figure.suptitle(f"Geometric delays, mean {MEAN_DELAY}, window m = {window} (means from memory, not from the paper)")
    return figure


def final(runs: Runs, label: str) -> np.ndarray:
    return np.asarray(runs[label].regret[:, -1], float)


def claims(results: dict[str, Runs], window: int) -> list[Claim]:
    low, high = (results[name] for name in INSTANCES)
    by_half, _ = apart(final(low, "DKL-UCB"), final(low, "D-UCB") / 2)
    shares = {name: quotient(final(runs, "DKL-UCB"), final(runs, "D-UCB")) for name, runs in results.items()}
    return [
        Claim(
            "at low rates DKL-UCB is far better than D-UCB: less than half its regret",
            bool(by_half.high < 0),
            f"{said(final(low, 'DKL-UCB'))} against {said(final(low, 'D-UCB'))}, {shares['low rates']} of it; at high "
            f"rates {said(final(high, 'DKL-UCB'))} against {said(final(high, 'D-UCB'))}, {shares['high rates']} of it",
        ),
        *(better_than_discarding(name, runs) for name, runs in results.items()),
        no_blind_phase(results, window),
        ours(results),
    ]


def better_than_discarding(name: str, runs: Runs) -> Claim:
    found = {label: apart(final(runs, label), final(runs, "Discarding")) for label in ("D-UCB", "DKL-UCB")}
    return Claim(
        f"{name}: D-UCB and DKL-UCB are better than Discarding, which waits",
        all(difference.high < 0 for difference, _ in found.values()),
        f"Discarding {said(final(runs, 'Discarding'))}; "
        + ", ".join(f"{label} {words} (paired)" for label, (_, words) in found.items()),
    )


def no_blind_phase(results: dict[str, Runs], window: int) -> Claim:
    shares = {}
    for name, runs in results.items():
        for label in ("D-UCB", "DKL-UCB", "Discarding"):
            uniform = window * (max(INSTANCES[name]) - float(np.mean(INSTANCES[name])))
            shares[name, label] = mean_at(runs[label].rounds, runs[label].regret, window) / uniform
    return Claim(
        f"Discarding begins with {window} rounds of linear regret, D-UCB and DKL-UCB do not",
        all((share > 0.95) == (label == "Discarding") for (_, label), share in shares.items()),
        f"regret at round {window} over that of uniform play: "
        + ", ".join(f"{share:.2f} ({label}, {name})" for (name, label), share in shares.items()),
    )


def ours(results: dict[str, Runs]) -> Claim:
    found = {
        name: apart(final(runs, "CorrectedThompson"), np.minimum(final(runs, "D-UCB"), final(runs, "DKL-UCB")))
        for name, runs in results.items()
    }
    return Claim(
        "(not in the paper) Thompson sampling with the same correction beats the better of the two, run by run",
        all(difference.high < 0 for difference, _ in found.values()),
        ", ".join(
            f"{name}: {said(final(results[name], 'CorrectedThompson'))}, {words}" for name, (_, words) in found.items()
        ),
    )
