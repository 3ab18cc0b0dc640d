"""Figure 4: PatientBandits and D-UCB where both arms have the same delays, which D-UCB knows exactly."""

import time

from experiments.paper import comparison
from experiments.paper.comparison import ALPHAS, WINDOWS, Runs, final, growth, mean_at
from experiments.report import Claim, Options, save

TAIL_INDEXES = (0.7, 0.7)


def main(options: Options) -> None:
    started = time.perf_counter()
    results = comparison.compare("fig4", TAIL_INDEXES, options)
    title = f"μ = {comparison.MEANS}, α = {TAIL_INDEXES}; {comparison.seeds(options)} runs, 95 % bands"
    verdicts = [claim for horizon, runs in results.items() for claim in claims(horizon, runs)]
    save(
        "fig4",
        comparison.draw(results, title),
        comparison.table(results, TAIL_INDEXES),
        verdicts,
        comparison.settings(options, TAIL_INDEXES),
        started,
        options,
    )


def claims(horizon: int, runs: Runs) -> list[Claim]:
    regret = {label: final(runs, label).mean() for label in comparison.policies()}
    patient = {alpha: regret[f"PatientBandits ᾱ={alpha}"] for alpha in ALPHAS}
    ducb = {m: regret[f"D-UCB m={m}"] for m in WINDOWS}
    factor = patient[0.5] / ducb[50]
    listed = ", ".join(f"{ducb[m]:.1f} (m = {m})" for m in WINDOWS)
    listed = f"PatientBandits {patient[0.5]:.0f} (ᾱ = 0.5), {patient[0.1]:.0f} (ᾱ = 0.1); D-UCB {listed}"
    return [
        Claim(
            f"T = {horizon}: D-UCB and PatientBandits are comparable, above all for ᾱ = 0.5 and m = 50",
            bool(factor < 2),
            f"{listed}: a factor {factor:.1f}",
        ),
        Claim(
            f"T = {horizon}: PatientBandits does only slightly worse than D-UCB in the best case",
            bool(min(patient.values()) < 1.25 * min(ducb.values())),
            f"best {min(patient.values()):.0f} against {min(ducb.values()):.1f}",
        ),
        *([catching_up(horizon, runs)] if horizon > 2 * WINDOWS[-1] else []),
        Claim(
            f"T = {horizon}: (Section 7) UCB1, which ignores delays, has linear regret",
            bool(growth(runs, "UCB1") > 0.8),
            f"UCB1 {regret['UCB1']:.0f}, PatientBandits {patient[0.5]:.0f}; UCB1 gains {growth(runs, 'UCB1'):.2f} "
            "times the regret of its first half in the second (1 if linear)",
        ),
    ]


def catching_up(horizon: int, runs: Runs) -> Claim:
    window = WINDOWS[-1]
    longest = f"D-UCB m={window}"
    waited, uniform = mean_at(runs, longest, window), window * (comparison.MEANS[1] - comparison.MEANS[0]) / 2
    return Claim(
        f"T = {horizon}: D-UCB with a large m has a linear phase of m + K rounds, and catches up later",
        bool(abs(waited / uniform - 1) < 0.1 and growth(runs, longest) < 0.5),
        f"m = {window}: {waited:.1f} at round {window} (uniform play: {uniform:.0f}), then "
        f"{final(runs, longest).mean() - waited:.1f} in the other {horizon - window} rounds",
    )
