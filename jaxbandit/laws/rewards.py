"""Reward laws on [0, 1]."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtr, ndtri
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit.laws.base import RewardLaw, safe_log
from jaxbandit.laws.tables import Table


def _check_mean(law: str, mean: Any) -> Array:
    mend = "rescale rewards to [0, 1]"
    return _checks.floats(f"{law}: mean", mean, "in [0, 1]", mend)


class Bernoulli(RewardLaw):
    """``P(C = 1) = mean``, ``P(C = 0) = 1 - mean``: a conversion, or none.

    Args:
        mean: one number in [0, 1] an arm.

    Raises:
        ValueError: a mean outside [0, 1] or NaN.
    """

    mean: Float[Array, "*K"]

    def __init__(self, mean: Any):
        self.mean = _check_mean("Bernoulli", mean)

    @property
    def binary(self) -> bool:
        return True

    def survival(self, x: Any) -> Float[Array, "*K"]:
        x = jnp.asarray(x)
        return jnp.where(x < 0, 1, jnp.where(x < 1, self.mean, 0))

    def isf(self, u: Float[Array, "..."]) -> Float[Array, "*K"]:
        return (u <= self.mean).astype(self.mean.dtype)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        one, zero = jnp.asarray(x) == 1, jnp.asarray(x) == 0
        fails = jnp.where(self.mean < 1, jnp.log1p(-jnp.where(self.mean < 1, self.mean, 0)), -jnp.inf)
        return jnp.where(one, safe_log(self.mean), jnp.where(zero, fails, -jnp.inf))


class Deterministic(RewardLaw):
    """``P(C = mean) = 1``.

    Args:
        mean: one number in [0, 1] an arm.

    Raises:
        ValueError: a mean outside [0, 1] or NaN.
    """

    mean: Float[Array, "*K"]

    def __init__(self, mean: Any):
        self.mean = _check_mean("Deterministic", mean)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return (jnp.asarray(x, self.mean.dtype) < self.mean).astype(self.mean.dtype)

    def isf(self, u: Float[Array, "..."]) -> Float[Array, "*K"]:
        return jnp.broadcast_to(self.mean, jnp.broadcast_shapes(jnp.shape(u), self.mean.shape))

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return jnp.where(jnp.asarray(x, self.mean.dtype) == self.mean, 0.0, -jnp.inf)


class Discrete(RewardLaw):
    """``P(C = values[j]) = probabilities[..., j]``.

    Args:
        values: the n possible rewards, in [0, 1], the same for all arms.
        probabilities: n numbers that sum to 1, or a row of n numbers for each arm ([K, n]).

    Raises:
        ValueError: a value outside [0, 1], negative probabilities or a sum other than 1.
    """

    table: Table

    def __init__(self, values: Any, probabilities: Any):
        mend = "rescale rewards to [0, 1]"
        values = _checks.floats("Discrete: values", values, "in [0, 1]", mend)
        self.table = Table("Discrete", "values", values, probabilities)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.table.shape

    @property
    def mean(self) -> Float[Array, "*K"]:
        return self.table.mean(self.table.values)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self.table.survival(x)

    def isf(self, u: Float[Array, "..."]) -> Float[Array, "*K"]:
        return self.table.isf(u)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return self.table.log_prob(x)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Array]:
        return self.table.draw


class TruncatedNormal(RewardLaw):
    """A normal law conditioned to lie in [0, 1]: density ``φ((x - loc)/scale) / (scale (Φ(b) - Φ(a)))``,
    ``a = -loc/scale``, ``b = (1 - loc)/scale``.

    Args:
        loc: mean of the normal law before it is truncated, one number an arm.
        scale: its standard deviation, in (0, 10], one number an arm.

    Raises:
        ValueError: a scale outside (0, 10] (above, the law is uniform but for single precision), or [0, 1] more than 8
            scales away from loc.
    """

    loc: Float[Array, "*K"]
    scale: Float[Array, "*K"]

    def __init__(self, loc: Any, scale: Any):
        self.loc = _checks.floats("TruncatedNormal: loc", loc, "finite", "give a finite number")
        self.scale = _checks.floats(
            "TruncatedNormal: scale",
            scale,
            "in (0, 10]",
            "use Deterministic for a reward without noise, Discrete for one that is nearly uniform",
        )
        if _checks.is_traced((loc, scale)):
            near = jnp.maximum(-self.loc, self.loc - 1) <= 8 * self.scale
            self.scale = _checks.nan_unless(near, jnp.broadcast_to(self.scale, near.shape))
        else:
            distance = np.maximum(-np.asarray(loc), np.asarray(loc) - 1) / np.asarray(scale)
            if (distance > 8).any():
                raise ValueError(
                    f"TruncatedNormal: loc must lie within 8 scales of [0, 1], got loc={loc}, scale={scale}; "
                    "use Deterministic at the nearer end"
                )

    @property
    def _edges(self) -> tuple[Array, Array, Array, Array]:
        """The edges a < b in units of scale, mirrored where loc > 1/2 so that both tails are small numbers."""
        sign = jnp.where(self.loc > 0.5, -1.0, 1.0).astype(self.loc.dtype)
        low, high = -self.loc / self.scale, (1 - self.loc) / self.scale
        return sign, jnp.where(sign > 0, low, -high), jnp.where(sign > 0, high, -low), self.scale

    def _mass(self) -> Float[Array, "*K"]:
        _, a, b, _ = self._edges
        return ndtr(-a) - ndtr(-b)

    @property
    def mean(self) -> Float[Array, "*K"]:
        sign, a, b, scale = self._edges
        density = lambda z: jnp.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
        return self.loc + sign * scale * (density(a) - density(b)) / self._mass()

    def survival(self, x: Any) -> Float[Array, "*K"]:
        sign, a, b, scale = self._edges
        z = sign * (jnp.clip(jnp.asarray(x, self.loc.dtype), 0, 1) - self.loc) / scale
        above = (ndtr(-z) - ndtr(-b)) / self._mass()
        below = (ndtr(-a) - ndtr(-z)) / self._mass()
        return jnp.where(sign > 0, above, below)

    def isf(self, u: Float[Array, "..."]) -> Float[Array, "*K"]:
        sign, a, b, scale = self._edges
        near, far = ndtr(-a), ndtr(-b)
        above = jnp.where(sign > 0, far + u * (near - far), near - u * (near - far))
        return jnp.clip(self.loc - sign * scale * ndtri(above), 0, 1)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        _, a, b, scale = self._edges
        x = jnp.asarray(x, self.loc.dtype)
        z = (x - self.loc) / scale
        log_mass = log_ndtr(-a) + jnp.log1p(-jnp.exp(log_ndtr(-b) - log_ndtr(-a)))
        value = -z * z / 2 - math.log(2 * math.pi) / 2 - jnp.log(scale) - log_mass
        return jnp.where((x >= 0) & (x <= 1), value, -jnp.inf)
