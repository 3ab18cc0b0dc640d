"""A log as a life table, and the incidence it shows without assuming any law."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

DENSE = 128
GROWTH = 1.01
SHORT = 1024
"""Up to this age the grid has every round: it costs nothing."""
CHUNK = 2**20


class LifeTable(NamedTuple):
    """Rows of a log, counted at ``edges`` ``0 = e_0 < e_1 < ... < e_G`` of their age, in rounds.

    A row is looked at when its age last passed an edge. ``conversions[k, j]`` are the rows of arm k with delay in
    ``(e_j, e_{j+1}]``, ``waiting[k, j]`` those that had not converted at their last edge ``e_j``.
    """

    edges: Int[np.ndarray, " G1"]
    conversions: Int[np.ndarray, "K G"]
    waiting: Int[np.ndarray, "K G1"]


class Incidence(NamedTuple):
    """``P(C = 1, D <= m)`` at the edges: the product limit with a band, NaN where no row of the arm is as old."""

    at: Float[np.ndarray, "K G1"]
    low: Float[np.ndarray, "K G1"]
    high: Float[np.ndarray, "K G1"]
    at_risk: Int[np.ndarray, "K G"]
    """Rows that could have been seen to convert in ``(e_j, e_{j+1}]``."""


def grid(oldest: int, *, dense: bool = False) -> Int[np.ndarray, " G1"]:
    """Every round up to 128, then steps of 1 %, up to the oldest row; every round if it is younger than 1024."""
    if dense or oldest <= SHORT:
        return np.arange(oldest + 1, dtype=np.int64)
    edges = list(range(DENSE + 1))
    while edges[-1] < oldest:
        edges.append(min(max(edges[-1] + 1, int(edges[-1] * GROWTH)), oldest))
    return np.asarray(edges, dtype=np.int64)


def life_table(
    arm: Int[np.ndarray, " rows"], age: Int[np.ndarray, " rows"], delay: Int[np.ndarray, " rows"], edges: np.ndarray
) -> LifeTable:
    """Counts the rows, some at a time; ``delay`` is -1 where no conversion was seen."""
    arms, points = int(arm.max()) + 1, len(edges)
    waiting = np.zeros(arms * points, np.int64)
    conversions = np.zeros(arms * points, np.int64)
    for start in range(0, len(arm), CHUNK):
        rows = slice(start, start + CHUNK)
        last = np.searchsorted(edges, age[rows], side="right") - 1
        seen = (delay[rows] > 0) & (delay[rows] <= edges[last])
        first = arm[rows].astype(np.int64) * points
        bin_of = np.searchsorted(edges, delay[rows][seen], side="left") - 1
        waiting += np.bincount((first + last)[~seen], minlength=len(waiting))
        conversions += np.bincount(first[seen] + bin_of, minlength=len(conversions))
    return LifeTable(edges, conversions.reshape(arms, points)[:, :-1], waiting.reshape(arms, points))


def product_limit(table: LifeTable, level: float = 0.95) -> Incidence:
    """Kaplan and Meier (1958), with Greenwood's variance on the scale of log(-log).

    Where nothing has converted yet, or all has, the band is the exact one of a binomial (Clopper and Pearson, 1934).
    """
    from scipy.special import ndtri

    # Rows that converted later, or wait at a later edge.
    converted = np.cumsum(table.conversions[:, ::-1], axis=1)[:, ::-1]
    later = np.cumsum(table.waiting[:, :0:-1], axis=1)[:, ::-1]
    at_risk = converted + later
    n, d = at_risk.astype(float), table.conversions.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.cumprod(1 - d / n, axis=1)
        variance = np.cumsum(d / (n * (n - d)), axis=1)
        half = ndtri((1 + level) / 2) * np.sqrt(variance) / np.log(survival)
        low, high = 1 - survival ** np.exp(half), 1 - survival ** np.exp(-half)
        sure = 1 - ((1 - level) / 2) ** (1 / n)
    nothing, everything = survival == 1, survival == 0
    low = np.where(nothing, 0, np.where(everything, 1 - sure, low))
    low = np.where(everything, np.fmax.accumulate(low, axis=1), low)  # what had converted before is still converted
    high = np.where(nothing, sure, np.where(everything, 1, high))
    known = n > 0

    def from_zero(values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((len(values), 1)), np.where(known, values, np.nan)], axis=1)

    return Incidence(from_zero(1 - survival), from_zero(low), from_zero(high), at_risk)


def identified_until(table: LifeTable, incidence: Incidence) -> Int[np.ndarray, " K"]:
    """The largest age with rows at risk, arm by arm; 0 if there is none."""
    known = ~np.isnan(incidence.at)
    return table.edges[known.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1)]
