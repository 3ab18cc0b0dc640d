"""A picture of a decision: what each candidate loses, and how likely it is the best."""

import matplotlib.pyplot as plt
import numpy as np

from jaxbandit.decisions.decision import Decision

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"
"""Okabe and Ito (2008): told apart by the colour-blind, and by their lightness."""


def draw(decision: Decision) -> np.ndarray:
    """The axes of two panels with a line for each candidate, the best on top and in orange."""
    rows = decision.rows()
    places = np.arange(len(rows))[::-1]
    colours = [ORANGE, *[BLUE] * (len(rows) - 1)]
    size = (9.5, 1.3 + 0.45 * len(rows))
    _, (left, right) = plt.subplots(
        1, 2, sharey=True, figsize=size, layout="constrained", gridspec_kw={"width_ratios": (2, 1)}
    )
    left.axvline(0, color=GREY, lw=1)
    for place, row, colour in zip(places, rows, colours, strict=True):
        left.plot([row.low, row.high], [place, place], color=colour, lw=2.5, solid_capstyle="butt")
        left.plot(row.lost, place, "o", color=colour, ms=7)
    left.set_yticks(places, [row.candidate for row in rows])
    left.set_ylim(-0.6, len(rows) - 0.4)
    left.set_xlabel(f"conversions lost against {rows[0].candidate}, {100 * decision.level:g} % intervals")
    chances = [row.probability_best for row in rows]
    right.barh(places, chances, color=colours, height=0.55)
    for place, chance in zip(places, chances, strict=True):
        right.annotate(f"{chance:.2f}", (chance, place), xytext=(3, 0), textcoords="offset points", va="center")
    right.set(xlim=(0, 1.15), xlabel="probability of being the best")
    right.set_xticks([0, 0.5, 1])
    right.tick_params(axis="y", length=0)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return np.array([left, right])
