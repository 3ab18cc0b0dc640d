"""What reward laws and delay laws share: one law for every arm, drawn by the inverse of its survival function."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from jaxbandit._arms import pick


def comparable(values: Shaped[Array, "..."], x: Any) -> tuple[Array, Array]:
    """``values`` and ``x`` in one type, to be compared: that of ``x`` if it is a float, else that of ``values``."""
    x = jnp.asarray(x)
    dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else values.dtype
    return values.astype(dtype), x.astype(dtype)


def safe_log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log x`` for x >= 0, with a gradient of 0 at 0: no NaN where a ``where`` has chosen another branch."""
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -jnp.inf)


class Law(eqx.Module):
    """A law for each arm. Every number is an array leaf: a scalar (the same for all arms) or one entry an arm.

    Leading axes of the leaves are for ``jax.vmap``; the last axis is the arms.
    """

    mean: eqx.AbstractVar[Float[Array, "*K"]]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """``()`` if all arms share one law, else ``(..., K)``."""
        return jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in jax.tree.leaves(self)))

    @abc.abstractmethod
    def survival(self, x: Any) -> Float[Array, "*K"]:
        """``P(X > x)``, arm by arm."""

    @abc.abstractmethod
    def isf(self, u: Float[Array, "..."]) -> Shaped[Array, "*K"]:
        """The inverse of the survival function, ``min{x : P(X > x) < u}`` for ``u`` in (0, 1].

        At a uniform ``u`` this has exactly the law of ``X``, and a tail as small as the smallest ``u`` is resolved.
        """

    @abc.abstractmethod
    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        """The logarithm of ``P(X = x)`` (of the density, for a continuous law), arm by arm."""

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        """``P(X <= x)``, arm by arm."""
        return 1 - self.survival(x)

    def log_survival(self, x: Any) -> Float[Array, "*K"]:
        """``log P(X > x)``, arm by arm."""
        return safe_log(self.survival(x))

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Shaped[Array, ""]]:
        """A function ``(u, arm) -> X`` that draws for one arm; what does not depend on the draw is computed once."""
        return lambda u, arm: jax.tree.map(lambda leaf: pick(leaf, arm), self).isf(u)

    def __check_init__(self) -> None:
        try:
            shape = self.batch_shape
        except ValueError:
            shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(self)]
            raise ValueError(
                f"{type(self).__name__}: the parameters have shapes {shapes}, which do not broadcast; "
                "give each parameter one number, or one number an arm"
            ) from None
        if 0 in shape:
            raise ValueError(f"{type(self).__name__} has zero arms; an instance needs at least one")


class RewardLaw(Law):
    """Rewards in [0, 1]."""

    @property
    def binary(self) -> bool:
        """Whether every reward is 0 or 1, so that arrivals can be counted in small integers."""
        return False


class DelayLaw(Law):
    """Delays in {0, 1, 2, ...} or never: ``isf`` gives int32, with ``NEVER`` for 2^30 rounds and more."""
