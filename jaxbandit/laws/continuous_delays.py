"""Delays that are a continuous time X > 0 (Pareto, Lomax, Burr, log-normal, Weibull), rounded up: ``D = ceil(X)``.

Then ``P(D > m) = P(X > m)`` at every whole m, and the tail of the delay is the tail of X exactly.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc, betaln, gammaincc, gammaln, log_ndtr, ndtr, ndtri, zeta
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit.laws.base import DelayLaw
from jaxbandit.laws.rounding import age, log_difference, mean_of_ceil, whole, with_never


class Pareto(DelayLaw):
    """``P(D > m) = m^-tail_index`` for m >= 1, and 1 for m = 0: Pareto type I with minimum 1, rounded up.

    Assumption 1 of Manegueu, Vernade, Carpentier and Valko (2020) holds with equality, and Assumption 2 with c = 1.

    Args:
        tail_index: > 0, one number an arm. The mean is infinite for 1 and below.

    Raises:
        ValueError: a tail index that is not finite and positive.
    """

    tail_index: Float[Array, "*K"]

    def __init__(self, tail_index: Any):
        mend = "use NoDelay for rewards that come at once, Lossy for rewards that never come"
        self.tail_index = _checks.floats("Pareto: tail_index", tail_index, "finite and > 0", mend)

    @property
    def mean(self) -> Float[Array, "*K"]:
        """``1 + zeta(tail_index)``."""
        heavy = self.tail_index <= 1
        return jnp.where(heavy, jnp.inf, 1 + zeta(jnp.where(heavy, 2, self.tail_index), 1.0))

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.tail_index.dtype)
        return jnp.where(m < 1, 1, jnp.exp(-self.tail_index * jnp.log(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.tail_index.dtype)
        return jnp.where(m < 1, 0, -jnp.expm1(-self.tail_index * jnp.log(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return whole(jnp.exp(-jnp.log(u) / self.tail_index) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.tail_index.dtype), 2)
        ratio = -self.tail_index * jnp.log1p(-1 / m)
        value = log_difference(-self.tail_index * jnp.log(m - 1), ratio)
        return with_never(self, x, jnp.where(jnp.asarray(x) < 2, -jnp.inf, value))


class Lomax(DelayLaw):
    """``P(D > m) = (1 + m / scale)^-tail_index``: a Pareto time with a scale (Lomax, 1954), rounded up.

    Unlike ``Pareto`` it gives every delay from 1 on a chance, so that it can be fitted to delays that were measured.

    Args:
        scale: in rounds, > 0, one number an arm.
        tail_index: > 0, one number an arm. The mean is infinite for 1 and below.

    Raises:
        ValueError: a scale or tail index that is not finite and positive.
    """

    scale: Float[Array, "*K"]
    tail_index: Float[Array, "*K"]

    def __init__(self, scale: Any, tail_index: Any):
        mend = "use NoDelay for rewards that come at once, Lossy for rewards that never come"
        self.scale = _checks.floats("Lomax: scale", scale, "finite and > 0", mend)
        self.tail_index = _checks.floats("Lomax: tail_index", tail_index, "finite and > 0", mend)

    @property
    def mean(self) -> Float[Array, "*K"]:
        heavy = self.tail_index <= 1
        excess = jnp.where(heavy, 1, self.tail_index - 1)

        def integral_beyond(m: float) -> Array:
            return self.scale / excess * jnp.exp(-excess * jnp.log1p(m / self.scale))

        return jnp.where(heavy, jnp.inf, mean_of_ceil(self, integral_beyond))

    def log_survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.scale.dtype)
        return jnp.where(m < 1, 0, -self.tail_index * jnp.log1p(jnp.floor(safe) / self.scale))

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return jnp.exp(self.log_survival(x))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        return -jnp.expm1(self.log_survival(x))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return whole(self.scale * jnp.expm1(-jnp.log(u) / self.tail_index) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.scale.dtype), 1)
        ratio = self.tail_index * jnp.log1p(1 / (self.scale + (m - 1)))
        value = log_difference(-self.tail_index * jnp.log1p((m - 1) / self.scale), ratio)
        return with_never(self, x, jnp.where(jnp.asarray(x) < 1, -jnp.inf, value))


class Burr(DelayLaw):
    """``P(D > m) = (1 + (m / scale)^shape)^(-tail_index / shape)``: a Burr (XII) time (Burr, 1942), rounded up.

    Its tail is that of ``m^-tail_index``; ``shape`` says how delays begin. ``Burr(scale, 1, tail_index)`` is ``Lomax``,
    and as ``tail_index`` grows with ``scale = s (tail_index / shape)^(1 / shape)`` the limit is ``Weibull(s, shape)``.

    Args:
        scale: in rounds, > 0, one number an arm.
        shape: > 0, one number an arm.
        tail_index: > 0, one number an arm. The mean is infinite for 1 and below.

    Raises:
        ValueError: a scale, shape or tail index that is not finite and positive.
    """

    scale: Float[Array, "*K"]
    shape: Float[Array, "*K"]
    tail_index: Float[Array, "*K"]

    def __init__(self, scale: Any, shape: Any, tail_index: Any):
        mend = "use Constant for a delay without spread, Lossy for rewards that never come"
        self.scale = _checks.floats("Burr: scale", scale, "finite and > 0", mend)
        self.shape = _checks.floats("Burr: shape", shape, "finite and > 0", mend)
        self.tail_index = _checks.floats("Burr: tail_index", tail_index, "finite and > 0", mend)

    def _log_power(self, m: Array) -> Float[Array, "*K"]:
        """``log((m / scale)^shape)``."""
        return self.shape * (jnp.log(m) - jnp.log(self.scale))

    @property
    def mean(self) -> Float[Array, "*K"]:
        heavy = self.tail_index <= 1
        excess = jnp.where(heavy, 1, self.tail_index - 1) / self.shape

        def integral_beyond(m: float) -> Array:
            """An incomplete beta integral, in ``1 / (1 + (m / scale)^shape)``."""
            rest = betainc(excess, 1 / self.shape, jax.nn.sigmoid(-self._log_power(jnp.asarray(m))))
            return self.scale / self.shape * jnp.exp(betaln(excess, 1 / self.shape)) * rest

        return jnp.where(heavy, jnp.inf, mean_of_ceil(self, integral_beyond))

    def log_survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.scale.dtype)
        value = -self.tail_index / self.shape * jax.nn.softplus(self._log_power(jnp.floor(safe)))
        return jnp.where(m < 1, 0, value)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return jnp.exp(self.log_survival(x))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        return -jnp.expm1(self.log_survival(x))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        t = -jnp.log(u) * self.shape / self.tail_index
        small = jnp.minimum(t, 1)
        log_power = jnp.where(t > 1, t + jnp.log1p(-jnp.exp(-jnp.maximum(t, 1))), jnp.log(jnp.expm1(small)))
        return whole(self.scale * jnp.exp(log_power / self.shape) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.scale.dtype), 2)
        at, before = self._log_power(m), self._log_power(m - 1)
        kept = jnp.exp(self.shape * jnp.log1p(-1 / m))  # (1 - 1/m)^shape
        # (1 + (m/scale)^shape) / (1 + ((m-1)/scale)^shape) - 1; where it is large, there is nothing to cancel.
        growth = -jnp.expm1(self.shape * jnp.log1p(-1 / m)) / (jnp.exp(-jnp.clip(at, -80, 80)) + kept)
        apart = jax.nn.softplus(at) - jax.nn.softplus(before)
        ratio = jnp.where(growth < 1, jnp.log1p(jnp.minimum(growth, 1)), apart)
        value = log_difference(self.log_survival(m - 1), self.tail_index / self.shape * ratio)
        first = log_difference(jnp.zeros_like(m), -self.log_survival(jnp.ones_like(m)))
        at_x = jnp.asarray(x)
        return with_never(self, x, jnp.where(at_x < 1, -jnp.inf, jnp.where(at_x < 2, first, value)))


class LogNormal(DelayLaw):
    """``P(D > m) = 1 - Φ(log(m / median) / sigma)``: a log-normal time, rounded up.

    Args:
        median: of the time before it is rounded, in rounds, > 0, one number an arm.
        sigma: standard deviation of its logarithm, > 0, one number an arm.

    Raises:
        ValueError: a median or sigma that is not finite and positive.
    """

    median: Float[Array, "*K"]
    sigma: Float[Array, "*K"]

    def __init__(self, median: Any, sigma: Any):
        mend = "use Constant for a delay without spread"
        self.median = _checks.floats("LogNormal: median", median, "finite and > 0", mend)
        self.sigma = _checks.floats("LogNormal: sigma", sigma, "finite and > 0", mend)

    def _z(self, m: Array) -> Float[Array, "*K"]:
        return (jnp.log(m) - jnp.log(self.median)) / self.sigma

    @property
    def mean(self) -> Float[Array, "*K"]:
        def integral_beyond(m: float) -> Array:
            z = self._z(jnp.asarray(m))
            return self.median * jnp.exp(self.sigma**2 / 2) * ndtr(self.sigma - z) - m * ndtr(-z)

        return mean_of_ceil(self, integral_beyond)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.median.dtype)
        return jnp.where(m < 1, 1, ndtr(-self._z(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.median.dtype)
        return jnp.where(m < 1, 0, ndtr(self._z(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return whole(self.median * jnp.exp(-self.sigma * ndtri(u)) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.median.dtype), 2)
        z, step = self._z(m), -jnp.log1p(-1 / m) / self.sigma
        upper = z > 0  # the difference of the smaller tails
        large = log_ndtr(jnp.where(upper, step - z, z))
        small = log_ndtr(jnp.where(upper, -z, z - step))
        middle = z - step / 2
        # The integral of the normal density over a short step: the midpoint rule and its first correction.
        short = jnp.log(step) - middle**2 / 2 - math.log(2 * math.pi) / 2 + jnp.log1p((middle**2 - 1) * step**2 / 24)
        is_short = (step < 0.03) & (step * jnp.abs(middle) < 0.3)
        value = jnp.where(is_short, short, log_difference(large, large - small))
        first = log_ndtr(self._z(jnp.ones_like(m)))
        at = jnp.asarray(x)
        return with_never(self, x, jnp.where(at < 1, -jnp.inf, jnp.where(at < 2, first, value)))


class Weibull(DelayLaw):
    """``P(D > m) = exp(-(m / scale)^shape)``: a Weibull time, rounded up; a stretched exponential for shape < 1.

    Args:
        scale: in rounds, > 0, one number an arm.
        shape: > 0, one number an arm.

    Raises:
        ValueError: a scale or shape that is not finite and positive.
    """

    scale: Float[Array, "*K"]
    shape: Float[Array, "*K"]

    def __init__(self, scale: Any, shape: Any):
        mend = "use Constant for a delay without spread"
        self.scale = _checks.floats("Weibull: scale", scale, "finite and > 0", mend)
        self.shape = _checks.floats("Weibull: shape", shape, "finite and > 0", mend)

    def _hazard(self, m: Array) -> Float[Array, "*K"]:
        """``(m / scale)^shape``, up to a value (e^80) at which the survival function has long been 0."""
        return jnp.exp(jnp.minimum(self.shape * (jnp.log(m) - jnp.log(self.scale)), 80))

    @property
    def mean(self) -> Float[Array, "*K"]:
        def integral_beyond(m: float) -> Array:
            inverse = 1 / self.shape
            return self.scale * jnp.exp(gammaln(1 + inverse)) * gammaincc(inverse, self._hazard(jnp.asarray(m)))

        return mean_of_ceil(self, integral_beyond)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.scale.dtype)
        return jnp.where(m < 1, 1, jnp.exp(-self._hazard(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = age(x, self.scale.dtype)
        return jnp.where(m < 1, 0, -jnp.expm1(-self._hazard(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return whole(self.scale * jnp.exp(jnp.log(-jnp.log(u)) / self.shape) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.scale.dtype), 2)
        ratio = self._hazard(m) * -jnp.expm1(self.shape * jnp.log1p(-1 / m))
        value = log_difference(-self._hazard(m - 1), ratio)
        first = jnp.log(-jnp.expm1(-self._hazard(jnp.ones_like(m))))
        at = jnp.asarray(x)
        return with_never(self, x, jnp.where(at < 1, -jnp.inf, jnp.where(at < 2, first, value)))
