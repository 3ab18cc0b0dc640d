"""A recurrent network learns to play a prior of delays, by the score of expected_regret and by PPO."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np
import optax
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

import jaxbandit as jb
from experiments.learning import ppo, problems
from experiments.learning.network import Recurrent
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot.style import BLUE, GREY, ORANGE, VERMILION

HORIZON = 100
UNITS = 16
INSTANCES = 128  # new ones in every step
SEEDS = 4  # runs of each, for the score
STEPS = 160
RATE = 0.05
LARGEST_GRADIENT = 20.0
UPDATES = 80
UPDATES_AT_ONCE = 5  # between two looks at the progress
HELD_OUT = 12000
TUNING = 2000
SCORE, PPO = "network, by the score", "network, by PPO"
LEARNED, TOLD_NOTHING, TOLD_LAWS = "learned on the prior", "told no delays", "told a delay law"

Regret = dict[str, dict[str, np.ndarray]]
"""On every held-out instance, by what a policy knows and by its name."""


class Learned(NamedTuple):
    """A network, the mean regret of the runs of every step of its training, and how many runs a step had."""

    network: Recurrent
    curve: np.ndarray
    runs: int


def by_score(seed: int, instances: int, steps: int, horizon: int, progress: Progress) -> Learned:
    """Down the gradient of the expected regret of ``Softmax`` of the network, over new instances in every step."""
    optimiser = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT), optax.adam(optax.cosine_decay_schedule(RATE, steps))
    )

    def regret(network: Recurrent, key: Array) -> Array:
        for_prior, for_runs = jax.random.split(key)
        several = problems.instances(for_prior, instances)
        policy = jb.Softmax(network, 1.0)
        return jb.expected_regret(several, policy, for_runs, horizon=horizon, seeds=SEEDS, estimator="score")

    @jax.jit
    def step(network: Recurrent, state: Any, key: Array) -> tuple[Recurrent, Any, Array]:
        value, gradient = jax.value_and_grad(regret)(network, key)
        change, state = optimiser.update(gradient, state)
        return eqx.apply_updates(network, change), state, value

    for_start, for_steps = jax.random.split(jax.random.key(seed))
    network = Recurrent(UNITS, for_start)
    state = optimiser.init(eqx.filter(network, eqx.is_array))
    curve = []
    for key in jax.random.split(for_steps, steps):
        network, state, value = step(network, state, key)
        curve.append(float(value))
        progress.done(instances * SEEDS)
    return Learned(network, np.array(curve), instances * SEEDS)


def by_ppo(seed: int, environments: int, updates: int, horizon: int, progress: Progress) -> Learned:
    for_start, for_updates = jax.random.split(jax.random.key(seed))
    now = ppo.start(UNITS, for_start, updates)
    curve = []
    for keys in jax.random.split(for_updates, updates).reshape(-1, UPDATES_AT_ONCE):
        now, regret = ppo.train(now, keys, updates=updates, horizon=horizon, environments=environments)
        curve.append(np.asarray(regret))
        progress.done(environments * len(keys))
    return Learned(now.agent.actor, np.concatenate(curve), environments)


def main(options: Options) -> None:
    started = time.perf_counter()
    instances = options.seeds or (8 if options.quick else INSTANCES)
    horizon = options.horizon or HORIZON
    steps, updates, count, tuning = (10, 10, 200, 50) if options.quick else (STEPS, UPDATES, HELD_OUT, TUNING)
    environments = ppo.MINIBATCHES * max(instances // 2, 1)
    for_tuning, for_test = jax.random.split(jax.random.key(options.seed + 2))

    total = steps * instances * SEEDS + updates * environments + 9 * count
    with Progress("learned_policy", total) as progress:
        progress.say("the score")
        learned = {SCORE: by_score(options.seed, instances, steps, horizon, progress)}
        progress.say("PPO")
        learned[PPO] = by_ppo(options.seed, environments, updates, horizon, progress)
        progress.say("PatientBandits is tuned")
        constants = problems.tuned_constants(for_tuning, tuning, horizon)
        networks = {label: softmax_of(found.network) for label, found in learned.items()}
        groups = {LEARNED: networks, TOLD_NOTHING: problems.told_nothing(constants), TOLD_LAWS: problems.told_laws()}
        regret: Regret = {group: {} for group in groups}
        for group, policies in groups.items():
            for label, policy in policies.items():
                progress.say(f"held-out instances, {label}")
                regret[group][label] = problems.regrets(policy, for_test, count, horizon)
                progress.done(count)

    settings = {"means": problems.MEANS, "tail_indexes": problems.TAIL_INDEXES, "loss": problems.LOSS}
    settings |= {"num_arms": problems.NUM_ARMS, "horizon": horizon, "seeds": instances, "held_out": count}
    settings |= {"steps": steps, "rate": RATE, "updates": updates, "units": UNITS, "seed": options.seed}
    settings |= {"environments": environments, "tuned_constants": constants}
    save(
        "learned_policy",
        picture(learned, regret, horizon),
        table(learned, regret, instances),
        claims(regret),
        settings,
        started,
        options,
    )


def softmax_of(network: Recurrent) -> problems.PolicyFor:
    return lambda _: jb.Softmax(network, 1.0)


def table(learned: Mapping[str, Learned], regret: Regret, seeds: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for group, policies in regret.items():
        for label, values in policies.items():
            at = jax.device_get(jb.mean_ci(values))
            rows.append({"policy": label, "group": group, "step": ""})
            rows[-1] |= {"regret": at.mean, "low": at.low, "high": at.high}
    for label, found in learned.items():
        rows += [
            {"policy": label, "group": "in training", "step": i, "regret": value, "low": value, "high": value}
            for i, value in enumerate(found.curve)
        ]
    return [row | {"seeds": seeds} for row in rows]


def picture(learned: Mapping[str, Learned], regret: Regret, horizon: int) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for (label, found), colour in zip(learned.items(), (BLUE, VERMILION), strict=True):
        left.plot(found.runs / 1000 * np.arange(len(found.curve)), found.curve, color=colour, lw=1.2, label=label)
    best, values = min(regret[TOLD_NOTHING].items(), key=lambda item: item[1].mean())
    left.axhline(values.mean(), color="black", lw=1, ls="--", label=f"{best} (held out)")
    left.set(xlabel="thousand runs learned from", ylabel=f"regret at T = {horizon}", title="on the step's instances")
    left.set_yscale("log")
    left.yaxis.set_major_locator(FixedLocator([5, 6, 7, 8, 10, 15, 20, 30]))
    left.yaxis.set_major_formatter(ScalarFormatter())
    left.yaxis.set_minor_locator(NullLocator())
    left.legend(frameon=False)
    dots(right, regret)
    right.set(xlabel=f"regret at T = {horizon}, with 95 % intervals", title="on held-out instances")
    return figure


def dots(ax: Axes, regret: Regret) -> None:
    """One line a policy, the best on top, coloured by what it knows."""
    together = {label: values.mean() for policies in regret.values() for label, values in policies.items()}
    ordered = sorted(together, key=lambda label: -together[label])
    for (group, policies), colour in zip(regret.items(), (BLUE, GREY, ORANGE), strict=True):
        height = [ordered.index(label) for label in policies]
        at = [jax.device_get(jb.mean_ci(values)) for values in policies.values()]
        mean = np.array([x.mean for x in at])
        away = np.array([[x.mean - x.low for x in at], [x.high - x.mean for x in at]])
        ax.errorbar(mean, height, xerr=away, fmt="o", ms=4, color=colour, capsize=3, label=group)
    for i, label in enumerate(ordered):
        ax.text(together[label], i + 0.22, f"{together[label]:.2f}", ha="center", va="bottom", fontsize="small")
    ax.set_yticks(range(len(ordered)), ordered)
    ax.set_ylim(-0.6, len(ordered) - 0.2)
    ax.set_xlim(0, 1.1 * max(together.values()))
    ax.grid(axis="x", alpha=0.3)
    ax.legend(frameon=False, loc="lower left")


def claims(regret: Regret) -> list[Claim]:
    by_hand, best = regret[TOLD_NOTHING], regret[TOLD_LAWS]
    strongest = min(best, key=lambda label: best[label].mean())
    result = []
    for label, values in regret[LEARNED].items():
        told_less = "less regret on held-out instances than every hand-made policy that is told nothing of their delays"
        result.append(below(values, by_hand, f"{label}: {told_less}"))
    for label, values in regret[LEARNED].items():
        told_more = "told no law, less regret than the best of those that are told one"
        result.append(below(values, {strongest: best[strongest]}, f"{label}: {told_more}"))
    return result


def below(values: np.ndarray, others: Mapping[str, np.ndarray], text: str) -> Claim:
    """By paired differences on the same instances and luck, whose 95 % intervals exclude 0."""
    own = jax.device_get(jb.mean_ci(values))
    differences = {other: jax.device_get(jb.paired_difference(x, values)) for other, x in others.items()}
    numbers = ", ".join(
        f"{other} {others[other].mean():.2f} ({d.mean:+.2f} ± {d.standard_error:.2f})"
        for other, d in differences.items()
    )
    holds = all(bool(d.low > 0) for d in differences.values())
    return Claim(text, holds, f"{own.mean:.2f} ± {own.standard_error:.2f}; {numbers}")
