"""Figures 4 and 5 share everything but the tail indexes: PatientBandits, D-UCB and UCB1 against the round."""

from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments import readings
from experiments.report import Options, sweep
from jaxbandit.plot import band

MEANS = (0.6, 0.8)
ALPHAS = (0.5, 0.1)
WINDOWS = (10, 50, 100, 200)
BELIEVED_DELAY = 0.7  # tail index of the delay law that D-UCB is given
HORIZONS = (3000, 10000)  # the paper does not state it
SEEDS = 400

Runs = xr.Dataset


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

    def build() -> tuple[jb.Instance, Mapping[str, jb.Policy]]:
        return jb.Instance(reward=jb.Bernoulli(mean=MEANS), delay=jb.Pareto(tail_index=tail_indexes)), policies()

    count = seeds(options)
    return {
        horizon: sweep(f"{name}-T{horizon}", build, {}, options, horizon=horizon, seeds=count, curves=count)
        for horizon in horizons(options)
    }


def draw(results: dict[int, Runs], title: str) -> Figure:
    figure, axes = plt.subplots(1, len(results), figsize=(6 * len(results), 4), layout="constrained", squeeze=False)
    for ax, (horizon, runs) in zip(axes[0], results.items(), strict=True):
        for label in policies():
            band(runs["round"], jb.mean_ci(curves(runs, label)), ax=ax, label=label)
        ax.set(xlabel="round t", ylabel="regret", title=f"T = {horizon}")
        ax.legend(fontsize=8)
    figure.suptitle(title)
    return figure


def table(results: dict[int, Runs], tail_indexes: tuple[float, float]) -> list[dict[str, object]]:
    """Tidy rows: one a horizon, policy and checkpoint."""
    rows: list[dict[str, object]] = []
    for horizon, runs in results.items():
        for label in policies():
            curve = jax.device_get(jb.mean_ci(curves(runs, label)))
            pulls = runs.pulls_mean.sel(policy=label).to_numpy()
            rows += [
                {"horizon": horizon, "policy": label, "round": t, "regret": curve.mean[c]}
                | {"low": curve.low[c], "high": curve.high[c], "pulls_1": pulls[c, 0], "pulls_2": pulls[c, 1]}
                | {"tail_index_1": tail_indexes[0], "tail_index_2": tail_indexes[1], "seeds": runs.sizes["seed"]}
                for c, t in enumerate(rounds(runs))
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


def curves(runs: Runs, label: str) -> np.ndarray:
    """Regret of every run of a policy, [seeds, C]."""
    return runs.regret_curve.sel(policy=label).to_numpy()


def final(runs: Runs, label: str) -> np.ndarray:
    """Regret of every run at the horizon."""
    return runs.final_regret.sel(policy=label).to_numpy()


def rounds(runs: Runs) -> np.ndarray:
    return runs["round"].to_numpy()


def mean_at(runs: Runs, label: str, t: float) -> float:
    return readings.mean_at(rounds(runs), curves(runs, label), t)


def growth(runs: Runs, label: str) -> float:
    return readings.growth(rounds(runs), curves(runs, label))
