"""Theorem 1: how often its confidence interval misses the mean, and how much of its bias term delays really take."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure
from scipy.signal import fftconvolve

import jaxbandit as jb
from experiments.report import Claim, Options, Progress, save

MEANS = (0.6, 0.8)
TAIL_INDEXES = (0.2, 0.3, 0.5, 1.0)
DELTAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.01)
HORIZON = 3000
SEEDS = 400
INTERVALS = ("Theorem 1", "Theorem 1 without its bias term", "sharpened: Hoeffding's width, one-sided bias")

Rows = list[dict[str, Any]]
Shares = dict[tuple[float, str], np.ndarray]
"""By tail index and policy: quantiles of the bias over Theorem 1's bias term, [3, t, K]."""


class Watched(jb.Policy):
    """``policy``, which also reports its estimates of the two means."""

    policy: jb.Policy

    def init(self, num_arms: int, horizon: int) -> tuple[Any, jb.ArmStatistics]:
        return self.policy.init(num_arms, horizon), jb.ArmStatistics.empty(num_arms)

    def scores(self, state: Any, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return self.policy.scores(state[0], t, key)

    def update(self, state: Any, t: Int[Array, ""], arm: Int[Array, ""], observation: jb.Conversions) -> Any:
        return self.policy.update(state[0], t, arm, observation), state[1].observe(arm, observation.rewards)

    def diagnostics(self, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
        arms = state[1]
        return {f"mean_{i}": arms.rewards[i] / arms.pulls[i].astype(arms.rewards.dtype) for i in range(len(MEANS))}


class Estimates(NamedTuple):
    """At the start of rounds K+1..T: pulls, S/N, and how much of the mean delays still hide from it, [seeds, t, K]."""

    pulls: np.ndarray
    mean: np.ndarray
    bias: np.ndarray


def policies(tail_index: float) -> Mapping[str, jb.Policy]:
    return {"PatientBandits": jb.PatientBandits(alpha=tail_index), "UCB1": jb.UCB1(), "uniform play": jb.Uniform()}


def estimates(policy: jb.Policy, tail_index: float, horizon: int, seeds: int, seed: int) -> Estimates:
    instance = jb.Instance(reward=jb.Bernoulli(mean=MEANS), delay=jb.Pareto(tail_index=tail_index))
    rounds = range(1, horizon + 1)
    run = jb.simulate_batch(seed, instance, Watched(policy), horizon=horizon, seeds=seeds, checkpoints=rounds)
    after = np.asarray(run.pulls)
    before = np.concatenate([np.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
    ages = np.arange(horizon)
    # A pull is of age t - s >= 1 when it counts for the first time.
    silent = np.where(ages > 0, np.maximum(ages, 1.0) ** -tail_index, 0.0)[None, :, None]
    late = fftconvolve(after - before, silent, axes=1)[:, :horizon] * np.array(MEANS)
    mean = np.stack([run.diagnostics[f"mean_{i}"] for i in range(len(MEANS))], axis=-1)
    later = slice(len(MEANS), None)
    pulls = before[:, later].astype(float)
    return Estimates(pulls=pulls, mean=mean[:, later].astype(float), bias=late[:, later] / pulls)


def errors(found: Estimates) -> np.ndarray:
    return found.mean - np.array(MEANS)


def worst_bias(pulls: np.ndarray, tail_index: float) -> np.ndarray:
    """``(1 + 2^-α + ... + n^-α) / n``: the bias at mean 1 if the n pulls were the last n rounds."""
    n = np.arange(1, int(pulls.max()) + 1)
    return (np.cumsum(n**-tail_index) / n)[pulls.astype(int) - 1]


def misses(found: Estimates, tail_index: float, delta: float) -> dict[str, np.ndarray]:
    """For three intervals: where the mean lies outside, [seeds, t, K]."""
    error, n = errors(found), found.pulls
    printed = np.asarray(jb.theorem1_width(n, tail_index, delta))
    sharp = np.sqrt(np.log(2 / delta) / (2 * n))
    above, below = error > sharp, error < -sharp - np.array(MEANS) * worst_bias(n, tail_index)
    bare = np.sqrt(2 * np.log(2 / delta) / n)
    return dict(zip(INTERVALS, (np.abs(error) > printed, np.abs(error) > bare, above | below), strict=True))


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (50 if options.quick else SEEDS)
    horizon = options.horizon or HORIZON
    deltas = (*DELTAS, 1 / (len(MEANS) * float(horizon) ** 3))
    rows: Rows = []
    shares: Shares = {}
    with Progress("coverage", len(TAIL_INDEXES) * len(policies(0.5)) * seeds) as progress:
        for tail_index in TAIL_INDEXES:
            for label, policy in policies(tail_index).items():
                found = estimates(policy, tail_index, horizon, seeds, options.seed)
                for delta in deltas:
                    missed = misses(found, tail_index, delta)
                    rows += [
                        {"tail_index": tail_index, "policy": label, "delta": delta, "interval": interval}
                        | {"mean_share": where.mean(), "largest_share": where.mean(axis=0).max()}
                        | {"any_share": where.any(axis=(1, 2)).mean(), "seeds": seeds}
                        for interval, where in missed.items()
                    ]
                term = 2 * found.pulls ** -min(tail_index, 0.5)
                shares[tail_index, label] = np.quantile(found.bias / term, [0.05, 0.5, 0.95], axis=0)
                progress.done(seeds)
    settings = {"means": MEANS, "tail_indexes": TAIL_INDEXES, "deltas": deltas, "horizon": horizon, "seeds": seeds}
    save(
        "coverage",
        draw(rows, shares, deltas[:-1]),
        rows,
        claims(rows, shares, seeds),
        settings | {"seed": options.seed},
        started,
        options,
    )


def largest(rows: Rows, interval: str) -> dict[tuple[float, float], float]:
    """By tail index and δ: the largest share of misses at a round, of any policy and arm."""
    found: dict[tuple[float, float], float] = {}
    for row in rows:
        if row["interval"] == interval:
            key = row["tail_index"], row["delta"]
            found[key] = max(found.get(key, 0.0), float(row["largest_share"]))
    return found


def draw(rows: Rows, shares: Shares, deltas: tuple[float, ...]) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    colors = {tail_index: f"C{i}" for i, tail_index in enumerate(TAIL_INDEXES)}
    for interval, style in zip(INTERVALS, ("-", ":", "--"), strict=True):
        share = largest(rows, interval)
        for tail_index, color in colors.items():
            left.plot(deltas, [share[tail_index, delta] for delta in deltas], color=color, ls=style, marker=".")
        left.plot([], [], color="black", ls=style, label=interval)
    left.plot([0, 1], [0, 1], color="grey", lw=4, alpha=0.4, label="δ")
    left.set(xlabel="δ", ylabel="share of runs that miss", title="the worst round, arm and policy")
    left.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.01, 0.93))
    for (tail_index, label), (low, middle, high) in shares.items():
        if label != "PatientBandits":
            continue
        rounds = np.arange(len(MEANS) + 1, len(middle) + len(MEANS) + 1)
        for arm, style in ((1, "-"), (0, "--")):
            name = f"α = {tail_index}" if arm else None
            right.semilogx(rounds, middle[:, arm], color=colors[tail_index], ls=style, label=name)
            right.fill_between(rounds, low[:, arm], high[:, arm], color=colors[tail_index], alpha=0.15, lw=0)
    right.set(xlabel="round t", ylabel="bias / (2 n^-(α ∧ 1/2))", title="PatientBandits; dashed: the worse arm", ylim=0)
    right.legend(fontsize=8)
    figure.suptitle(f"μ = {MEANS}, the same Pareto delays for both arms")
    return figure


def claims(rows: Rows, shares: Shares, seeds: int) -> list[Claim]:
    theorem, bare, sharp = (largest(rows, interval) for interval in INTERVALS)

    def within(share: dict[tuple[float, float], float]) -> bool:
        return all(
            value <= delta + 5 * np.sqrt(delta * (1 - min(delta, 1)) / seeds) for (_, delta), value in share.items()
        )

    def listed(share: dict[tuple[float, float], float], tail_index: float, deltas: tuple[float, ...]) -> str:
        return ", ".join(f"{share[tail_index, delta]:.3f} for δ = {delta}" for delta in deltas)

    any_miss = max(row["any_share"] for row in rows if row["interval"] == INTERVALS[0] and row["delta"] == 1)
    taken = {a: shares[a, "PatientBandits"][1, -1] for a in TAIL_INDEXES}
    proof = {a: worst_bias(np.array([1e3]), a).item() / (2 * 1e3 ** -min(a, 0.5)) for a in TAIL_INDEXES}
    return [
        Claim(
            "Theorem 1: at any round an arm's interval misses its mean with probability δ at most",
            bool(within(theorem)),
            f"largest share {max(theorem.values()):.4f} over rounds, arms, policies, α and δ; "
            f"{100 * any_miss:.1f} % of the runs have a miss anywhere at δ = 1",
        ),
        Claim(
            "its bias term is needed: without it the interval misses too often",
            not within(bare),
            "worst share for α = 0.2: " + listed(bare, 0.2, (0.5, 0.1, 0.01)),
        ),
        Claim(
            "(not in the paper) half of the deviation term and the exact worst bias, on one side only, are enough",
            bool(within(sharp)),
            "worst share for α = 0.2: "
            + listed(sharp, 0.2, (0.5, 0.1, 0.01))
            + "; for α = 1: "
            + listed(sharp, 1.0, (0.5, 0.1, 0.01)),
        ),
        Claim(
            "(not in the paper) the bias term is at most twice the bias, for the arm that is pulled most",
            bool(min(x.max() for x in taken.values()) > 0.5),
            "median of bias over term at the end, worse and better arm under PatientBandits: "
            + ", ".join(f"{x[0]:.3f} and {x[1]:.3f} for α = {a}" for a, x in taken.items())
            + "; the most possible at n = 1000, mean 1: "
            + ", ".join(f"{x:.2f} for α = {a}" for a, x in proof.items()),
        ),
    ]
