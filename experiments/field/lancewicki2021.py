"""Successive elimination against UCB1 under a fixed delay: who has less regret, and whom the delay costs more."""

import itertools
import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.field.shared import apart, said
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import band

NUM_ARMS = 20
LOWEST, HIGHEST = 0.25, 0.75
DELAYS = (0, 250)
HORIZON = 20_000
SEEDS = 60
POINTS = 50

Results = dict[tuple[str, int], np.ndarray]
"""By policy and delay: regret of every run at the checkpoints, [seeds, C]."""


def policies() -> Mapping[str, jb.Policy]:
    return {"SuccessiveElimination": jb.SuccessiveElimination(), "Delayed-UCB1": jb.DelayedUCB1()}


@eqx.filter_jit
def curves(keys: Any, delay: int, policy: jb.Policy, horizon: int, rounds: tuple[int, ...]) -> Float[Array, "seeds C"]:
    """Regret, one run a key, each on an instance of its own."""

    def run(key: Array) -> Array:
        of_instance, of_run = jax.random.split(key)
        means = jax.random.uniform(of_instance, (NUM_ARMS,), minval=LOWEST, maxval=HIGHEST)
        instance = jb.Instance(jb.Bernoulli(means), jb.Constant(delay))
        return jb.simulate(of_run, instance, policy, horizon=horizon, checkpoints=rounds).regret

    return jax.vmap(run)(keys)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (16 if options.quick else SEEDS)
    horizon = options.horizon or (4000 if options.quick else HORIZON)
    rounds = tuple(np.unique(np.linspace(1, horizon, POINTS, dtype=int)).tolist())
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(options.seed), i))(jnp.arange(seeds))
    results: Results = {}
    with Progress("lancewicki2021", len(policies()) * len(DELAYS) * seeds) as progress:
        for (label, policy), delay in itertools.product(policies().items(), DELAYS):
            progress.say(f"{label}, delay {delay}")
            results[label, delay] = np.asarray(curves(keys, jnp.int32(delay), policy, horizon, rounds), float)
            progress.done(seeds)
    rows = [
        {"policy": label, "delay": delay, "round": t}
        | {"regret": interval.mean[c], "low": interval.low[c], "high": interval.high[c], "seeds": seeds}
        for (label, delay), regret in results.items()
        for interval in [jax.device_get(jb.mean_ci(regret))]
        for c, t in enumerate(rounds)
    ]
    settings = {"num_arms": NUM_ARMS, "means": (LOWEST, HIGHEST), "delays": DELAYS, "horizon": horizon, "seeds": seeds}
    save(
        "lancewicki2021",
        draw(results, rounds, seeds),
        rows,
        claims(results, horizon),
        settings | {"seed": options.seed},
        started,
        options,
    )


def draw(results: Results, rounds: tuple[int, ...], seeds: int) -> Figure:
    figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    for i, label in enumerate(policies()):
        for delay, style in zip(DELAYS, (":", "-"), strict=True):
            interval = jax.device_get(jb.mean_ci(results[label, delay]))
            band(rounds, interval, ax=ax, label=f"{label}, delay {delay}", color=f"C{i}", ls=style)
    ax.set(xlabel="round t", ylabel="regret", ylim=0)
    ax.legend()
    ax.set_title(
        f"K = {NUM_ARMS}, means uniform on [{LOWEST}, {HIGHEST}], drawn for each of {seeds} runs; 95 % bands\n"
        "(setting and claim from memory, not checked in the paper)",
        fontsize=10,
    )
    return figure


def claims(results: Results, horizon: int) -> list[Claim]:
    elimination, ucb = policies()
    none, late = DELAYS
    final = {cell: regret[:, -1] for cell, regret in results.items()}
    difference, words = apart(final[elimination, late], final[ucb, late])
    cost = {label: final[label, late] - final[label, none] for label in policies()}
    cheaper, by = apart(cost[elimination], cost[ucb])
    return [
        Claim(
            f"(Lancewicki et al. 2021, from memory) under a fixed delay of {late} successive elimination has less "
            "regret than UCB1 on settled feedback",
            bool(difference.high < 0),
            f"{said(final[elimination, late])} against {said(final[ucb, late])} at T = {horizon}, {words} (paired)",
        ),
        Claim(
            "(not from the paper) the delay costs successive elimination less than UCB1",
            bool(cheaper.high < 0),
            f"{said(cost[elimination])} against {said(cost[ucb])}, {by}; without delay "
            f"{said(final[elimination, none])} and {said(final[ucb, none])}",
        ),
    ]
