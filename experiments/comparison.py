"""Figures 4 and 5 share everything but the tail indexes: PatientBandits, D-UCB and UCB1 against the round."""

from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.report import Options, Progress
from jaxbandit.plot import regret_curves

MEANS = (0.6, 0.8)
ALPHAS = (0.5, 0.1)
WINDOWS = (10, 50, 100, 200)
BELIEVED_DELAY = 0.7  # tail index of the delay law that D-UCB is given
HORIZONS = (3000, 10000)  # the paper does not state it
SEEDS = 400

Runs = dict[str, jb.Run]


def policies() -> Mapping[str, jb.Policy]:
    believed = jb.Pareto(tail_index=BELIEVED_DELAY)
    patient = {f"PatientBandits ᾱ={alpha}": jb.PatientBandits(alpha=alpha) for alpha in ALPHAS}
    ducb = {f"D-UCB m={window}": jb.DUCB(window=window, cdf=believed, warmup="window") for window in WINDOWS}
    return patient | ducb | {"UCB1": jb.UCB1()}


def horizons(options: Options) -> tuple[int, ...]:
    return (options.horizon,) if options.horizon else HORIZONS


def seeds(options: Options) -> int:
    return options.seeds or (50 if options.quick else SEEDS)


def compare(name: str, tail_indexes: tuple[float, float], options: Options) -> dict[int, Runs]:
    """Every policy at every horizon."""
    instance = jb.Instance(reward=jb.Bernoulli(mean=MEANS), delay=jb.Pareto(tail_index=tail_indexes))
    results: dict[int, Runs] = {}
    with Progress(name, len(policies()) * seeds(options) * len(horizons(options))) as progress:
        for horizon in horizons(options):
            results[horizon] = {}
            for label, policy in policies().items():
                run = jb.simulate_batch(options.seed, instance, policy, horizon=horizon, seeds=seeds(options))
                results[horizon][label] = jax.device_get(run)
                progress.done(seeds(options))
    return results


def draw(results: dict[int, Runs], title: str) -> Figure:
    figure, axes = plt.subplots(1, len(results), figsize=(6 * len(results), 4), layout="constrained", squeeze=False)
    for ax, (horizon, runs) in zip(axes[0], results.items(), strict=True):
        regret_curves(runs, ax=ax)
        ax.set_title(f"T = {horizon}")
        ax.legend(fontsize=8)
    figure.suptitle(title)
    return figure


def table(results: dict[int, Runs], tail_indexes: tuple[float, float]) -> list[dict[str, object]]:
    """Tidy rows: one a horizon, policy and checkpoint."""
    rows: list[dict[str, object]] = []
    for horizon, runs in results.items():
        for label, run in runs.items():
            curve = jax.device_get(jb.mean_ci(run.regret))
            pulls = np.asarray(run.pulls).mean(axis=0)
            rows += [
                {"horizon": horizon, "policy": label, "round": run.rounds[c], "regret": curve.mean[c]}
                | {"low": curve.low[c], "high": curve.high[c], "pulls_1": pulls[c, 0], "pulls_2": pulls[c, 1]}
                | {"tail_index_1": tail_indexes[0], "tail_index_2": tail_indexes[1], "seeds": len(run.regret)}
                for c in range(len(run.rounds))
            ]
    return rows


def settings(options: Options, tail_indexes: tuple[float, float]) -> dict[str, object]:
    return {
        "means": MEANS,
        "tail_indexes": tail_indexes,
        "believed_delay": BELIEVED_DELAY,
        "horizons": horizons(options),
        "seeds": seeds(options),
        "seed": options.seed,
    }


def final(run: jb.Run) -> np.ndarray:
    """Regret of every run at the horizon."""
    return np.asarray(run.regret)[:, -1]


def mean_at(run: jb.Run, t: float) -> float:
    """Mean regret at the checkpoint nearest to round t."""
    rounds = np.asarray(run.rounds)
    return float(np.asarray(run.regret).mean(axis=0)[np.abs(rounds - t).argmin()])


def growth(run: jb.Run) -> float:
    """Regret of the second half of the rounds over that of the first: 1 if it grows linearly, 0 if it stops."""
    horizon = float(run.rounds[-1])
    half = mean_at(run, horizon / 2)
    return (mean_at(run, horizon) - half) / half
