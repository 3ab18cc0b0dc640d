"""Delays in whole rounds: how a real number becomes one, and probabilities of rounds without cancellation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw, safe_log


def whole(x: Float[Array, "..."]) -> Int[Array, "..."]:
    """The whole number ``floor(x)``, capped while still a float: an integer cast of a larger one would wrap."""
    return jnp.where(x < NEVER, x, NEVER).astype(jnp.int32)


def age(m: Any, dtype: Any) -> tuple[Array, Array]:
    """``m`` as a float, and a copy raised to at least 1 that is safe in a logarithm."""
    m = jnp.asarray(m, dtype=dtype)
    return m, jnp.maximum(m, 1)


def log_difference(log_survival_before: Array, log_ratio: Array) -> Float[Array, "..."]:
    """``log(S(m-1) - S(m))`` from ``log S(m-1)`` and ``log(S(m-1)/S(m)) >= 0``, without cancellation."""
    tiny = jnp.finfo(log_ratio.dtype).tiny
    safe = jnp.where(log_ratio > 0, log_ratio, tiny)
    return jnp.where(log_ratio > 0, log_survival_before + jnp.log(-jnp.expm1(-safe)), -jnp.inf)


def with_never(law: DelayLaw, m: Any, log_pmf: Array) -> Float[Array, "..."]:
    """``log_pmf``, where ``NEVER`` gets all that lies at or beyond it."""
    m = jnp.asarray(m)
    return jnp.where(m < 0, -jnp.inf, jnp.where(m >= NEVER, safe_log(law.survival(NEVER - 1)), log_pmf))


def mean_of_ceil(law: DelayLaw, integral_beyond: Callable[[float], Array], first: int = 4096) -> Float[Array, "*K"]:
    """``E D = sum of P(D > m) over m >= 0``: term by term at first, then by the Euler-Maclaurin formula."""
    terms = jax.vmap(law.survival)(jnp.arange(first, dtype=float))
    at_end = law.survival(float(first))
    slope = (law.survival(first + 1.0) - law.survival(first - 1.0)) / 2
    return jnp.sum(terms, axis=0) + integral_beyond(float(first)) + at_end / 2 - slope / 12
