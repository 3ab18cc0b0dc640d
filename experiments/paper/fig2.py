"""Figure 2: regret of PatientBandits against its parameter, at T = 3000."""

import time

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandit as jb
from experiments.report import Claim, Options, save, sweep
from jaxbandit.plot import band

MEANS = (0.5, 0.55)
TAIL_INDEXES = (1.0, 0.3)
HORIZON = 3000
SEEDS = 400
ALPHAS = np.linspace(0.02, 0.5, 25)


def build(alpha: float) -> tuple[jb.Instance, jb.Policy]:
    instance = jb.Instance(reward=jb.Bernoulli(mean=MEANS), delay=jb.Pareto(tail_index=TAIL_INDEXES))
    return instance, jb.PatientBandits(alpha=alpha)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (100 if options.quick else SEEDS)
    horizon = options.horizon or HORIZON
    alphas = ALPHAS[::4] if options.quick else ALPHAS
    data = sweep("fig2", build, {"alpha": alphas}, options, horizon=horizon, seeds=seeds, checkpoints=[horizon])
    regret = data.final_regret.sel(policy="PatientBandits").transpose("seed", "alpha").to_numpy()
    uniform = float(jb.simulate(options.seed, build(0.0)[0], jb.Uniform(), horizon=horizon).regret[-1])

    interval = jax.device_get(jb.mean_ci(regret))
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    band(alphas, interval, ax=ax, label="PatientBandits", marker=".")
    ax.axhline(uniform, color="grey", ls="--", lw=1, label="uniform play")
    ax.set(xlabel="parameter ᾱ", ylabel=f"regret at T = {horizon}")
    ax.set_title(f"μ = {MEANS}, α = {TAIL_INDEXES}; {seeds} runs, 95 % bands")
    ax.legend()

    rows = [
        {"policy": "PatientBandits", "alpha": alphas[j], "round": horizon, "regret": interval.mean[j]}
        | {"low": interval.low[j], "high": interval.high[j], "seeds": seeds}
        for j in range(len(alphas))
    ]
    settings = {"means": MEANS, "tail_indexes": TAIL_INDEXES, "alphas": alphas, "horizon": horizon, "seeds": seeds}
    save("fig2", figure, rows, claims(alphas, regret, uniform), settings | {"seed": options.seed}, started, options)


def claims(alphas: np.ndarray, regret: np.ndarray, uniform: float) -> list[Claim]:
    mean = regret.mean(axis=0)
    best = int(mean.argmin())
    left = jax.device_get(jb.paired_difference(regret[:, 0], regret[:, best]))
    right = jax.device_get(jb.paired_difference(regret[:, -1], regret[:, best]))
    minimum = f"minimum {mean[best]:.1f} at ᾱ = {alphas[best]:.2f}"
    at_03 = int(np.abs(alphas - 0.3).argmin())
    later = jax.device_get(jb.paired_difference(regret[:, at_03], regret[:, best]))
    return [
        Claim(
            "the regret first decreases with ᾱ, then increases",
            bool(left.low > 0 and right.low > 0),
            f"{minimum}; above it by {left.mean:.2f} ± {left.standard_error:.2f} at ᾱ = {alphas[0]:.2f} and "
            f"{right.mean:.2f} ± {right.standard_error:.2f} at ᾱ = {alphas[-1]:.2f} (paired)",
        ),
        Claim(
            "the increase starts after approximately ᾱ = 0.3",
            bool(later.low <= 0 and right.low > 0),
            f"{minimum}; at ᾱ = {alphas[at_03]:.2f} the regret is already higher by "
            f"{later.mean:.2f} ± {later.standard_error:.2f} (paired)",
        ),
        Claim(
            "(not in the paper) PatientBandits does better than uniform play here",
            bool(mean[best] < uniform),
            f"{mean[best]:.1f} at best, uniform play {uniform:.1f}",
        ),
    ]
