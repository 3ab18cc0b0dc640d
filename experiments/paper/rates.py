"""How regret in the worst case over gaps grows with T: PatientBandits, UCB1 and D-UCB beside T^(1 - α ∧ 1/2)."""

import itertools
import time
from collections.abc import Mapping

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.report import Claim, Options, Progress, save

GAPS = (0.003, 0.005, 0.008, 0.012, 0.02, 0.03, 0.045, 0.07, 0.11, 0.17, 0.27, 0.42, 0.65)
WORSE_TAIL_INDEX = 1.0
TAIL_INDEXES = (0.2, 0.3, 0.5)  # of the better arm
HORIZONS = (1000, 10_000, 100_000, 1_000_000)
SEEDS = 16
WINDOW = 100
BELIEVED_DELAY = 0.7  # tail index of the delay law that D-UCB is given
LINEAR = 0.95

Curve = Mapping[int, np.ndarray]
"""By horizon: the regret of every run, [seeds, gaps]."""


def instance(gap: float, tail_index: float) -> jb.Instance:
    return jb.Instance(
        reward=jb.Bernoulli(mean=[0.5 - gap / 2, 0.5 + gap / 2]),
        delay=jb.Pareto(tail_index=[WORSE_TAIL_INDEX, tail_index]),
    )


def policies(tail_index: float) -> Mapping[str, jb.Policy]:
    believed = jb.Pareto(tail_index=BELIEVED_DELAY)
    patient = jb.PatientBandits(alpha=tail_index)
    return {"PatientBandits": patient, "UCB1": jb.UCB1(), f"D-UCB m={WINDOW}": jb.DUCB(window=WINDOW, cdf=believed)}


def main(options: Options) -> None:
    started = time.perf_counter()
    seeds = options.seeds or SEEDS
    longest = options.horizon or (HORIZONS[-2] if options.quick else HORIZONS[-1])
    horizons = [*([horizon for horizon in HORIZONS if horizon < longest] or [longest // 10]), longest]
    gaps = GAPS[::3] if options.quick else GAPS
    regrets: dict[tuple[float, str], dict[int, np.ndarray]] = {}
    with Progress("rates", len(TAIL_INDEXES) * len(policies(0.5)) * len(horizons) * len(gaps) * seeds) as progress:
        for tail_index, horizon in itertools.product(TAIL_INDEXES, horizons):
            for label, policy in policies(tail_index).items():
                progress.say(f"α = {tail_index}, T = {horizon}, {label}")
                columns = []
                for gap in gaps:
                    run = jb.simulate_batch(
                        options.seed,
                        instance(gap, tail_index),
                        policy,
                        horizon=horizon,
                        seeds=seeds,
                        checkpoints=[horizon],
                    )
                    columns.append(run.regret[:, -1])
                    progress.done(seeds)
                regrets.setdefault((tail_index, label), {})[horizon] = np.stack(columns, axis=1)
    settings = {"gaps": gaps, "worse_tail_index": WORSE_TAIL_INDEX, "tail_indexes": TAIL_INDEXES, "window": WINDOW}
    save(
        "rates",
        draw(regrets, gaps, seeds),
        table(regrets, gaps),
        claims(regrets, gaps),
        settings | {"believed_delay": BELIEVED_DELAY, "horizons": horizons, "seeds": seeds, "seed": options.seed},
        started,
        options,
    )


def table(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...]) -> list[dict[str, object]]:
    """Tidy rows: one a tail index, policy, horizon and gap."""
    rows: list[dict[str, object]] = []
    for (tail_index, label), curve in regrets.items():
        for horizon, regret in curve.items():
            interval = jax.device_get(jb.mean_ci(regret))
            rows += [
                {"tail_index": tail_index, "policy": label, "horizon": horizon, "gap": gap}
                | {"regret": interval.mean[j], "low": interval.low[j], "high": interval.high[j], "seeds": len(regret)}
                for j, gap in enumerate(gaps)
            ]
    return rows


def worst(curve: Curve) -> np.ndarray:
    """The largest mean regret over the gaps, horizon by horizon."""
    return np.array([regret.mean(axis=0).max() for regret in curve.values()])


def slopes(horizons: Mapping[int, object], regret: np.ndarray) -> np.ndarray:
    """The exponent of T from each horizon to the next."""
    return np.diff(np.log(regret)) / np.diff(np.log(np.array(list(horizons), float)))


def exponent(curve: Curve) -> float:
    """The exponent of T fitted to the worst regret at all horizons, by least squares of the logarithms."""
    return float(np.polyfit(np.log(np.array(list(curve), float)), np.log(worst(curve)), 1)[0])


def draw(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...], seeds: int) -> Figure:
    figure, axes = plt.subplots(1, len(TAIL_INDEXES), figsize=(5 * len(TAIL_INDEXES), 4.5), layout="constrained")
    for ax, tail_index in zip(axes, TAIL_INDEXES, strict=True):
        for label in policies(tail_index):
            curve = regrets[tail_index, label]
            ax.loglog(list(curve), worst(curve), marker="o", label=f"{label}: T^{exponent(curve):.2f}")
        patient, rate = regrets[tail_index, "PatientBandits"], 1 - min(tail_index, 0.5)
        horizons = np.array(list(patient), float)
        ax.plot(
            horizons, worst(patient)[0] * (horizons / horizons[0]) ** rate, color="black", ls="--", label=f"T^{rate:g}"
        )
        ax.plot(horizons, max(gaps) * horizons, color="grey", ls=":", label="the worse arm always")
        ax.set(xlabel="horizon T", title=f"α = ({WORSE_TAIL_INDEX:g}, {tail_index})")
        ax.legend(fontsize=8)
    axes[0].set_ylabel("largest regret over the gaps")
    figure.suptitle(f"μ = (1 ∓ Δ)/2, {len(gaps)} gaps Δ from {min(gaps)} to {max(gaps)}; {seeds} runs")
    return figure


def claims(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...]) -> list[Claim]:
    return [
        rate_of_patient_bandits(regrets, gaps),
        within_theorem_3(regrets),
        rate_of_ucb1(regrets, gaps),
        where_ducb_is_linear(regrets, gaps),
    ]


def described(curve: Curve, gaps: tuple[float, ...]) -> str:
    local = ", ".join(f"{x:.2f}" for x in slopes(curve, worst(curve)))
    at = ", ".join(f"{gaps[regret.mean(axis=0).argmax()]}" for regret in curve.values())
    return f"T^{exponent(curve):.2f} (from one T to the next: {local}; worst gaps: {at})"


def rate_of_patient_bandits(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...]) -> Claim:
    curves = {a: regrets[a, "PatientBandits"] for a in TAIL_INDEXES}
    return Claim(
        "Theorem 3: the worst regret of PatientBandits grows no faster than T^(1 - α ∧ 1/2), logarithms apart (by 0.1 "
        "in the exponent)",
        all(exponent(curve) - (1 - min(a, 0.5)) < 0.1 for a, curve in curves.items()),
        "; ".join(f"α = {a}: {described(curve, gaps)}, theorem {1 - min(a, 0.5):g}" for a, curve in curves.items()),
    )


def within_theorem_3(regrets: Mapping[tuple[float, str], Curve]) -> Claim:
    share = {
        (a, horizon): float(value / jb.theorem3_bound(2, horizon, a))
        for a in TAIL_INDEXES
        for horizon, value in zip(regrets[a, "PatientBandits"], worst(regrets[a, "PatientBandits"]), strict=True)
    }
    longest = max(horizon for _, horizon in share)
    telling = [a for a in TAIL_INDEXES if jb.theorem3_bound(2, longest, a) < longest]
    return Claim(
        "Theorem 3: the regret of PatientBandits is within the bound",
        max(share.values()) < 1,
        f"at most {max(share.values()):.3f} of it; at T = {longest} it is below T for α = {telling}",
    )


def rate_of_ucb1(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...]) -> Claim:
    curves = {a: regrets[a, "UCB1"] for a in TAIL_INDEXES}
    return Claim(
        "(Section 7) UCB1, which ignores delays, has linear regret for α < 1/2",
        all(exponent(curve) > LINEAR for a, curve in curves.items() if a < 0.5),
        "; ".join(
            f"α = {a}: {described(curve, gaps)}, {worst(curve)[-1]:.0f} in the end" for a, curve in curves.items()
        )
        + "; PatientBandits "
        + ", ".join(f"{worst(regrets[a, 'PatientBandits'])[-1]:.0f} (α = {a})" for a in TAIL_INDEXES),
    )


def where_ducb_is_linear(regrets: Mapping[tuple[float, str], Curve], gaps: tuple[float, ...]) -> Claim:
    expected, measured = {}, {}
    for a in TAIL_INDEXES:
        curve = regrets[a, f"D-UCB m={WINDOW}"]
        last = [
            slopes(curve, np.array([regret[:, j].mean() for regret in curve.values()]))[-1] for j in range(len(gaps))
        ]
        measured[a] = [gap for gap, slope in zip(gaps, last, strict=True) if slope > LINEAR]
        expected[a] = [gap for gap in gaps if int(jb.ducb_consistent_window(instance(gap, a))) > WINDOW]
    return Claim(
        f"D-UCB with m = {WINDOW} is linear exactly where its limits rank the arms wrongly",
        measured == expected,
        "; ".join(
            f"α = {a}: linear at the gaps {measured[a]}, ranked wrongly {expected[a]}, in the worst case "
            + described(regrets[a, f"D-UCB m={WINDOW}"], gaps)
            for a in TAIL_INDEXES
        ),
    )
