"""What reward laws and delay laws share: one law for every arm, drawn by the inverse of its survival function."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

UNROLLED_ARMS = 16
"""Up to this many arms a chain of selects beats a gather."""


def pick(values: Shaped[Array, "*batch K"] | Shaped[Array, ""], arm: Int[Array, ""]) -> Shaped[Array, "*batch"]:
    """The entry of the last axis that belongs to ``arm``; a scalar is the same for all arms."""
    if values.ndim == 0:
        return values
    if values.shape[-1] > UNROLLED_ARMS:
        return values[..., arm]
    chosen = values[..., 0]
    for i in range(1, values.shape[-1]):
        chosen = jnp.where(arm == i, values[..., i], chosen)
    return chosen


def all_of(kind: type, law: Any) -> bool:
    """Whether this is a law of that kind, for each arm."""
    members = law.laws if isinstance(law, PerArm) else (law,)
    return all(isinstance(member, kind) for member in members)


def comparable(values: Shaped[Array, "..."], x: Any) -> tuple[Array, Array]:
    """``values`` and ``x`` in one type, to be compared: that of ``x`` if it is a float, else that of ``values``."""
    x = jnp.asarray(x)
    dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else values.dtype
    return values.astype(dtype), x.astype(dtype)


def safe_log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log x`` for x >= 0, with a gradient of 0 at 0: no NaN where a ``where`` has chosen another branch."""
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -jnp.inf)


def is_arm(arm: Int[Array, ""], num_arms: int) -> Bool[Array, " K"]:
    """True at ``arm``."""
    return jnp.arange(num_arms, dtype=jnp.int32) == arm


def one_hot(arm: Int[Array, ""], num_arms: int) -> Int[Array, " K"]:
    """1 at ``arm``, else 0."""
    return is_arm(arm, num_arms).astype(jnp.int32)


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


class PerArm(DelayLaw, RewardLaw):
    """A law of its own for every arm: ``PerArm([NoDelay(1), Pareto(0.3)])``.

    The laws are all delay laws or all reward laws, one arm each.
    """

    laws: tuple[Law, ...]

    def __init__(self, laws: Sequence[Law]):
        if isinstance(laws, Law) or not isinstance(laws, Sequence):
            raise TypeError(f"PerArm: laws must be a list with one law an arm, got {laws!r}")
        self.laws = tuple(laws)
        if not self.laws:
            raise ValueError("PerArm: laws is empty; give one law an arm")
        kinds = {kind for law in self.laws for kind in (RewardLaw, DelayLaw) if isinstance(law, kind)}
        if not all(isinstance(law, Law) for law in self.laws) or len(kinds) != 1:
            raise TypeError(f"PerArm: laws must be all reward laws or all delay laws, got {self.laws!r}")
        for i, law in enumerate(self.laws):
            if law.batch_shape not in ((), (1,)):
                raise ValueError(f"PerArm: laws[{i}] is for {law.batch_shape[-1]} arms; give one law for each arm")

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return (len(self.laws),)

    @property
    def binary(self) -> bool:
        return all(isinstance(law, RewardLaw) and law.binary for law in self.laws)

    def _by_arm(self, function: Callable[[Law, Any], Array], x: Any) -> Array:
        x = jnp.broadcast_to(x, jnp.broadcast_shapes(jnp.shape(x), self.batch_shape))
        parts = (function(law, x[..., i]) for i, law in enumerate(self.laws))
        return jnp.stack([jnp.reshape(part, x.shape[:-1]) for part in parts], axis=-1)

    @property
    def mean(self) -> Float[Array, " K"]:
        return self._by_arm(lambda law, _: law.mean, 0)

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self._by_arm(lambda law, x: law.survival(x), x)

    def isf(self, u: Float[Array, "..."]) -> Shaped[Array, "*K"]:
        return self._by_arm(lambda law, u: law.isf(u), u)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return self._by_arm(lambda law, x: law.log_prob(x), x)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Shaped[Array, ""]]:
        samplers = [law.sampler() for law in self.laws]
        first = jnp.zeros((), jnp.int32)
        return lambda u, arm: pick(jnp.stack([sample(u, first) for sample in samplers]), arm)
