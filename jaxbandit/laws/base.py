"""What reward laws and delay laws share: one law for every arm, drawn by the inverse of its survival function."""

import abc
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from jaxbandit import _keys
from jaxbandit._arms import pick
from jaxbandit._show import show


def survival_by_arm(law: "Law", x: Array) -> Array:
    """``P(X > x)`` with one x an arm. A formula of its own broadcasts; of one that asks another law, the diagonal."""
    found = getattr(type(law), "survival").formula(law, x)  # noqa: B009
    return jnp.diagonal(found) if found.ndim > max(x.ndim, len(law.batch_shape)) else found


def comparable(values: Shaped[Array, "..."], x: Any) -> tuple[Array, Array]:
    """``values`` and ``x`` in one type, to be compared: that of ``x`` if it is a float, else that of ``values``."""
    x = jnp.asarray(x)
    dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else values.dtype
    return values.astype(dtype), x.astype(dtype)


def safe_log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log x`` for x >= 0, with a gradient of 0 at 0: no NaN where a ``where`` has chosen another branch."""
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -jnp.inf)


FORMULAS = ("survival", "cdf", "log_survival", "log_prob")


def at_every_point(formula: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """The method that applies ``formula``, written for a single x, at every entry of an x of any shape."""

    @functools.wraps(formula)
    def method(self: Any, x: Any) -> Array:
        at = functools.partial(formula, self)
        if np.ndim(x) == 0:
            return at(x)
        for _ in range(np.ndim(x)):
            at = jax.vmap(at)
        return at(jnp.asarray(x))

    vars(method)["formula"] = formula
    return method


class Law(eqx.Module):
    """A law for each arm. Every number is an array leaf: a scalar (the same for all arms) or one entry an arm.

    Leading axes of the leaves are for ``jax.vmap``; the last axis is the arms.

    ``survival``, ``cdf``, ``log_survival`` and ``log_prob`` take an x of any shape [...] and give [..., K] for a law
    with K arms, [...] for one without: every arm at every x, also where there happen to be K of them. A law writes them
    as formulas of a single x, for all its arms at once.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in FORMULAS:
            if name in vars(cls) and not hasattr(getattr(cls, name), "formula"):
                setattr(cls, name, at_every_point(getattr(cls, name)))

    mean: eqx.AbstractVar[Float[Array, "*K"]]

    def __repr__(self) -> str:
        return show(self)

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

    def sample(self, key: Any, shape: int | tuple[int, ...] = ()) -> Shaped[Array, "..."]:
        """Independent draws, ``[*shape, K]`` for a law with K arms and ``[*shape]`` for one without.

        Delays are int32, with ``jaxbandit.NEVER`` for a reward that never arrives.

        Args:
            key: a key of ``jax.random``, typed or raw, or a whole number below 2^32.
            shape: how many draws of each arm.

        Raises:
            TypeError, ValueError: as for the key of ``simulate``.
            ValueError: a law with leading axes; use ``jax.vmap``.
        """
        arms = self.batch_shape
        if len(arms) > 1:
            raise ValueError(f"sample: the law has shape {arms}; use jax.vmap over its leading axes")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        key = jax.random.wrap_key_data(_keys.words(key), impl="threefry2x32")
        u = _keys.to_uniform(jax.random.bits(key, (*shape, *arms), jnp.uint32))
        draw, arm = self.sampler(), jnp.zeros((), jnp.int32)
        if arms:
            draw, arm = jax.vmap(draw), jnp.arange(*arms, dtype=jnp.int32)
        for _ in shape:
            draw = jax.vmap(draw, (0, None))
        return draw(u, arm)

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
