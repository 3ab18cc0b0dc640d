"""The gap and tail index that are worst for a policy, found by gradient steps, and checked on a grid."""

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxbandit as jb
from experiments.gradients.ascent import between, minimise, unbounded
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import band

WORSE_MEAN = 0.4
FIRST_TAIL_INDEX = 1.0
LEAST_TAIL_INDEX = 0.3  # Assumption 1: without a bound every policy's worst case is a reward that never comes
START = (0.1, 0.6)  # gap and tail index
LARGEST_GAP, LARGEST_TAIL_INDEX = 0.58, 3.0
HORIZON = 1000
SEEDS = 200
STEPS = 60
RATE = 0.15
GAPS = np.linspace(0.02, 0.58, 29)
POLICIES = {
    "PatientBandits ᾱ=0.3": jb.PatientBandits,
    "PatientBandits ᾱ=0.3, small bonuses": lambda alpha: jb.PatientBandits(alpha, bonus_scale=0.15, bias_scale=0.5),
}
MARGIN = 0.03


class Worst(NamedTuple):
    """The instance that was found, and the regret on fresh seeds: there, and on a grid of gaps at the least index."""

    gap: float
    tail_index: float
    regret: np.ndarray
    grid: np.ndarray


def instance(gap: Any, tail_index: Any) -> jb.Instance:
    return jb.Instance(
        reward=jb.Bernoulli(mean=jnp.stack([jnp.full_like(gap, WORSE_MEAN), WORSE_MEAN + gap])),
        delay=jb.Pareto(tail_index=jnp.stack([jnp.full_like(tail_index, FIRST_TAIL_INDEX), tail_index])),
    )


def runs_needed(seeds: int, steps: int, gaps: np.ndarray) -> int:
    return 3 * seeds * steps + (len(gaps) + 1) * 2 * seeds


def worst_case(
    policy: jb.Policy, *, horizon: int, seeds: int, steps: int, gaps: np.ndarray, seed: int, progress: Progress
) -> Worst:
    """By steps along the score, which needs no smoothing at the boundary."""

    def numbers(x: Any) -> tuple[Any, Any]:
        gap = between(0, LARGEST_GAP + 0.01, x[0])
        return gap, between(LEAST_TAIL_INDEX, LARGEST_TAIL_INDEX, x[1])

    def loss(x: Any, key: Any) -> Any:
        problem = instance(*numbers(x))
        return -jb.expected_regret(problem, policy, key, horizon=horizon, seeds=seeds, estimator="score")

    def final_regret(gap: float, tail_index: float) -> np.ndarray:
        problem = instance(jnp.asarray(gap, float), jnp.asarray(tail_index, float))
        run = jb.simulate_batch(seed + 1, problem, policy, horizon=horizon, seeds=2 * seeds, checkpoints=[horizon])
        progress.done(2 * seeds)
        return np.asarray(run.regret[:, -1])

    start = [
        unbounded(0, LARGEST_GAP + 0.01, START[0]),
        unbounded(LEAST_TAIL_INDEX, LARGEST_TAIL_INDEX, START[1]),
    ]
    path = minimise(loss, start, seed=seed, steps=steps, rate=RATE, progress=progress, runs=3 * seeds)
    gap, tail_index = (float(x) for x in numbers(path.parameters[-1]))
    grid = np.stack([final_regret(g, LEAST_TAIL_INDEX) for g in gaps], axis=1)
    return Worst(gap, tail_index, final_regret(gap, tail_index), grid)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (50 if options.quick else SEEDS)
    horizon = options.horizon or HORIZON
    steps = 15 if options.quick else STEPS
    gaps = GAPS[::4] if options.quick else GAPS
    found: dict[str, Worst] = {}
    with Progress("adversary", len(POLICIES) * runs_needed(seeds, steps, gaps)) as progress:
        for label, make in POLICIES.items():
            progress.say(label)
            found[label] = worst_case(
                make(LEAST_TAIL_INDEX),
                horizon=horizon, seeds=seeds, steps=steps, gaps=gaps, seed=options.seed, progress=progress,
            )  # fmt: skip

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    rows = []
    for label, worst in found.items():
        interval = jax.device_get(jb.mean_ci(worst.grid))
        band(gaps, interval, ax=ax, label=f"{label}, α₂ = {LEAST_TAIL_INDEX}", marker=".")
        ax.plot(worst.gap, worst.regret.mean(), "k*", ms=10)
        rows += [
            {"policy": label, "gap": gap, "tail_index": LEAST_TAIL_INDEX, "regret": interval.mean[j]}
            | {"low": interval.low[j], "high": interval.high[j], "seeds": seeds, "found_by": "grid"}
            for j, gap in enumerate(gaps)
        ]
        at = jax.device_get(jb.mean_ci(worst.regret))
        rows.append(
            {"policy": label, "gap": worst.gap, "tail_index": worst.tail_index, "regret": at.mean}
            | {"low": at.low, "high": at.high, "seeds": seeds, "found_by": "gradient steps"}
        )
    ax.set(xlabel="gap Δ", ylabel=f"regret at T = {horizon}", title="stars: found by gradient steps in Δ and α₂")
    ax.legend()
    settings = {"worse_mean": WORSE_MEAN, "least_tail_index": LEAST_TAIL_INDEX, "start": START, "horizon": horizon}
    settings |= {"seeds": seeds, "steps": steps, "rate": RATE, "seed": options.seed}
    all_claims = [claim for label, worst in found.items() for claim in claims(label, gaps, worst, horizon)]
    save("adversary", figure, rows, all_claims, settings, started, options)


def claims(label: str, gaps: np.ndarray, worst: Worst, horizon: int) -> list[Claim]:
    at = jax.device_get(jb.mean_ci(worst.regret))
    mean = worst.grid.mean(axis=0)
    best = int(mean.argmax())
    found = f"Δ = {worst.gap:.3f}, α₂ = {worst.tail_index:.3f}, regret {at.mean:.1f} ± {at.standard_error:.1f}"
    bound = horizon ** (1 - LEAST_TAIL_INDEX) / 8
    return [
        Claim(
            f"{label}: gradient steps find the worst gap, to {MARGIN:.0%} of its regret",
            bool(at.mean + 2 * at.standard_error >= (1 - MARGIN) * mean[best]),
            f"{found}; worst of the grid {mean[best]:.1f} at Δ = {gaps[best]:.2f}",
        ),
        Claim(
            f"{label}: the heaviest tail allowed is the worst",
            worst.tail_index < LEAST_TAIL_INDEX + 0.05,
            f"α₂ went from {START[1]} to {worst.tail_index:.3f}, allowed from {LEAST_TAIL_INDEX} on",
        ),
        Claim(
            f"{label}: its worst case is not below T^(1-α)/8 (Theorem 4)",
            bool(at.high >= bound),
            f"{at.mean:.1f} against {bound:.1f}",
        ),
    ]
