"""Families of delay laws that a log is fitted with, as one family with parameters held fixed.

With ``x = shape (log m - log scale)`` every law here is a law of x: ``log P(D > m)`` is ``-log(1 + u e^x) / u`` (Burr
XII, in a form whose limit for u to 0 is Weibull, ``-e^x``) or ``log Φ(-x)`` (log-normal). So all of them, of every arm,
are fitted by one compiled program.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool, Float

from jaxbandit.laws import Burr, DelayLaw, LogNormal, Lomax, Weibull

SIZE = 4
"""Parameters: logit of the rate, then the logarithms of scale, shape and u."""
LIMIT = -36.0
"""``log u`` of Weibull and exponential: e^-36 is below what double precision tells from 0."""


class Family(NamedTuple):
    """``free``: which of scale, shape and u are fitted; ``normal``: whether x is normal."""

    name: str
    free: tuple[bool, bool, bool]
    normal: bool = False

    @property
    def mask(self) -> Bool[np.ndarray, " P"]:
        return np.array([True, *self.free])

    @property
    def num_parameters(self) -> int:
        return int(self.mask.sum())


FAMILIES = (
    Family("exponential", (True, False, False)),
    Family("Weibull", (True, True, False)),
    Family("LogNormal", (True, True, False), normal=True),
    Family("Lomax", (True, False, True)),
    Family("Burr", (True, True, True)),
)
BY_NAME = {family.name: family for family in FAMILIES}


class Problem(NamedTuple):
    """The counts of one arm and the family to fit: what ``log_likelihood`` is of."""

    conversions: Float[Array, " G"]
    waiting: Float[Array, " G1"]
    normal: Bool[Array, ""]
    free: Bool[Array, " P"]


def log_survival(theta: Float[Array, " P"], normal: Bool[Array, ""], m: Float[Array, " n"]) -> Float[Array, " n"]:
    """``log P(D > m)`` for m >= 1."""
    x = jnp.exp(theta[2]) * (jnp.log(m) - theta[1])
    power = -jax.nn.softplus(x + theta[3]) / jnp.exp(theta[3])
    return jnp.where(normal, log_ndtr(-x), power)


def log_likelihood(theta: Float[Array, " P"], problem: Problem, edges: Float[Array, " G1"]) -> Float[Array, ""]:
    """``sum of conversions (log rate + log P(e_j < D <= e_{j+1})) + waiting log(1 - rate + rate P(D > e_j))``."""
    log_rate, log_rest = jax.nn.log_sigmoid(theta[0]), jax.nn.log_sigmoid(-theta[0])
    beyond = log_survival(theta, problem.normal, edges[1:])
    before = jnp.concatenate([jnp.zeros(1), beyond[:-1]])
    # Where nothing converted there is nothing to add, and no logarithm of a probability that has underflowed.
    some = problem.conversions > 0
    fall = jnp.where(some & (before > beyond), before - beyond, 1)
    within = jnp.where(before > beyond, before + jnp.log(-jnp.expm1(-fall)), -jnp.inf)
    converted = jnp.where(some, problem.conversions * (log_rate + within), 0)
    silent = problem.waiting[1:] * jnp.logaddexp(log_rest, log_rate + beyond)
    return jnp.sum(converted) + jnp.sum(silent)


def tail(theta: Float[np.ndarray, " P"], normal: bool, ages: Any) -> Float[np.ndarray, " n"]:
    """``P(D > m)`` at ages m >= 1, in double precision."""
    with jax.enable_x64(True):
        of = log_survival(jnp.asarray(theta, float), jnp.asarray(normal), jnp.asarray(ages, float))
        return np.exp(np.asarray(of))


def rate(theta: Float[np.ndarray, "*n P"]) -> Float[np.ndarray, "*n"]:
    return np.asarray(1 / (1 + np.exp(-theta[..., 0])))


def parameters(family: Family, theta: Float[np.ndarray, " P"]) -> dict[str, float]:
    """Those of the law in ``jaxbandit``, by name; exponential delays are ``Weibull`` with shape 1."""
    scale, shape, u = np.exp(theta[1:])
    if family.normal:
        return {"median": scale, "sigma": 1 / shape}
    if family.free[2]:
        found = {"scale": scale * u ** (-1 / shape), "shape": shape, "tail_index": shape / u}
        return found if family.free[1] else {"scale": found["scale"], "tail_index": found["tail_index"]}
    return {"scale": scale, "shape": shape} if family.free[1] else {"scale": scale}


def law(family: Family, theta: Float[np.ndarray, " P"]) -> DelayLaw:
    """The delay law of one arm."""
    found = parameters(family, theta)
    if family.normal:
        return LogNormal(found["median"], found["sigma"])
    if family.free[2]:
        return Burr(**found) if family.free[1] else Lomax(**found)
    return Weibull(found["scale"], found.get("shape", 1.0))


def quantile(family: Family, theta: Float[np.ndarray, "*n P"], tail: float) -> Float[np.ndarray, "*n"]:
    """The time in rounds that the delay exceeds with probability ``tail``."""
    from scipy.special import ndtri

    if family.normal:
        x = np.full(theta.shape[:-1], -ndtri(tail))
    else:
        u = np.exp(theta[..., 3])
        x = np.log(np.expm1(-u * np.log(tail)) / u)
    return np.asarray(np.exp(theta[..., 1] + x / np.exp(theta[..., 2])))
