"""Laws made of laws: one for each arm, a share that never arrives, a mixture."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw, Law, RewardLaw, safe_log, survival_by_arm
from jaxbandit.laws.rounding import with_never
from jaxbandit.laws.tables import sums_to_one


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
        return self._by_arm(lambda law, x: survival_by_arm(law, jnp.asarray(x)), x)

    def isf(self, u: Float[Array, "..."]) -> Shaped[Array, "*K"]:
        return self._by_arm(lambda law, u: law.isf(u), u)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return self._by_arm(lambda law, x: law.log_prob(x), x)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Shaped[Array, ""]]:
        samplers = [law.sampler() for law in self.laws]
        first = jnp.zeros((), jnp.int32)
        return lambda u, arm: pick(jnp.stack([sample(u, first) for sample in samplers]), arm)


def all_of(kind: type, law: Any) -> bool:
    """Whether this is a law of that kind, for each arm."""
    members = law.laws if isinstance(law, PerArm) else (law,)
    return all(isinstance(member, kind) for member in members)


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
        return self.loss + (1 - self.loss) * survival_by_arm(self.delay, jnp.asarray(x))

    def cdf(self, x: Any) -> Float[Array, "*K"]:
        return (1 - self.loss) * self.delay.cdf(x)

    def isf(self, u: Float[Array, "..."]) -> Int[Array, "*K"]:
        kept = 1 - self.loss
        rest = jnp.clip((u - self.loss) / jnp.where(kept > 0, kept, 1), jnp.finfo(self.loss.dtype).tiny, 1)
        return jnp.where(u <= self.loss, NEVER, self.delay.isf(rest))

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        arriving = safe_log(1 - self.loss) + self.delay.log_prob(jnp.minimum(x, NEVER - 1))
        return with_never(self, x, arriving)

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
        if _checks.is_traced(weights):
            self.weights = _checks.nan_unless(sums_to_one(weights), self.weights)
        else:
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
        terms = [w * survival_by_arm(law, jnp.asarray(x)) for w, law in self._parts()]
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
            beyond = survival_by_arm(self, middle) >= u
            return jnp.where(beyond & (low < high), middle + 1, low), jnp.where(beyond, high, middle)

        return jax.lax.fori_loop(0, NEVER.bit_length(), halve, (low, high))[1]

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        terms = jnp.stack(jnp.broadcast_arrays(*(safe_log(w) + law.log_prob(x) for w, law in self._parts())))
        return jax.scipy.special.logsumexp(terms, axis=0)

    def sampler(self) -> Callable[[Float[Array, ""], Int[Array, ""]], Int[Array, ""]]:
        return lambda u, arm: pick(self.isf(u), arm)
