"""What a fit says: a table, sentences where the log cannot tell, files, and a page for an analyst."""

import csv
import html
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandit.logs.families import quantile
from jaxbandit.logs.fit import ArmFit, LogFit
from jaxbandit.logs.tails import assumption1, assumption2

EXTRAPOLATED = 0.8
"""Where less than this share of the rate had converted by the largest age, the rest is the law's word."""
Z = 1.96


def table(fit: LogFit) -> list[dict[str, str | int | float]]:
    """One row for each arm: numbers, with times in rounds and in units."""
    rows: list[dict[str, str | int | float]] = []
    for k, arm in enumerate(fit.arms):
        at, low, high = arm.incidence
        row: dict[str, str | int | float] = {
            "arm": arm.name,
            "pulls": arm.pulls,
            "conversions": arm.conversions,
            "identified_until_rounds": arm.identified_until,
            f"identified_until_{fit.unit}s": arm.identified_until / fit.rounds_per_unit,
            "incidence": at,
            "incidence_low": low,
            "incidence_high": high,
        }
        if arm.fits:
            median = float(quantile(arm.best.family, arm.best.theta, 0.5))
            tail = assumption1(fit, k)
            row |= {
                "family": arm.best.family.name,
                "rate": arm.best.rate,
                "rate_low": arm.lower,
                "rate_high": arm.upper,
                "median_delay_rounds": median,
                f"median_delay_{fit.unit}s": median / fit.rounds_per_unit,
                "tail_index": arm.best.tail_index,
                "assumption1_tail_index": tail.tail_index,
                "assumption2_constant": assumption2(fit, k, tail.tail_index),
                "tail_from_rounds": tail.first,
                "tail_until_rounds": tail.last,
            }
        rows.append(row)
    return rows


def family_table(fit: LogFit) -> list[dict[str, str | float | bool]]:
    """One row for each arm and family."""
    return [
        {"arm": arm.name, "family": each.family.name, "log_likelihood": each.log_likelihood, "aic": each.aic}
        | {"rate": each.rate, "rate_error": each.rate_error, "rate_low": each.low, "rate_high": each.high}
        | {"weight": each.weight, "converged": each.converged}
        | {f"parameter_{name}": value for name, value in each.parameters.items()}
        for arm in fit.arms
        for each in arm.fits
    ]


def sentences(fit: LogFit) -> list[str]:
    """What the log cannot tell, and what a reader should know before using a number."""
    found = [line for k, arm in enumerate(fit.arms) for line in _of_arm(fit, k, arm)]
    return found + _ranking(fit)


def _of_arm(fit: LogFit, k: int, arm: ArmFit) -> list[str]:
    at, low, high = arm.incidence
    age = _time(fit, arm.identified_until)
    if not arm.fits:
        return [
            f"{arm.name} has no conversion in {arm.pulls} pulls: at most {high:.3g} convert within {age} (95 %), and "
            "nothing is known of later ones."
        ]
    lines = []
    good = arm.equally_good
    if arm.upper >= 1 and not arm.law_free:
        lines.append(
            f"The log is too short to tell the rate of {arm.name}: at least {at:.3g} [{low:.3g}, {high:.3g}] have "
            f"converted within {age}, and a rate up to 1 fits as well."
        )
    elif not arm.law_free and at < EXTRAPOLATED * arm.best.rate:
        lines.append(
            f"{arm.name}: {at:.3g} [{low:.3g}, {high:.3g}] convert within {age}; what lies between that and a rate of "
            f"{arm.best.rate:.3g} has not been seen, and is what a {arm.best.family.name} law makes of it."
        )
    apart = [x for x in good if not arm.best.low <= x.rate <= arm.best.high or not x.low <= arm.best.rate <= x.high]
    if (
        len(good) > 1
        and not arm.law_free
        and (apart or max(x.high for x in good) - min(x.low for x in good) > 2 * (good[0].high - good[0].low))
    ):
        rates = ", ".join(f"{x.family.name} {_rate(x.rate)} [{x.low:.3g}, {x.high:.3g}]" for x in good)
        lines.append(f"{arm.name}: families that fit equally well disagree about the rate: {rates}.")
    if not all(x.converged for x in good):
        lines.append(f"{arm.name}: the fit did not converge; do not use its rate.")
    if arm.law_free:
        lines.append(
            f"The log cannot tell the rate of {arm.name}: {at:.3g} [{low:.3g}, {high:.3g}] convert within {age}, and "
            f"no family describes its delays (p = {arm.misfit:.1g}), so that instances have the product limit "
            f"in place of a law: conversions after {age} are left out."
        )
    return lines


def tails(fit: LogFit) -> list[str]:
    """What the ages seen support of the paper's Assumptions 1 and 2, arm by arm."""
    lines = []
    for k, arm in enumerate(fit.arms):
        if not arm.fits:
            continue
        if arm.upper >= 1:
            lines.append(f"Tail of {arm.name}: unknown, as the rate is.")
            continue
        tail = assumption1(fit, k)
        ages = f"Tail of {arm.name}, ages {tail.first} to {_time(fit, tail.last)}"
        if np.isnan(tail.tail_index):
            lines.append(f"{ages}: all may have converted by {tail.first} rounds, so that any tail index is possible.")
            continue
        c = assumption2(fit, k, tail.tail_index)
        second = f"with that index Assumption 2 for c up to {c:.2g}" if c > 0 else "Assumption 2 for no c > 0"
        beyond = ""
        if np.isinf(arm.best.tail_index):
            beyond = f"; a {arm.best.family.name} tail does not meet Assumption 2 in the long run"
        lines.append(f"{ages}: Assumption 1 may hold for tail indexes up to {tail.tail_index:.2g}, {second}{beyond}.")
    return lines


def _ranking(fit: LogFit) -> list[str]:
    """Whether the incidences at the largest age that all arms have reached can be told apart."""
    if fit.num_arms < 2:
        return []
    age = min(arm.identified_until for arm in fit.arms)
    j = int(np.searchsorted(fit.table.edges, age))
    at, low, high = (x[:, j] for x in (fit.curves.at, fit.curves.low, fit.curves.high))
    error = (high - low) / (2 * Z)
    z = Z if fit.num_arms == 2 else float(_bonferroni(fit.num_arms * (fit.num_arms - 1) // 2))
    alike = [
        (a, b)
        for a, b in combinations(range(fit.num_arms), 2)
        if abs(at[a] - at[b]) <= z * np.hypot(error[a], error[b])
    ]
    counted = [arm.conversions / arm.pulls for arm in fit.arms]
    lines = []
    if alike:
        names = "; ".join(f"{fit.arms[a].name} and {fit.arms[b].name}" for a, b in alike)
        values = ", ".join(
            f"{arm.name} {x:.3g} [{a:.3g}, {b:.3g}]" for arm, x, a, b in zip(fit.arms, at, low, high, strict=True)
        )
        lines.append(f"Within {_time(fit, age)} these cannot be told apart: {names} ({values}).")
    told = [(arm.best.rate, arm.name) for arm in fit.arms if arm.fits and arm.upper < 1]
    best = max(told)[1] if len(told) == fit.num_arms else None
    most = fit.arms[int(np.argmax(counted))].name
    fastest = fit.arms[int(np.argmax(at))].name
    if len({best, most, fastest} - {None}) > 1:
        lines.append(
            f"The orders disagree: most conversions so far for each pull {most}, highest incidence {fastest}, highest "
            f"fitted rate {best or 'unknown'}. Counting conversions so far favours what converts fast."
        )
    elif alike:
        lines.append("Conversions so far favour what converts fast: do not rank the arms by them.")
    return lines


def _bonferroni(pairs: int) -> float:
    from scipy.special import ndtri

    return ndtri(1 - 0.025 / pairs)


def _time(fit: LogFit, rounds: int) -> str:
    return f"{rounds} rounds ({rounds / fit.rounds_per_unit:.3g} {fit.unit}s)"


def _rate(x: float) -> str:
    return "1" if x > 1 - 1e-5 else f"{x:.3g}"


def text(fit: LogFit) -> str:
    """The table, the sentences, and what is known of the tails."""
    return "\n".join([*_lines(fit), "", *sentences(fit), *tails(fit)]).rstrip()


def _lines(fit: LogFit) -> list[str]:
    """The table, as text."""
    head = (
        "arm",
        "pulls",
        "conversions",
        "incidence [95 %]",
        "until",
        "family",
        "rate [95 %]",
        "median delay",
        "tail index",
    )
    body = []
    for arm in fit.arms:
        at, low, high = arm.incidence
        cells = [arm.name, str(arm.pulls), str(arm.conversions), f"{at:.4f} [{low:.4f}, {high:.4f}]"]
        cells.append(f"{arm.identified_until / fit.rounds_per_unit:.3g} {fit.unit}s")
        if arm.fits:
            median = float(quantile(arm.best.family, arm.best.theta, 0.5)) / fit.rounds_per_unit
            too_short = arm.upper >= 1
            rate = (
                f"unknown [{arm.lower:.4f}, 1]"
                if too_short
                else f"{arm.best.rate:.4f} [{arm.lower:.4f}, {arm.upper:.4f}]"
            )
            tail = "light" if np.isinf(arm.best.tail_index) else f"{arm.best.tail_index:.2f}"
            cells += [arm.best.family.name, rate, "unknown" if too_short else f"{median:.3g} {fit.unit}s", tail]
        else:
            cells += ["-", "unknown", "-", "-"]
        body.append(cells)
    widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *body)
    ]


def write(fit: LogFit, folder: Path, decision: Any = None) -> list[Path]:
    """Tables (CSV), pictures (PNG) and a page (HTML) with all of it, in a folder that is there.

    ``decision`` is what ``compare`` gives, if the page is to have it too.
    """
    from jaxbandit.logs.plot import draw, plt

    for name, rows in (("arms", table(fit)), ("families", family_table(fit))):
        fields = list(dict.fromkeys(field for row in rows for field in row))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=fields or ["arm"])
            writer.writeheader()
            writer.writerows(rows)
    figures = {"log.png": draw(fit)[0].figure}
    if decision is not None:
        decision.table().to_csv(folder / "decision.csv")
        figures["decision.png"] = decision.plot()[0].figure
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=130, bbox_inches="tight")
        plt.close(figure)
    (folder / "report.html").write_text(_page(fit, decision), encoding="utf-8")
    names = ["arms.csv", "families.csv", *(["decision.csv"] if decision else []), *figures, "report.html"]
    return [folder / name for name in names]


def _page(fit: LogFit, decision: Any) -> str:
    warnings = "".join(f"<li>{html.escape(line)}</li>" for line in sentences(fit)) or "<li>Nothing to warn of.</li>"
    numbers = html.escape("\n".join([*_lines(fit), "", *tails(fit)]).rstrip())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>What the log tells</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em }}
pre {{ overflow-x: auto }}
img {{ max-width: 100% }}
</style>
</head><body><h1>What the log tells</h1>
<h2>Read this first</h2><ul>{warnings}</ul>
<h2>Numbers</h2><pre>{numbers}</pre>
<p>Incidence is the share that has converted within the time named, whatever the delays; it is a lower bound of the
rate. The rate is the share that converts in the end, if delays go on as the family says; its interval is that of all
families that fit equally well. A tail is light where delays fall off faster than any power of time. Assumptions 1 and 2
are those of policies for heavy tails: that a share of at most m^-index, and of at least c times that, is still to come
after m rounds; what is said of them is what the bands leave possible at the ages seen, with the fitted rate. A
{html.escape(fit.unit)} is {fit.rounds_per_unit:.6g} rounds.</p>
<h2>Pictures</h2><p>Left: the share converted against time since the pull, as counted (steps, with 95 % bands) and as
fitted. Right: the share of conversions still to come.</p><img src="log.png" alt="Incidence and survival of every arm">
{_of_decision(decision)}
<p>All numbers: <a href="arms.csv">arms.csv</a>, <a href="families.csv">families.csv</a>.</p></body></html>
"""


def _of_decision(decision: Any) -> str:
    if decision is None:
        return ""
    return f"""<h2>Which policy to run</h2><pre>{html.escape(str(decision))}</pre>
<p>Every policy goes on from the log, on instances that the log leaves possible and on the same luck. An interval is for
the truth, with what the log leaves open and the luck of the runs in it.</p>
<img src="decision.png" alt="Conversions lost, and the probability of being the best"><p>All numbers:
<a href="decision.csv">decision.csv</a>.</p>"""
