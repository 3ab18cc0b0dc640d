"""Delay laws on {0, 1, 2, ...} and never.

A continuous law X > 0 (Pareto, log-normal, Weibull) is discretised upwards, ``D = ceil(X)``: then
``P(D > m) = P(X > m)`` at every whole m, and the tail of the delay is the tail of X exactly.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaincc, gammaln, log_ndtr, ndtr, ndtri, zeta
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.laws import DelayLaw, all_of, comparable, pick, safe_log
from jaxbandit.tables import Table


def _whole(x: Float[Array, "..."]) -> Int[Array, "..."]:
    """The whole number ``floor(x)``, capped while still a float: an integer cast of a larger one would wrap."""
    return jnp.where(x < NEVER, x, NEVER).astype(jnp.int32)


def _age(m: Any, dtype: Any) -> tuple[Array, Array]:
    """``m`` as a float, and a copy raised to at least 1 that is safe in a logarithm."""
    m = jnp.asarray(m, dtype=dtype)
    return m, jnp.maximum(m, 1)


def _log_difference(log_survival_before: Array, log_ratio: Array) -> Float[Array, "..."]:
    """``log(S(m-1) - S(m))`` from ``log S(m-1)`` and ``log(S(m-1)/S(m)) >= 0``, without cancellation."""
    tiny = jnp.finfo(log_ratio.dtype).tiny
    safe = jnp.where(log_ratio > 0, log_ratio, tiny)
    return jnp.where(log_ratio > 0, log_survival_before + jnp.log(-jnp.expm1(-safe)), -jnp.inf)


def _with_never(law: DelayLaw, m: Any, log_pmf: Array) -> Float[Array, "..."]:
    """``log_pmf``, where ``NEVER`` gets all that lies at or beyond it."""
    m = jnp.asarray(m)
    return jnp.where(m < 0, -jnp.inf, jnp.where(m >= NEVER, safe_log(law.survival(NEVER - 1)), log_pmf))


def _mean_of_ceil(law: DelayLaw, integral_beyond: Callable[[float], Array], first: int = 4096) -> Float[Array, "*K"]:
    """``E D = sum of P(D > m) over m >= 0``: term by term at first, then by the Euler-Maclaurin formula."""
    terms = jax.vmap(law.survival)(jnp.arange(first, dtype=float))
    at_end = law.survival(float(first))
    slope = (law.survival(first + 1.0) - law.survival(first - 1.0)) / 2
    return jnp.sum(terms, axis=0) + integral_beyond(float(first)) + at_end / 2 - slope / 12


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
        m, safe = _age(x, self.tail_index.dtype)
        return jnp.where(m < 1, 1, jnp.exp(-self.tail_index * jnp.log(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = _age(x, self.tail_index.dtype)
        return jnp.where(m < 1, 0, -jnp.expm1(-self.tail_index * jnp.log(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return _whole(jnp.exp(-jnp.log(u) / self.tail_index) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.tail_index.dtype), 2)
        ratio = -self.tail_index * jnp.log1p(-1 / m)
        value = _log_difference(-self.tail_index * jnp.log(m - 1), ratio)
        return _with_never(self, x, jnp.where(jnp.asarray(x) < 2, -jnp.inf, value))


class Constant(DelayLaw):
    """``P(D = delay) = 1``.

    Args:
        delay: whole number >= 0, one number an arm; ``jaxbandit.NEVER`` for rewards that never arrive.

    Raises:
        TypeError: a delay that is not a whole number.
        ValueError: a negative delay.
    """

    delay: Int[Array, "*K"]

    def __init__(self, delay: Any):
        self.delay = _checks.integers("Constant: delay", delay, 0, NEVER, "use jaxbandit.NEVER for a lost reward")

    @property
    def mean(self) -> Float[Array, "*K"]:
        return jnp.where(self.delay < NEVER, self.delay.astype(float), jnp.inf)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        delay, x = comparable(self.delay, x)
        return (delay > x).astype(float)

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return jnp.broadcast_to(self.delay, jnp.broadcast_shapes(jnp.shape(u), self.delay.shape))

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        delay, x = comparable(self.delay, x)
        return jnp.where(delay == x, 0.0, -jnp.inf)


class NoDelay(DelayLaw):
    """``P(D = 0) = 1``: every reward is known before the next round.

    Args:
        num_arms: number of arms; without it, any number.
    """

    num_arms: int | None = eqx.field(static=True)

    def __init__(self, num_arms: int | None = None):
        if num_arms is not None:
            num_arms = _checks.whole_number("NoDelay: num_arms", num_arms, 1, 2**31 - 1, "give the number of arms")
        self.num_arms = num_arms

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return () if self.num_arms is None else (self.num_arms,)

    @property
    def mean(self) -> Float[Array, "*K"]:
        return jnp.zeros(self.batch_shape)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        x = jnp.asarray(x)
        return jnp.broadcast_to((x < 0).astype(float), jnp.broadcast_shapes(x.shape, self.batch_shape))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return jnp.zeros(jnp.broadcast_shapes(jnp.shape(u), self.batch_shape), jnp.int32)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        x = jnp.asarray(x)
        return jnp.broadcast_to(jnp.where(x == 0, 0.0, -jnp.inf), jnp.broadcast_shapes(x.shape, self.batch_shape))

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        return lambda u, arm: jnp.zeros((), jnp.int32)


class Geometric(DelayLaw):
    """``P(D > m) = (mean / (1 + mean))^(m + 1)`` on {0, 1, ...}: each round the reward arrives with probability
    ``1 / (1 + mean)``, from the round of the pull on.

    Args:
        mean: mean delay in rounds, >= 0, one number an arm.

    Raises:
        ValueError: a mean that is negative or not finite.
    """

    mean: Float[Array, "*K"]

    def __init__(self, mean: Any):
        self.mean = _checks.floats("Geometric: mean", mean, "finite and >= 0", "give the mean delay in rounds")

    @property
    def _log_ratio(self) -> Float[Array, "*K"]:
        """``log(mean / (1 + mean))``, where a mean of 0 gets the lowest float: 0 times it is 0."""
        positive = self.mean > 0
        lowest = jnp.finfo(self.mean.dtype).min
        return jnp.where(positive, -jnp.log1p(1 / jnp.where(positive, self.mean, 1)), lowest)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.floor(jnp.asarray(x, dtype=self.mean.dtype))
        first = self.mean / (1 + self.mean)
        return jnp.where(m < 0, 1, first * jnp.exp(self._log_ratio * jnp.maximum(m, 0)))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.floor(jnp.asarray(x, dtype=self.mean.dtype))
        return jnp.where(m < 0, 0, -jnp.expm1(self._log_ratio * (jnp.maximum(m, 0) + 1)))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return _whole(jnp.log(u) / self._log_ratio)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.mean.dtype), 0)
        return _with_never(self, x, m * self._log_ratio - jnp.log1p(self.mean))


class DiscreteUniform(DelayLaw):
    """``P(D = m) = 1 / (high - low + 1)`` for m in low..high, both included.

    Args:
        low: whole number >= 0, one number an arm.
        high: whole number >= low, one number an arm.

    Raises:
        TypeError: a bound that is not a whole number.
        ValueError: low < 0, high < low or high >= 2^24 (float32 counts no further).
    """

    low: Int[Array, "*K"]
    high: Int[Array, "*K"]

    def __init__(self, low: Any, high: Any):
        limit = 2**24 - 1
        self.low = _checks.integers("DiscreteUniform: low", low, 0, limit, "give a shorter delay")
        self.high = _checks.integers("DiscreteUniform: high", high, 0, limit, "give a shorter delay")
        if not _checks.is_traced((low, high)) and (np.asarray(high) < np.asarray(low)).any():
            raise ValueError(f"DiscreteUniform: high must be >= low, got low={low}, high={high}; swap them")

    @property
    def _size(self) -> Float[Array, "*K"]:
        return (self.high - self.low + 1).astype(float)

    @property
    def mean(self) -> Float[Array, "*K"]:
        return (self.low + self.high).astype(float) / 2

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.floor(jnp.asarray(x, dtype=float))
        return jnp.clip((self.high.astype(float) - m) / self._size, 0, 1)

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return self.high + 1 - jnp.ceil(u * self._size).astype(jnp.int32)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        low, x = comparable(self.low, x)
        inside = (low <= x) & (x <= self.high.astype(low.dtype))
        return jnp.where(inside, -jnp.log(self._size), -jnp.inf)


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

        return _mean_of_ceil(self, integral_beyond)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = _age(x, self.median.dtype)
        return jnp.where(m < 1, 1, ndtr(-self._z(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = _age(x, self.median.dtype)
        return jnp.where(m < 1, 0, ndtr(self._z(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return _whole(self.median * jnp.exp(-self.sigma * ndtri(u)) + 1)

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
        value = jnp.where(is_short, short, _log_difference(large, large - small))
        first = log_ndtr(self._z(jnp.ones_like(m)))
        at = jnp.asarray(x)
        return _with_never(self, x, jnp.where(at < 1, -jnp.inf, jnp.where(at < 2, first, value)))


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

        return _mean_of_ceil(self, integral_beyond)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        m, safe = _age(x, self.scale.dtype)
        return jnp.where(m < 1, 1, jnp.exp(-self._hazard(jnp.floor(safe))))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        m, safe = _age(x, self.scale.dtype)
        return jnp.where(m < 1, 0, -jnp.expm1(-self._hazard(jnp.floor(safe))))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return _whole(self.scale * jnp.exp(jnp.log(-jnp.log(u)) / self.shape) + 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.scale.dtype), 2)
        ratio = self._hazard(m) * -jnp.expm1(self.shape * jnp.log1p(-1 / m))
        value = _log_difference(-self._hazard(m - 1), ratio)
        first = jnp.log(-jnp.expm1(-self._hazard(jnp.ones_like(m))))
        at = jnp.asarray(x)
        return _with_never(self, x, jnp.where(at < 1, -jnp.inf, jnp.where(at < 2, first, value)))


class Empirical(DelayLaw):
    """``P(D = delays[j]) = probabilities[..., j]``: a histogram of delays that were measured.

    Args:
        delays: n whole numbers >= 0, increasing, the same for all arms; ``jaxbandit.NEVER`` may be the last.
        probabilities: n numbers that sum to 1, or a row of n numbers for each arm ([K, n]).

    Raises:
        TypeError: a delay that is not a whole number.
        ValueError: delays that are negative or out of order, probabilities that do not sum to 1.
    """

    table: Table

    def __init__(self, delays: Any, probabilities: Any):
        delays = _checks.integers("Empirical: delays", delays, 0, NEVER, "round delays to whole rounds")
        self.table = Table("Empirical", "delays", delays, probabilities)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.table.shape

    @property
    def mean(self) -> Float[Array, "*K"]:
        return self.table.mean(jnp.where(self.table.values < NEVER, self.table.values.astype(float), jnp.inf))

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self.table.survival(x)

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return self.table.isf(u)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return self.table.log_prob(x)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        return self.table.draw


class Lossy(DelayLaw):
    """With probability ``loss`` the reward never arrives, else it follows ``delay``:
    ``P(D > m) = loss + (1 - loss) P(delay > m)``.

    Draws resolve the loss to 2^-24 in single precision, and the tail of the rewards that arrive to 2^-32.

    Args:
        delay: the law of rewards that do arrive.
        loss: in [0, 1], one number an arm.

    Raises:
        ValueError: a loss outside [0, 1].
    """

    delay: DelayLaw
    loss: Float[Array, "*K"]

    def __init__(self, delay: DelayLaw, loss: Any):
        if not all_of(DelayLaw, delay):
            raise TypeError(f"Lossy: delay must be a delay law, got {delay!r}")
        self.delay = delay
        self.loss = _checks.floats("Lossy: loss", loss, "in [0, 1]", "give a probability")

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return jnp.broadcast_shapes(self.delay.batch_shape, self.loss.shape)

    @property
    def mean(self) -> Float[Array, "*K"]:
        return jnp.where(self.loss > 0, jnp.inf, self.delay.mean)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self.loss + (1 - self.loss) * self.delay.survival(x)

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        return (1 - self.loss) * self.delay.cdf(x)

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        kept = 1 - self.loss
        rest = jnp.clip((u - self.loss) / jnp.where(kept > 0, kept, 1), jnp.finfo(self.loss.dtype).tiny, 1)
        return jnp.where(u <= self.loss, NEVER, self.delay.isf(rest))

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        arriving = safe_log(1 - self.loss) + self.delay.log_prob(jnp.minimum(x, NEVER - 1))
        return _with_never(self, x, arriving)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        """Losses are drawn from large ``u``, so that small ``u`` resolve the tail of the rewards that arrive."""
        sample = self.delay.sampler()

        def draw(u: Float[Array, ""], arm: Int[Array, ""]) -> Int[Array, ""]:
            kept = 1 - pick(self.loss, arm)
            lost = u > kept
            return jnp.where(lost, NEVER, sample(jnp.where(lost, 1, u / kept), arm))

        return draw


class Mixture(DelayLaw):
    """``P(D > m) = sum over j of weights[..., j] P(laws[j] > m)``: some buyers are quick, others slow.

    Args:
        laws: the J laws that are mixed.
        weights: J numbers that sum to 1, or a row of J numbers for each arm ([K, J]).

    Raises:
        TypeError: something that is not a delay law among ``laws``.
        ValueError: weights that are negative, do not sum to 1 or are not as many as the laws.
    """

    laws: tuple[DelayLaw, ...]
    weights: Float[Array, "*K J"]

    def __init__(self, laws: Sequence[DelayLaw], weights: Any):
        if not isinstance(laws, Sequence) or not laws or not all(all_of(DelayLaw, law) for law in laws):
            raise TypeError(f"Mixture: laws must be a list of delay laws, got {laws!r}")
        self.laws = tuple(laws)
        weights = _checks.floats("Mixture: weights", weights, "in [0, 1]", "divide by their sum")
        self.weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
        if self.weights.ndim == 0 or self.weights.shape[-1] != len(self.laws):
            shape = self.weights.shape
            raise ValueError(f"Mixture: weights must end in one number for each of {len(self.laws)} laws, got {shape}")
        if not _checks.is_traced(weights):
            total = np.asarray(weights, dtype=float).sum(axis=-1)
            if (np.abs(total - 1) > 1e-4).any():
                raise ValueError(f"Mixture: weights must sum to 1, got {total}; divide them by their sum")

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return jnp.broadcast_shapes(self.weights.shape[:-1], *(law.batch_shape for law in self.laws))

    @property
    def mean(self) -> Float[Array, "*K"]:
        terms = [jnp.where(w > 0, w * law.mean, 0) for w, law in self._parts()]
        return jnp.broadcast_to(sum(terms[1:], terms[0]), self.batch_shape)

    def _parts(self) -> list[tuple[Array, DelayLaw]]:
        return [(self.weights[..., j], law) for j, law in enumerate(self.laws)]

    def survival(self, x: Any) -> Float[Array, "*K"]:
        terms = [w * law.survival(x) for w, law in self._parts()]
        return sum(terms[1:], terms[0])

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        terms = [w * law.cdf(x) for w, law in self._parts()]
        return sum(terms[1:], terms[0])

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        """By bisection between the laws' own quantiles: the survival functions are all that is known."""
        shape = jnp.broadcast_shapes(jnp.shape(u), self.batch_shape)
        quantiles = jnp.stack([jnp.broadcast_to(law.isf(u), shape) for law in self.laws])
        low, high = jnp.min(quantiles, axis=0), jnp.max(quantiles, axis=0)

        def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = low + (high - low) // 2
            beyond = self.survival(middle) >= u
            return jnp.where(beyond & (low < high), middle + 1, low), jnp.where(beyond, high, middle)

        return jax.lax.fori_loop(0, NEVER.bit_length(), halve, (low, high))[1]

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        terms = jnp.stack(jnp.broadcast_arrays(*(safe_log(w) + law.log_prob(x) for w, law in self._parts())))
        return jax.scipy.special.logsumexp(terms, axis=0)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        return lambda u, arm: pick(self.isf(u), arm)
