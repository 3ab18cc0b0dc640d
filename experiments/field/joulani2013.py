"""Delay adds to the regret of UCB1 and does not multiply it: at most the outstanding feedback times the gap."""

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
"""By delay law and mean delay; that of no delay is UNDELAYED."""
UNDELAYED = ("none", 0)


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


def policies() -> Mapping[str, jb.Policy]:
    return {"Delayed-UCB1": jb.DelayedUCB1(), "Queued(UCB1)": jb.Queued(jb.UCB1())}


def gaps() -> np.ndarray:
    return max(MEANS) - np.array(MEANS)


@eqx.filter_jit
def played(keys: Any, delay: jb.DelayLaw, policy: jb.Policy, horizon: int) -> Found:
    """One run a key: regret and outstanding feedback."""
    instance = jb.Instance(jb.Bernoulli(MEANS), delay)

    def run(key: Array) -> Found:
        trace = jb.trace(key, instance, policy, horizon=horizon)
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
    results: dict[str, Results] = {}
    cells = {UNDELAYED: jb.NoDelay()} | {(law, m): laws()[law](m) for law in laws() for m in MEAN_DELAYS}
    with Progress("joulani2013", len(policies()) * len(cells) * seeds) as progress:
        for label, policy in policies().items():
            results[label] = {}
            for (law, mean), delay in cells.items():
                progress.say(f"{label}, {law}, mean {mean}")
                results[label][law, mean] = jax.device_get(played(keys, delay, policy, horizon))
                progress.done(seeds)
    rows = [
        {"policy": label, "law": law, "mean_delay": mean}
        | measured(found.regret)
        | {f"outstanding_{i + 1}": x for i, x in enumerate(found.outstanding.mean(axis=0))}
        | {"price": price(found), "bound": bound(horizon) + price(found)}
        for label, by_delay in results.items()
        for (law, mean), found in by_delay.items()
    ]
    save(
        "joulani2013",
        draw(results, horizon, seeds),
        rows,
        claims(results, horizon),
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


def draw(results: dict[str, Results], horizon: int, seeds: int) -> Figure:
    figure, axes = plt.subplots(1, len(laws()), figsize=(13, 4.8), layout="constrained", sharey=True)
    told, base = results["Delayed-UCB1"], float(results["Delayed-UCB1"][UNDELAYED].regret.mean())
    for ax, law in zip(axes, laws(), strict=True):
        for label, marker in zip(results, "ov", strict=True):
            columns = np.stack([results[label][law, mean].regret for mean in MEAN_DELAYS], axis=1)
            band(MEAN_DELAYS, jax.device_get(jb.mean_ci(columns)), ax=ax, label=label, marker=marker)
        ax.axhline(base, color="grey", ls=":", label="UCB1 without delay")
        prices = np.array([price(told[law, mean]) for mean in MEAN_DELAYS])
        ax.plot(MEAN_DELAYS, base + prices, color="grey", ls="--", marker="s", label="the same + Σ Δ E[G*]")
        ax.plot(MEAN_DELAYS, bound(horizon) + prices, color="black", ls="-.", marker="^", label="Theorem 7's bound")
        ax.set(xscale="log", xlabel="mean delay", ylim=0, title=f"{law} delays")
    axes[0].set_ylabel(f"regret at T = {horizon}")
    axes[1].legend(fontsize=8, loc="center left")
    figure.suptitle(f"μ = {MEANS}; {seeds} runs, 95 % bands. G* is that of Delayed-UCB1")
    return figure


def claims(results: dict[str, Results], horizon: int) -> list[Claim]:
    told = {cell: found for cell, found in results["Delayed-UCB1"].items() if cell != UNDELAYED}
    share = {cell: found.regret.mean() / (bound(horizon) + price(found)) for cell, found in told.items()}
    waiting = {c: found.outstanding.mean(axis=0).max() / (lemma2(horizon, c[1]) + 1) for c, found in told.items()}
    nearest, fullest = max(share, key=share.__getitem__), max(waiting, key=waiting.__getitem__)
    return [
        Claim(
            "Theorem 7: the regret of UCB1 on settled feedback is at most the sum over gaps Δ of 8 log T / Δ + 3.5 Δ, "
            "plus that of Δ E[G*]",
            bool(max(share.values()) < 1),
            f"at most {share[nearest]:.3f} of it ({nearest[0]}, mean {nearest[1]}), over {len(share)} laws with means "
            f"from {min(MEAN_DELAYS)} to {max(MEAN_DELAYS)}; G* is measured",
        ),
        *(adds(label, by_delay, results["Delayed-UCB1"][UNDELAYED]) for label, by_delay in results.items()),
        Claim(
            "Lemma 2: E[G*] <= E[D] + 2 log T + 2 sqrt(E[D] log T) + 1 for every arm",
            bool(max(waiting.values()) < 1),
            f"at most {waiting[fullest]:.3f} of it ({fullest[0]}, mean {fullest[1]})",
        ),
    ]


def adds(label: str, results: Results, undelayed: Found) -> Claim:
    late = {cell: found for cell, found in results.items() if cell != UNDELAYED}
    over = [c for c, x in late.items() if apart(x.regret, undelayed.regret + x.outstanding @ gaps())[0].low > 0]
    most = {c: apart(x.regret, undelayed.regret)[1] for c, x in late.items() if c[1] == max(MEAN_DELAYS)}
    theorem = "Theorem 6: " if label.startswith("Queued") else "delay adds and does not multiply: "
    return Claim(
        f"{theorem}the regret of {label} is at most that of UCB1 without delay plus the sum of Δ E[G*]",
        not over,
        f"without delay {undelayed.regret.mean():.1f}; mean delay {max(MEAN_DELAYS)} adds "
        + ", ".join(f"{words} of {price(results[cell]):.1f} ({cell[0]})" for cell, words in most.items())
        + f"; surely more in {len(over)} of {len(late)} laws",
    )


def lemma2(horizon: int, mean: float) -> float:
    return mean + 2 * np.log(horizon) + np.sqrt(4 * mean * np.log(horizon))
