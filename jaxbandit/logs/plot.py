"""A picture of a fit: incidence with bands and fitted curves, and survival on log-log axes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from jaxbandit.logs import families
from jaxbandit.logs.fit import LogFit

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008): told apart by the colour-blind."""
STYLES = ("-", "--", "-.", ":")


def draw(fit: LogFit) -> np.ndarray:
    """The axes of two panels; time in units. Beyond the largest age of an arm its curves are thin: nothing is known."""
    _, (left, right) = plt.subplots(1, 2, figsize=(12.5, 5), layout="constrained")
    unit, edges = fit.rounds_per_unit, fit.table.edges
    for k, arm in enumerate(fit.arms):
        look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "ls": STYLES[(k // len(COLOURS)) % len(STYLES)]}
        days = edges / unit
        left.step(days, fit.curves.at[k], where="post", label=arm.name, lw=1.8, **look)
        band = (fit.curves.low[k], fit.curves.high[k])
        left.fill_between(days, *band, step="post", color=look["color"], alpha=0.18, lw=0)
        if not arm.fits:
            continue
        best = arm.best
        further = np.unique(np.geomspace(1, 10 * edges[-1], 400).astype(int))
        tail = families.tail(best.theta, best.family.normal, further)
        inside = further <= arm.identified_until
        left.plot(further[inside] / unit, best.rate * (1 - tail[inside]), color="black", lw=0.9, ls="--")
        slope = "" if np.isinf(best.tail_index) else f", tail index {best.tail_index:.2g}"
        rate = "unknown" if arm.upper >= 1 else f"{best.rate:.3g}"
        name = f"{arm.name}: {best.family.name}, rate {rate}{slope}"
        right.loglog(further[inside] / unit, tail[inside], lw=1.8, label=name, **look)
        right.loglog(further[~inside] / unit, tail[~inside], lw=0.8, ls=":", color=look["color"])
        counted = 1 - fit.curves.at[k] / families.rate(best.theta)
        some = (counted > 0) & (edges > 0)
        right.loglog(days[some], counted[some], ".", ms=3, color=look["color"], alpha=0.6)
    left.set(
        xlabel=f"{fit.unit}s since the pull",
        ylabel="share converted",
        ylim=0,
        title="Incidence, 95 % bands (dashed: fitted)",
    )
    left.set_xlim(0, edges[-1] / unit)
    left.legend(loc="lower right")
    right.set(xlabel=f"{fit.unit}s since the pull", ylabel="share of conversions still to come", ylim=(1e-3, 1.1))
    right.set_title("Delays (points: counted; dotted: not seen)")
    right.axvline(edges[-1] / unit, color="grey", lw=0.8, label="the oldest pull")
    if any(arm.fits for arm in fit.arms):
        right.legend(loc="lower left", fontsize=9)
    return np.array([left, right])
