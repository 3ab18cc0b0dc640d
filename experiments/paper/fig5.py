"""Figure 5: PatientBandits and D-UCB where the better arm has much longer delays, which D-UCB does not know."""

import time

import numpy as np

from experiments.paper import comparison
from experiments.paper.comparison import ALPHAS, BELIEVED_DELAY, MEANS, WINDOWS, Runs, final, growth
from experiments.report import Claim, Options, save

TAIL_INDEXES = (1.0, 0.3)


def main(options: Options) -> None:
    started = time.perf_counter()
    results = comparison.compare("fig5", TAIL_INDEXES, options)
    title = f"μ = {MEANS}, α = {TAIL_INDEXES}; {comparison.seeds(options)} runs, 95 % bands"
    verdicts = [claim for horizon, runs in results.items() for claim in claims(horizon, runs)]
    save(
        "fig5",
        comparison.draw(results, title),
        comparison.table(results, TAIL_INDEXES),
        verdicts,
        comparison.settings(options, TAIL_INDEXES),
        started,
        options,
    )


def ranks_rightly(window: int) -> bool:
    """Whether the limits of D-UCB's estimates, ``μ_i (1 - m^-α_i) / (1 - m^-0.7)``, put the better arm first."""
    limits = np.array(MEANS) * (1 - float(window) ** -np.array(TAIL_INDEXES)) / (1 - float(window) ** -BELIEVED_DELAY)
    return bool(limits.argmax() == np.argmax(MEANS))


def claims(horizon: int, runs: Runs) -> list[Claim]:
    regret = {label: final(runs, label).mean() for label in comparison.policies()}
    slope = {m: growth(runs, f"D-UCB m={m}") for m in WINDOWS}
    threshold = next(m for m in range(2, 10**6) if ranks_rightly(m))
    ducb = ", ".join(f"{regret[f'D-UCB m={m}']:.0f} (m = {m}, {slope[m]:.2f})" for m in WINDOWS)
    patient = {alpha: f"PatientBandits ᾱ={alpha}" for alpha in ALPHAS}
    listed = ", ".join(f"{regret[label]:.0f} (ᾱ = {a}, {growth(runs, label):.2f})" for a, label in patient.items())
    worst = max(regret[label] for label in patient.values())
    return [
        Claim(
            f"T = {horizon}: the regret of D-UCB is linear for every m",
            all(value > 0.8 for value in slope.values()),
            f"{ducb}: regret, and that of the second half over the first (1 if linear). In the limit D-UCB ranks the "
            f"arms rightly from m = {threshold} on",
        ),
        Claim(
            f"T = {horizon}: D-UCB has a higher regret than PatientBandits for every m",
            all(regret[f"D-UCB m={m}"] > worst for m in WINDOWS),
            f"D-UCB {ducb}; PatientBandits {listed}",
        ),
        Claim(
            f"T = {horizon}: PatientBandits finds the best arm: its regret is sub-linear",
            all(growth(runs, label) < 0.9 for label in patient.values()),
            f"{listed}; uniform play {horizon * (MEANS[1] - MEANS[0]) / 2:.0f}",
        ),
        Claim(
            f"T = {horizon}: (Section 7) UCB1, which ignores delays, has linear regret",
            bool(growth(runs, "UCB1") > 0.8),
            f"UCB1 {regret['UCB1']:.0f}, PatientBandits {regret[patient[0.5]]:.0f}; UCB1 gains "
            f"{growth(runs, 'UCB1'):.2f} times the regret of its first half in the second",
        ),
    ]
