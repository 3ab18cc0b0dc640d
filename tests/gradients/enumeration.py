"""Expected regret of PatientBandits, hard or softmax, summed over all that can happen in a few rounds.

Shares nothing with the package: paths are followed in plain Python, their probabilities written down from the paper.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NUM_ARMS = 2


class Parameters(NamedTuple):
    """``tail``: tail indexes of Pareto delays, or means of geometric ones; ``temperature``: None plays the best."""

    mean: Any
    tail: Any
    bonus_scale: Any
    bias_scale: Any
    alpha: Any
    temperature: Any


class Paths(NamedTuple):
    """Every path: the arms, and after how many rounds each reward was seen (0: it was not, by the horizon)."""

    arms: np.ndarray
    ages: np.ndarray


def arrived(m: int, tail: Any, family: str) -> Any:
    """``P(D <= m)`` for m >= 1."""
    return 1 - m**-tail if family == "pareto" else 1 - (tail / (1 + tail)) ** (m + 1)


def index(n: Any, s: Any, horizon: int, p: Parameters) -> Any:
    spread = math.sqrt(2 * math.log(2 * NUM_ARMS * horizon**3))
    return s / n + p.bonus_scale * spread / n**0.5 + p.bias_scale * n**-p.alpha


def seen_by(t: int, arm: int, arms: np.ndarray, ages: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pulls of the arm before round t, and how many of their rewards have been seen, of every path."""
    rounds = np.arange(1, t)
    mine = arms[..., : t - 1] == arm
    seen = mine & (ages[..., : t - 1] > 0) & (ages[..., : t - 1] <= t - rounds)
    return mine.sum(axis=-1), seen.sum(axis=-1)


def options(t: int, arms: Any, ages: Any, horizon: int, p: Parameters) -> list[int]:
    """The arms that may be pulled in round t."""
    if t <= NUM_ARMS:
        return [t - 1]
    if p.temperature is not None:
        return list(range(NUM_ARMS))
    ranking = []
    for arm in range(NUM_ARMS):
        n, s = (int(x) for x in seen_by(t, arm, np.array(arms), np.array(ages)))
        ranking.append((-index(n, s, horizon, p), n, arm))
    return [min(ranking)[2]]


def follow(horizon: int, p: Parameters) -> Paths:
    paths: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    for t in range(1, horizon + 1):
        paths = [
            ((*arms, arm), (*ages, age))
            for arms, ages in paths
            for arm, age in itertools.product(options(t, arms, ages, horizon, p), range(horizon - t + 1))
        ]
    return Paths(np.array([arms for arms, _ in paths]), np.array([ages for _, ages in paths]))


def probabilities(paths: Paths, p: Parameters, family: str = "pareto") -> jax.Array:
    """Of every path, to be differentiated with respect to the parameters."""
    horizon = paths.arms.shape[1]
    total = jnp.ones(len(paths.arms))
    for t in range(1, horizon + 1):
        arm, age = paths.arms[:, t - 1], paths.ages[:, t - 1]
        outcomes = [[_outcome(m, horizon - t, i, p, family) for i in range(NUM_ARMS)] for m in range(horizon - t + 1)]
        total = total * jnp.asarray(outcomes)[age, arm]
        if t > NUM_ARMS and p.temperature is not None:
            total = total * _choice(t, paths, p)[np.arange(len(arm)), arm]
    return total


def _outcome(m: int, oldest: int, arm: int, p: Parameters, family: str) -> Any:
    mean, tail = p.mean[arm], p.tail[arm]
    if m == 0:
        return 1 - mean * arrived(oldest, tail, family) if oldest else jnp.ones(())
    before = arrived(m - 1, tail, family) if m > 1 else 0
    return mean * (arrived(m, tail, family) - before)


def _choice(t: int, paths: Paths, p: Parameters) -> jax.Array:
    horizon = paths.arms.shape[1]
    columns = []
    for arm in range(NUM_ARMS):
        n, s = (x.astype(float) for x in seen_by(t, arm, *paths))
        columns.append(index(n, s, horizon, p) / p.temperature)
    return jax.nn.softmax(jnp.stack(columns, axis=1), axis=1)


def expected_regret(paths: Paths, p: Parameters, family: str = "pareto") -> jax.Array:
    gaps = jnp.max(p.mean) - p.mean
    return jnp.sum(probabilities(paths, p, family) * jnp.sum(gaps[paths.arms], axis=1))
