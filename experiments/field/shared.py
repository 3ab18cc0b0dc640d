"""Regret on the same luck, and numbers as they are said."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import jaxbandit as jb


class OneOf(jb.DelayLaw):
    """The law ``laws[which]``, one number an arm: a policy is compiled once for all of them."""

    laws: tuple[jb.DelayLaw, ...]
    which: Int[Array, ""]

    def __init__(self, laws: Any, which: int):
        self.laws = tuple(laws)
        self.which = jnp.asarray(which, jnp.int32)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.laws[0].batch_shape

    def _chosen(self, part: Callable[[jb.DelayLaw], Array]) -> Array:
        return jax.lax.switch(self.which, [lambda law=law: part(law) for law in self.laws])

    @property
    def mean(self) -> Float[Array, "*K"]:
        return self._chosen(lambda law: law.mean)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self._chosen(lambda law: law.survival(x))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        return self._chosen(lambda law: law.cdf(x))

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        return self._chosen(lambda law: law.isf(u))

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return self._chosen(lambda law: law.log_prob(x))

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        samplers = [law.sampler() for law in self.laws]
        return lambda u, arm: jax.lax.switch(self.which, samplers, u, arm)


class Quotient(NamedTuple):
    """Of two means over the same luck, with its standard error."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.standard_error:.2f}"


def quotient(first: Any, second: Any) -> Quotient:
    """Mean of ``first`` over mean of ``second``, run by run on the same luck; the error to first order."""
    x, y = np.asarray(first, float), np.asarray(second, float)
    value = x.mean() / y.mean()
    return Quotient(float(value), float((x - value * y).std(ddof=1) / np.sqrt(len(x)) / y.mean()))


def said(values: Any) -> str:
    """Mean over the runs and its standard error."""
    found = jax.device_get(jb.mean_ci(values))
    return f"{found.mean:.1f} ± {found.standard_error:.1f}"


def apart(first: Any, second: Any) -> tuple[jb.MeanCI, str]:
    """By how much ``first`` is above ``second``, run by run on the same luck; and in words."""
    found = jax.device_get(jb.paired_difference(first, second))
    return found, f"{found.mean:+.1f} ± {found.standard_error:.1f}"


def measured(values: Any) -> dict[str, object]:
    """What a row of the CSV says of runs: mean regret, its 95 % interval, and of how many runs."""
    found = jax.device_get(jb.mean_ci(values))
    return {"regret": found.mean, "low": found.low, "high": found.high, "seeds": len(values)}
