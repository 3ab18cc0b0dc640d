"""Delays that are whole rounds by themselves: none, fixed, geometric, uniform, measured."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw, comparable
from jaxbandit.laws.rounding import whole, with_never
from jaxbandit.laws.tables import Table


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
        return whole(jnp.log(u) / self._log_ratio)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        m = jnp.maximum(jnp.asarray(x, dtype=self.mean.dtype), 0)
        return with_never(self, x, m * self._log_ratio - jnp.log1p(self.mean))


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
        if _checks.is_traced((low, high)):
            self.high = _checks.invalid_unless(self.high >= self.low, self.high)
        elif (np.asarray(high) < np.asarray(low)).any():
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
