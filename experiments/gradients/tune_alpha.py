"""PatientBandits' parameter on the instance of Figure 2, found by gradient steps from both ends."""

import time
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandit as jb
from experiments.gradients.ascent import Path, between, minimise, unbounded
from experiments.paper import fig2
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import band

STARTS = (0.03, 0.48)
SMOOTHING = 0.02  # ᾱ stays as far from 0 and from 1/2, above which nothing depends on it
LOW, HIGH = SMOOTHING, 0.5
SEEDS = 200
STEPS = 60
RATE = 0.15
GRID = np.linspace(LOW, HIGH, 25)
GRID_SEEDS = 5  # times those of a step
TOLERANCE = 0.3


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (50 if options.quick else SEEDS)
    horizon = options.horizon or fig2.HORIZON
    steps = 10 if options.quick else STEPS
    grid = GRID[::6] if options.quick else GRID

    def loss(x: Any, key: Any) -> Any:
        options = {"horizon": horizon, "seeds": seeds, "estimator": "crn", "smoothing": SMOOTHING}
        return jb.expected_regret(*fig2.build(between(LOW, HIGH, x[0])), key, **options)

    def final_regret(alpha: float) -> np.ndarray:
        """On seeds that no step has used."""
        count = GRID_SEEDS * seeds
        fresh = {"horizon": horizon, "seeds": count, "checkpoints": [horizon]}
        run = jb.simulate_batch(options.seed + 1, *fig2.build(alpha), **fresh)
        progress.done(count)
        return np.asarray(run.regret[:, -1])

    total = 3 * seeds * steps * len(STARTS) + (len(grid) + len(STARTS)) * GRID_SEEDS * seeds
    paths: dict[float, Path] = {}
    with Progress("tune_alpha", total) as progress:
        for start in STARTS:
            progress.say(f"from ᾱ = {start}")
            x = [unbounded(LOW, HIGH, start)]
            paths[start] = minimise(
                loss, x, seed=options.seed, steps=steps, rate=RATE, progress=progress, runs=3 * seeds
            )
        progress.say("the grid")
        alphas = {start: np.asarray(between(LOW, HIGH, path.parameters[:, 0])) for start, path in paths.items()}
        curve = np.stack([final_regret(alpha) for alpha in grid], axis=1)
        ends = {start: final_regret(alphas[start][-1]) for start in STARTS}

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    interval = jax.device_get(jb.mean_ci(curve))
    band(grid, interval, ax=left, label="grid", marker=".")
    for start in STARTS:
        left.plot(alphas[start][-1], ends[start].mean(), "o", label=f"found from ᾱ = {start}")
        right.plot(alphas[start], label=f"from ᾱ = {start}")
    left.set(xlabel="parameter ᾱ", ylabel=f"regret at T = {horizon}")
    right.set(xlabel="step", ylabel="ᾱ")
    left.legend()
    right.legend()
    rows = [
        {"start": "grid", "step": "", "alpha": alpha, "regret": interval.mean[j], "low": interval.low[j]}
        | {"high": interval.high[j], "seeds": seeds}
        for j, alpha in enumerate(grid)
    ] + [
        {"start": start, "step": step, "alpha": alphas[start][step], "regret": value, "low": value, "high": value}
        | {"seeds": seeds}
        for start, path in paths.items()
        for step, value in enumerate(path.value)
    ]
    settings = {"means": fig2.MEANS, "tail_indexes": fig2.TAIL_INDEXES, "horizon": horizon, "seeds": seeds}
    settings |= {"steps": steps, "rate": RATE, "smoothing": SMOOTHING, "seed": options.seed}
    found = {start: float(alphas[start][-1]) for start in STARTS}
    save("tune_alpha", figure, rows, claims(grid, curve, found, ends), settings, started, options)


def claims(
    grid: np.ndarray, curve: np.ndarray, found: dict[float, float], ends: dict[float, np.ndarray]
) -> list[Claim]:
    best = int(curve.mean(axis=0).argmin())
    minimum = f"best of the grid {curve[:, best].mean():.2f} at ᾱ = {grid[best]:.2f}"
    result = []
    for start, regret in ends.items():
        excess = jax.device_get(jb.paired_difference(regret, curve[:, best]))
        result.append(
            Claim(
                f"gradient steps from ᾱ = {start} end within {TOLERANCE} of the best regret on the grid",
                bool(excess.mean <= TOLERANCE),
                f"ᾱ = {found[start]:.3f}, regret {regret.mean():.2f}, {excess.mean:+.2f} ± {excess.standard_error:.2f} "
                f"(paired) from the {minimum}",
            )
        )
    at_03 = jax.device_get(jb.paired_difference(curve[:, int(np.abs(grid - 0.3).argmin())], curve[:, best]))
    result.append(
        Claim(
            "(the paper) the best ᾱ is about 0.3, the smaller tail index",
            bool(at_03.low <= 0),
            f"{minimum}; at 0.3 higher by {at_03.mean:.2f} ± {at_03.standard_error:.2f} (paired)",
        )
    )
    return result
