"""Theorem 4: on its two problems the regrets of any policy add up to q T, so that the larger is above T^(1-α)/8."""

import itertools
import time
from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.report import Claim, Options, Progress, save

TAIL_INDEXES = (0.1, 0.3)
HORIZONS = (100, 1000, 10_000, 100_000, 1_000_000)
SEEDS = 32
WINDOW = 200
BELIEVED_DELAY = 0.7  # tail index of the delay law that D-UCB is given
TWIN_HORIZON, TWIN_SEEDS = 1000, 5

Tables = tuple[np.ndarray, np.ndarray]
Regrets = dict[tuple[float, int, str], np.ndarray]
"""By tail index, horizon and policy: the regret of every run, [seeds, 2], on Problem A and on Problem B."""


def policies(tail_index: float) -> Mapping[str, jb.Policy]:
    """Every public policy."""
    believed = jb.Pareto(tail_index=BELIEVED_DELAY)
    return {
        "UCB1": jb.UCB1(),
        "PatientBandits": jb.PatientBandits(alpha=tail_index),
        "Adapt-PatientBandits": jb.AdaptPatientBandits(c=1.0, alpha_min=0.1, mean_min=0.25),
        "D-UCB": jb.DUCB(window=WINDOW, cdf=believed),
        "DKL-UCB": jb.DKLUCB(window=WINDOW, cdf=believed),
        "Discarding": jb.Discarding(window=WINDOW),
        "Delayed-UCB1": jb.DelayedUCB1(),
        "Delayed-KL-UCB": jb.DelayedKLUCB(),
        "Delayed-Thompson": jb.DelayedThompson(),
        "successive elimination": jb.SuccessiveElimination(),
        "queued UCB1": jb.Queued(jb.UCB1()),
        "KL-UCB": jb.KLUCB(),
        "Thompson": jb.Thompson(),
        "corrected Thompson": jb.CorrectedThompson(believed, window=WINDOW),
        "OTFLinUCB": jb.OTFLinUCB(window=WINDOW),
        "ODAAF": jb.ODAAF(expected_delay=0.0),
        "UCB1 in batches": jb.Batched(jb.UCB1(), period=10),
        "windowed UCB1": jb.Windowed(jb.DelayedUCB1(), window=WINDOW),
        "softmax of UCB1": jb.Softmax(jb.UCB1(), temperature=0.1),
        "uniform play": jb.Uniform(),
    }


PLAYED = {
    "UCB1": "o",
    "PatientBandits": "v",
    "Adapt-PatientBandits": "^",
    "D-UCB": "s",
    "DKL-UCB": "D",
    "Discarding": "*",
    "Delayed-UCB1": "x",
    "Thompson": "h",
    "softmax of UCB1": "<",
    "uniform play": "P",
}
"""Those played to the longest horizon, with their markers: the others are put to the same luck only."""


def bound_by_theorem(label: str) -> bool:
    """Whether the policy sees conversions and no more."""
    return policies(0.5)[label].observes is not jb.Feedback


def twins(horizon: int, tail_index: float, seed: int) -> tuple[Tables, Tables]:
    """Tables of rewards and delays for Problems A and B on the same luck: a reward that B loses is a zero in A."""
    rng = np.random.default_rng(seed)
    q = float(jb.theorem4_gap(horizon, tail_index))
    pays = rng.uniform(size=(horizon, 2)) < [0.5, 0.5 + q]
    lost = np.stack([np.zeros(horizon, bool), rng.uniform(size=horizon) < horizon**-tail_index], axis=1)
    at_once = np.zeros((horizon, 2), int)
    return ((pays & ~lost).astype(float), at_once), (pays.astype(float), np.where(lost, horizon, at_once))


def rounds_told_apart(policy: jb.Policy, tail_index: float, seed: int) -> int:
    """In how many rounds another arm is pulled on Problem B than on Problem A, on the same luck."""
    a, b = (
        np.asarray(jb.replay(rewards, delays, policy).arms) for rewards, delays in twins(TWIN_HORIZON, tail_index, seed)
    )
    return int((a != b).sum())


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or (16 if options.quick else SEEDS)
    longest = options.horizon or (10_000 if options.quick else HORIZONS[-1])
    horizons = [*(horizon for horizon in HORIZONS if horizon < longest), longest]
    regrets: Regrets = {}
    with Progress("lower_bound", 2 * len(TAIL_INDEXES) * len(horizons) * len(PLAYED) * seeds) as progress:
        for horizon, tail_index in itertools.product(horizons, TAIL_INDEXES):
            progress.say(f"T = {horizon}, α = {tail_index}")
            told = policies(tail_index)
            for label in PLAYED:
                runs = [
                    jb.simulate_batch(
                        options.seed, problem, told[label], horizon=horizon, seeds=seeds, checkpoints=[horizon]
                    ).regret[:, -1]
                    for problem in jb.theorem4_pair(horizon, tail_index)
                ]
                regrets[tail_index, horizon, label] = np.stack(runs, axis=1).astype(float)
                progress.done(2 * seeds)
    rows = [
        {"tail_index": tail_index, "horizon": horizon, "policy": label, "problem": problem, "seeds": seeds}
        | {"regret": mean, "low": low, "high": high, "bound": jb.theorem4_lower_bound(horizon, tail_index)}
        for (tail_index, horizon, label), regret in regrets.items()
        for problem, mean, low, high, _ in zip("AB", *jax.device_get(jb.mean_ci(regret)), strict=True)
    ]
    settings = {"tail_indexes": TAIL_INDEXES, "horizons": horizons, "window": WINDOW, "seeds": seeds}
    save(
        "lower_bound",
        draw(regrets, horizons, seeds),
        rows,
        [same_luck(), *claims(regrets)],
        settings | {"seed": options.seed},
        started,
        options,
    )


def over_bound(regrets: Regrets, tail_index: float, horizon: int, label: str) -> float:
    """``max(R_A, R_B) / (T^(1-α) / 8)``."""
    larger = regrets[tail_index, horizon, label].mean(axis=0).max()
    return float(larger / jb.theorem4_lower_bound(horizon, tail_index))


def draw(regrets: Regrets, horizons: list[int], seeds: int) -> Figure:
    figure, axes = plt.subplots(1, len(TAIL_INDEXES), figsize=(12, 4.5), layout="constrained", sharey=True)
    for ax, tail_index in zip(axes, TAIL_INDEXES, strict=True):
        for label, marker in PLAYED.items():
            ratio = [over_bound(regrets, tail_index, horizon, label) for horizon in horizons]
            ax.semilogx(horizons, ratio, marker=marker, ms=5, lw=1, label=label)
        lost = np.array(horizons, float) ** -tail_index
        ax.plot(horizons, 2 / (1 - lost / 2), color="grey", ls=":", label="q T")
        ax.axhline(1, color="black", ls="--", label="bound")
        ax.set(xlabel="horizon T", title=f"α = {tail_index}; {seeds} runs", ylim=(0, None))
    axes[0].set_ylabel("max(R_A, R_B) / (T^(1-α) / 8)")
    axes[1].legend(fontsize=8, ncols=2, loc="upper right")
    figure.suptitle("The larger regret on Theorem 4's two problems")
    return figure


def same_luck() -> Claim:
    apart = {
        label: sum(
            rounds_told_apart(policy, tail_index, seed) for tail_index in TAIL_INDEXES for seed in range(TWIN_SEEDS)
        )
        for label, policy in policies(TAIL_INDEXES[0]).items()
    }
    bound = [label for label in apart if bound_by_theorem(label)]
    rounds = TWIN_HORIZON * len(TAIL_INDEXES) * TWIN_SEEDS
    return Claim(
        "R_A + R_B = q T exactly for every policy that sees conversions: on the same luck it pulls the same arms in A "
        "and B",
        not any(apart[label] for label in bound),
        f"other arms in at most {max(apart[label] for label in bound)} of {rounds} rounds ({', '.join(bound)}); "
        f"Delayed-UCB1, which is told what has settled: in {apart['Delayed-UCB1']}",
    )


def claims(regrets: Regrets) -> list[Claim]:
    totals = {key: regret.sum(axis=1) for key, regret in regrets.items()}
    expected = {(a, t, label): float(jb.theorem4_gap(t, a)) * t for a, t, label in regrets}
    bound = [key for key in regrets if bound_by_theorem(key[2])]
    off = {key: abs(totals[key].mean() / expected[key] - 1) for key in bound}
    error = {key: totals[key].std(ddof=1) / len(totals[key]) ** 0.5 / expected[key] + 1e-5 for key in bound}
    worst = max(bound, key=lambda key: off[key] / error[key])
    ratio = {key: over_bound(regrets, *key) for key in regrets}
    least = min(bound, key=ratio.__getitem__)
    longest = max(t for _, t, _ in regrets)
    told = [(a, longest, "Delayed-UCB1") for a in TAIL_INDEXES]
    return [
        Claim(
            "R_A + R_B = q T in expectation, on different luck",
            bool(off[worst] < 5 * error[worst]),
            f"largest of {len(bound)} deviations, in standard errors: {off[worst] / error[worst]:.1f}, which is "
            f"{100 * off[worst]:.2f} % of q T (α = {worst[0]}, T = {worst[1]}, {worst[2]})",
        ),
        Claim(
            "Theorem 4: max(R_A, R_B) > T^(1-α)/8 for every policy that sees conversions, at every T",
            ratio[least] > 1,
            f"smallest quotient {ratio[least]:.3f} (α = {least[0]}, T = {least[1]}, {least[2]})",
        ),
        Claim(
            "(not in the paper) a policy with feedback is not bound by it",
            all(ratio[key] < 1 for key in told),
            f"Delayed-UCB1 at T = {longest}: "
            + ", ".join(f"{ratio[key]:.3f} of the bound (α = {key[0]})" for key in told),
        ),
    ]
