"""Profile-likelihood intervals of the rates: as far as the likelihood, at its best over the delays, falls by 1.92."""

import numpy as np
from jaxtyping import Float

from jaxbandit.logs.families import Problem
from jaxbandit.logs.newton import HIGH, LOW, Maximum, maximise

FALL = 3.841458820694124 / 2
BETTER = 1e-3
DOUBLINGS = 9
HALVINGS = 14


def profile_intervals(
    best: Maximum, problems: Problem, edges: np.ndarray
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Maximum]:
    """Lower and upper ends of 95 % intervals, 1 where the profile never falls enough, and the maxima, which are
    replaced where the search came upon something better."""
    fixed = problems._replace(free=problems.free & np.array([False, True, True, True]))
    low, below = _end(best, fixed, edges, -1)
    high, above = _end(best, fixed, edges, 1)
    if (np.maximum(below.value, above.value) > best.value + BETTER).any():
        theta = np.where((below.value > above.value)[:, None], below.theta, above.theta)
        again = maximise(theta, problems, edges)
        won = again.value > best.value + BETTER
        best = Maximum(
            *(np.where(won.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(again, best, strict=True))
        )
        low, high = _end(best, fixed, edges, -1)[0], _end(best, fixed, edges, 1)[0]
    return 1 / (1 + np.exp(-low)), np.where(high >= HIGH[0], 1.0, 1 / (1 + np.exp(-high))), best


def _end(best: Maximum, problems: Problem, edges: np.ndarray, side: int) -> tuple[np.ndarray, Maximum]:
    """The logit at the end on one side, and the highest point of the profile on the way.

    Outwards in doubling steps, each from where the last ended, then inwards by the rule of Illinois on the square root
    of the fall, which is nearly a straight line.
    """
    centre, limit = best.theta[:, 0], (HIGH if side > 0 else LOW)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = 1 / np.sqrt(best.hessian[:, 0, 0])
    step = np.where(np.isfinite(error), np.clip(2 * error, 1e-3, 2.0), 1.0)
    inner, inner_theta, inner_miss = centre.copy(), best.theta.copy(), np.full(len(centre), -np.sqrt(2 * FALL))
    outer, outer_miss = np.full(len(centre), limit), np.full(len(centre), np.nan)
    top = Maximum(best.theta.copy(), best.value.copy(), best.hessian.copy(), best.converged.copy())
    active = np.abs(centre) < 30

    def look(at: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = inner_theta[rows].copy()
        theta[:, 0] = at
        found = maximise(theta, Problem(*(x[rows] for x in problems)), edges)
        up = found.value > top.value[rows]
        top.theta[rows[up]], top.value[rows[up]] = found.theta[up], found.value[up]
        miss = np.sqrt(np.maximum(2 * (best.value[rows] - found.value), 0)) - np.sqrt(2 * FALL)
        return found.theta, miss

    for turn in range(DOUBLINGS):
        rows = np.flatnonzero(active & np.isnan(outer_miss))
        if not len(rows):
            break
        at = centre[rows] + side * step[rows] * 2.0**turn
        at = np.full_like(at, limit) if turn == DOUBLINGS - 1 else (np.minimum if side > 0 else np.maximum)(at, limit)
        theta, miss = look(at, rows)
        beyond = miss > 0
        outer[rows[beyond]], outer_miss[rows[beyond]] = at[beyond], miss[beyond]
        inside = rows[~beyond]
        inner[inside], inner_theta[inside], inner_miss[inside] = at[~beyond], theta[~beyond], miss[~beyond]
        active[rows[~beyond & (at == limit)]] = False
    found_end = ~np.isnan(outer_miss)
    inner = np.where(found_end, inner, limit)
    side_of = np.zeros(len(centre))
    for _ in range(HALVINGS):
        rows = np.flatnonzero(found_end & (np.abs(outer - inner) > 1e-4) & (np.abs(inner_miss) > 1e-4))
        if not len(rows):
            break
        at = inner[rows] + (outer[rows] - inner[rows]) * -inner_miss[rows] / (outer_miss[rows] - inner_miss[rows])
        theta, miss = look(at, rows)
        close = np.abs(miss) < 1e-4
        beyond = (miss > 0) & ~close
        a, b = rows[beyond], rows[~beyond]
        outer[a], outer_miss[a] = at[beyond], miss[beyond]
        inner_miss[a] *= np.where(side_of[a] > 0, 0.5, 1)
        inner[b], inner_theta[b], inner_miss[b] = at[~beyond], theta[~beyond], miss[~beyond]
        outer_miss[b] *= np.where(side_of[b] < 0, 0.5, 1)
        side_of[a], side_of[b] = 1, -1
    return inner, top
