"""PatientBandits' three constants learned over a prior of two-armed instances, and what they cost in the worst case."""

import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxbandit as jb
from experiments.gradients import adversary
from experiments.gradients.ascent import Path, between, minimise, unbounded
from experiments.report import Claim, Options, Progress, save

MEANS = (0.05, 0.95)  # uniform between
TAIL_INDEXES = (0.3, 1.0)  # either, with probability 1/2
HORIZON = 1000
INSTANCES = 64  # new ones in every step
SEEDS = 4  # runs of each
STEPS = 120
RATE = 0.1
SMOOTHING = 0.02
HELD_OUT = 4000
START = (1.0, 2.0, 0.3)  # the paper's constants, and the smaller tail index
DIRECTIONS = 3  # parameters
LEARNED = "learned"


def prior(key: Any, count: int) -> jb.Instance:
    for_means, for_tails = jax.random.split(key)
    means = jax.random.uniform(for_means, (count, 2), minval=MEANS[0], maxval=MEANS[1])
    heavy = jax.random.bernoulli(for_tails, 0.5, (count, 2))
    return jb.Instance(reward=jb.Bernoulli(mean=means), delay=jb.Pareto(tail_index=jnp.where(heavy, *TAIL_INDEXES)))


def constants(x: Any) -> tuple[Any, Any, Any]:
    """Bonus scale, bias scale and ᾱ: all at least a smoothing away from the ends of their ranges."""
    positive = SMOOTHING + jax.nn.softplus(x[:2])
    return positive[0], positive[1], between(SMOOTHING, 0.5 - SMOOTHING, x[2])


def policy(x: Any) -> jb.PatientBandits:
    bonus_scale, bias_scale, alpha = constants(x)
    return jb.PatientBandits(alpha, bonus_scale=bonus_scale, bias_scale=bias_scale)


def start() -> np.ndarray:
    above = np.array(START[:2]) - SMOOTHING
    return np.array([*np.log(np.expm1(above)), unbounded(SMOOTHING, 0.5 - SMOOTHING, START[2])])


def baselines() -> Mapping[str, jb.Policy]:
    return {
        "PatientBandits ᾱ=0.1": jb.PatientBandits(0.1),
        "PatientBandits ᾱ=0.3": jb.PatientBandits(0.3),
        "PatientBandits ᾱ=0.5": jb.PatientBandits(0.5),
        "the same deviation term alone": jb.PatientBandits(0.3, bias_scale=0.0),
    }


def held_out(policies: Mapping[str, jb.Policy], horizon: int, count: int, seed: int) -> dict[str, np.ndarray]:
    """Regret of every policy on the same fresh instances, one run each."""
    problems = prior(jax.random.key(seed + 2), count)
    keys = jax.random.split(jax.random.key(seed + 3), count)

    @jax.jit
    def all_runs(candidate: jb.Policy) -> Any:
        def one(now: Any) -> Any:
            means, tails, key = now
            problem = jb.Instance(jb.Bernoulli(means), jb.Pareto(tails))
            return jb.simulate(key, problem, candidate, horizon=horizon, checkpoints=[horizon]).regret[-1]

        numbers = (problems.reward.mean, problems.delay.tail_index, keys)  # pyright: ignore[reportAttributeAccessIssue]
        return jax.lax.map(one, numbers, batch_size=500)

    return {label: np.asarray(all_runs(candidate)) for label, candidate in policies.items()}


def main(options: Options) -> None:
    started = time.perf_counter()
    instances = options.seeds or (16 if options.quick else INSTANCES)
    horizon = options.horizon or HORIZON
    steps, count = (10, 200) if options.quick else (STEPS, HELD_OUT)
    gaps = adversary.GAPS[::4]

    def loss(x: Any, key: Any) -> Any:
        for_prior, for_runs = jax.random.split(key)
        options = {"horizon": horizon, "seeds": SEEDS, "estimator": "crn", "smoothing": SMOOTHING}
        return jb.expected_regret(prior(for_prior, instances), policy(x), for_runs, **options)

    runs = (2 * DIRECTIONS + 1) * instances * SEEDS
    worst_seeds, worst_steps = (20, 5) if options.quick else (adversary.SEEDS, adversary.STEPS)
    total = runs * steps + 5 * count + 2 * adversary.runs_needed(worst_seeds, worst_steps, gaps)
    with Progress("learned_index", total) as progress:
        progress.say("learning")
        path = minimise(loss, start(), seed=options.seed, steps=steps, rate=RATE, progress=progress, runs=runs)
        learned = policy(jnp.asarray(path.parameters[-1]))
        progress.say("held-out instances")
        regret = held_out({LEARNED: learned, **baselines()}, horizon, count, options.seed)
        progress.done(5 * count)
        worst = {}
        for label, candidate in ((LEARNED, learned), ("PatientBandits ᾱ=0.3", jb.PatientBandits(0.3))):
            progress.say(f"worst case, {label}")
            worst[label] = adversary.worst_case(
                candidate,
                horizon=horizon, seeds=worst_seeds, steps=worst_steps, gaps=gaps, seed=options.seed, progress=progress,
            )  # fmt: skip

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.plot(path.value)
    left.set(xlabel="step", ylabel=f"regret at T = {horizon} on the step's instances", yscale="log")
    for label, found in worst.items():
        right.plot(gaps, found.grid.mean(axis=0), ".-", label=f"{label}, α₂ = {adversary.LEAST_TAIL_INDEX}")
        right.plot(found.gap, found.regret.mean(), "k*", ms=10)
    right.set(xlabel="gap Δ", ylabel="regret", title="worst cases (stars)")
    right.legend()
    found = [float(x) for x in constants(jnp.asarray(path.parameters[-1]))]
    settings = {"means": MEANS, "tail_indexes": TAIL_INDEXES, "horizon": horizon, "seeds": instances, "steps": steps}
    settings |= {"rate": RATE, "smoothing": SMOOTHING, "seed": options.seed, "held_out": count, "constants": found}
    save(
        "learned_index",
        figure,
        table(path, regret, instances),
        claims(found, regret, worst),
        settings,
        started,
        options,
    )


def table(path: Path, regret: Mapping[str, np.ndarray], instances: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for label, values in regret.items():
        at = jax.device_get(jb.mean_ci(values))
        rows.append({"policy": label, "step": "", "regret": at.mean, "low": at.low, "high": at.high})
    rows += [
        {"policy": "in training", "step": step, "regret": value, "low": value, "high": value}
        for step, value in enumerate(path.value)
    ]
    return [row | {"seeds": instances} for row in rows]


def claims(found: list[float], regret: Mapping[str, np.ndarray], worst: Mapping[str, adversary.Worst]) -> list[Claim]:
    learned = regret[LEARNED]
    others = {
        label: jax.device_get(jb.paired_difference(x, learned)) for label, x in regret.items() if label != LEARNED
    }
    numbers = ", ".join(
        f"{label} {regret[label].mean():.1f} ({d.mean:+.1f} ± {d.standard_error:.1f})" for label, d in others.items()
    )
    highest = [jax.device_get(jb.mean_ci(max((w.regret, *w.grid.T), key=np.mean))) for w in worst.values()]
    return [
        Claim(
            "the learned constants do better on held-out instances than the paper's and than the deviation term alone",
            all(d.low > 0 for d in others.values()),
            f"bonus scale {found[0]:.2f}, bias scale {found[1]:.2f}, ᾱ = {found[2]:.2f}: {learned.mean():.2f} ± "
            f"{learned.std(ddof=1) / np.sqrt(len(learned)):.2f}; {numbers}",
        ),
        Claim(
            "they do at least as well in the worst case over gap and tail index, of steps and grid (μ₁ = 0.4, α₁ = 1)",
            bool(highest[0].low <= highest[1].high),
            ", ".join(
                f"{label}: {at.mean:.1f} ± {at.standard_error:.1f} (steps ended at Δ = {w.gap:.2f}, "
                f"α₂ = {w.tail_index:.2f})"
                for (label, w), at in zip(worst.items(), highest, strict=True)
            ),
        ),
    ]
