"""Delay adds to the regret of UCB1 and does not multiply it: at most the outstanding feedback times the gap."""

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.field.shared import apart, measured
from experiments.report import Claim, Options, Progress, save
from jaxbandit.plot import band

MEANS = (0.3, 0.5, 0.7)
MEAN_DELAYS = (1, 10, 100, 300, 1000)
HORIZON = 10_000
SEEDS = 40

Results = dict[tuple[str, int], "Found"]
"""By delay law and mean delay."""


class Found(NamedTuple):
    """Of every run: regret, and the largest number of outstanding feedbacks of each arm."""

    regret: Float[Array, " seeds"]
    outstanding: Int[Array, "seeds K"]


def laws() -> Mapping[str, Callable[[int], jb.DelayLaw]]:
    return {
        "constant": jb.Constant,
        "geometric": lambda mean: jb.Geometric(float(mean)),
        "uniform": lambda mean: jb.DiscreteUniform(0, 2 * mean),
    }


def gaps() -> np.ndarray:
    return max(MEANS) - np.array(MEANS)


@eqx.filter_jit
def played(keys: Any, delay: jb.DelayLaw, horizon: int) -> Found:
    """Delayed-UCB1, one run a key: regret and outstanding feedback."""
    instance = jb.Instance(jb.Bernoulli(MEANS), delay)

    def run(key: Array) -> Found:
        trace = jb.trace(key, instance, jb.DelayedUCB1(), horizon=horizon)
        arms = jax.nn.one_hot(trace.arms, len(MEANS), dtype=jnp.int32)
        return Found(regret(arms), most_outstanding(arms, trace.delays))

    return jax.vmap(run)(keys)


def regret(arms: Int[Array, "T K"]) -> Float[Array, ""]:
    return jnp.sum(jnp.sum(arms, axis=0) * jnp.asarray(gaps(), jnp.float32))


def most_outstanding(arms: Int[Array, "T K"], delays: Int[Array, " T"]) -> Int[Array, " K"]:
    """The largest number of pulls of each arm that have not been heard of when a round begins, over rounds 1..T.

    That of round s is heard of before round s + max(D, 1).
    """
    horizon = len(delays)
    heard = jnp.minimum(jnp.arange(horizon) + jnp.maximum(delays, 1), horizon)
    by_round = jnp.zeros((horizon + 1, arms.shape[1]), arms.dtype).at[heard].add(arms)[:horizon]
    before = jnp.cumsum(arms, axis=0) - arms
    return jnp.max(before - jnp.cumsum(by_round, axis=0), axis=0)


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (10 if options.quick else SEEDS)
    horizon = options.horizon or (2000 if options.quick else HORIZON)
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(options.seed), i))(jnp.arange(seeds))
    results: Results = {}
    cells = [*itertools.product(laws(), MEAN_DELAYS)]
    with Progress("joulani2013", (len(cells) + 1) * seeds) as progress:
        undelayed = jax.device_get(played(keys, jb.NoDelay(), horizon))
        for law, mean in cells:
            progress.say(f"{law}, mean {mean}")
            progress.done(seeds)
            results[law, mean] = jax.device_get(played(keys, laws()[law](mean), horizon))
        progress.done(seeds)
    rows = [
        {"law": law, "mean_delay": mean}
        | measured(found.regret)
        | {f"outstanding_{i + 1}": x for i, x in enumerate(found.outstanding.mean(axis=0))}
        | {"price": price(found), "bound": bound(horizon) + price(found)}
        for (law, mean), found in {("none", 0): undelayed, **results}.items()
    ]
    save(
        "joulani2013",
        draw(results, undelayed, horizon, seeds),
        rows,
        claims(results, undelayed, horizon),
        {"means": MEANS, "mean_delays": MEAN_DELAYS, "horizon": horizon, "seeds": seeds, "seed": options.seed},
        started,
        options,
    )


def price(found: Found) -> float:
    """``sum over arms of gap E[G*]``."""
    return float(found.outstanding.mean(axis=0) @ gaps())


def bound(horizon: int) -> float:
    """Theorem 7 without its delays: ``sum over gaps > 0 of 8 log T / gap + 3.5 gap``."""
    worse = gaps()[gaps() > 0]
    return float(np.sum(8 * np.log(horizon) / worse + 3.5 * worse))


def draw(results: Results, undelayed: Found, horizon: int, seeds: int) -> Figure:
    figure, axes = plt.subplots(1, len(laws()), figsize=(13, 4.5), layout="constrained", sharey=True)
    base = float(undelayed.regret.mean())
    for ax, law in zip(axes, laws(), strict=True):
        found = [results[law, mean] for mean in MEAN_DELAYS]
        interval = jax.device_get(jb.mean_ci(np.stack([x.regret for x in found], axis=1)))
        band(MEAN_DELAYS, interval, ax=ax, label="Delayed-UCB1", marker="o")
        ax.axhline(base, color="C0", ls=":", label="without delay")
        prices = np.array([price(x) for x in found])
        ax.plot(MEAN_DELAYS, base + prices, color="C1", ls="--", marker="s", label="without delay + Σ Δ E[G*]")
        ax.plot(MEAN_DELAYS, bound(horizon) + prices, color="black", ls="-.", marker="^", label="Theorem 7's bound")
        ax.set(xscale="log", xlabel="mean delay", ylim=0, title=f"{law} delays")
    axes[0].set_ylabel(f"regret at T = {horizon}")
    axes[0].legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, 0.66))
    figure.suptitle(f"μ = {MEANS}; {seeds} runs, 95 % bands")
    return figure


def claims(results: Results, undelayed: Found, horizon: int) -> list[Claim]:
    share = {cell: x.regret.mean() / (bound(horizon) + price(x)) for cell, x in results.items()}
    nearest = max(share, key=share.__getitem__)
    added = {cell: apart(x.regret, undelayed.regret + x.outstanding @ gaps()) for cell, x in results.items()}
    most = {cell: apart(x.regret, undelayed.regret)[1] for cell, x in results.items() if cell[1] == max(MEAN_DELAYS)}
    over = [cell for cell, (difference, _) in added.items() if difference.low > 0]
    waiting = {cell: x.outstanding.mean(axis=0).max() / (lemma2(horizon, cell[1]) + 1) for cell, x in results.items()}
    fullest = max(waiting, key=waiting.__getitem__)
    return [
        Claim(
            "Theorem 7: the regret of UCB1 on settled feedback is at most the sum over gaps Δ of 8 log T / Δ + 3.5 Δ, "
            "plus that of Δ E[G*]",
            bool(max(share.values()) < 1),
            f"at most {share[nearest]:.3f} of it ({nearest[0]}, mean {nearest[1]}), over {len(share)} laws with means "
            f"from {min(MEAN_DELAYS)} to {max(MEAN_DELAYS)}; G* is measured",
        ),
        Claim(
            "delay adds and does not multiply: regret is at most that without delay plus the sum of Δ E[G*]",
            not over,
            f"without delay {undelayed.regret.mean():.1f}; mean delay {max(MEAN_DELAYS)} adds "
            + ", ".join(f"{words} of {price(results[cell]):.1f} ({cell[0]})" for cell, words in most.items())
            + f"; surely more in {len(over)} of {len(added)} laws",
        ),
        Claim(
            "Lemma 2: E[G*] <= E[D] + 2 log T + 2 sqrt(E[D] log T) + 1 for every arm",
            bool(max(waiting.values()) < 1),
            f"at most {waiting[fullest]:.3f} of it ({fullest[0]}, mean {fullest[1]})",
        ),
    ]


def lemma2(horizon: int, mean: float) -> float:
    return mean + 2 * np.log(horizon) + np.sqrt(4 * mean * np.log(horizon))
