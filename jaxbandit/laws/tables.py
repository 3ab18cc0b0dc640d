"""A law with finitely many values, given as a table: what ``Discrete`` rewards and ``Empirical`` delays share."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit.laws.base import comparable, safe_log


def sums_to_one(probabilities: Float[Array, "*K n"]) -> Bool[Array, "*K 1"]:
    """But for the rounding of what was printed."""
    return jnp.abs(jnp.sum(probabilities, axis=-1, keepdims=True) - 1) <= 1e-4


class Table(eqx.Module):
    """``P(X = values[j]) = probabilities[..., j]``, values increasing.

    ``beyond[..., j] = P(X > values[j])`` is summed from the small end, so that a rare large value keeps its
    relative precision; the last entry is exactly 0.
    """

    values: Shaped[Array, " n"]
    probabilities: Float[Array, "*K n"]
    beyond: Float[Array, "*K n"] = eqx.field(repr=False)

    def __init__(self, law: str, name: str, values: Array, probabilities: Any):
        self.probabilities = _checks.floats(
            f"{law}: probabilities", probabilities, "in [0, 1]", "divide counts by their sum"
        )
        if values.ndim != 1 or self.probabilities.ndim == 0 or self.probabilities.shape[-1] != values.shape[0]:
            raise ValueError(
                f"{law}: probabilities must have shape [n] or [K, n] for the n {name} (a vector), got {name} of "
                f"shape {values.shape} and probabilities of shape {self.probabilities.shape}"
            )
        good = jnp.ones((), bool)
        if _checks.is_traced((values, probabilities)):
            good = sums_to_one(self.probabilities) & (values[1:] > values[:-1]).all()
        else:
            total = np.asarray(probabilities, dtype=float).sum(axis=-1)
            if (np.abs(total - 1) > 1e-4).any():
                raise ValueError(f"{law}: probabilities must sum to 1, got {total}; divide them by their sum")
            if (np.diff(np.asarray(values)) <= 0).any():
                raise ValueError(f"{law}: {name} must increase strictly; sort them and add up what repeats")
        self.values = values
        total = jnp.sum(self.probabilities, axis=-1, keepdims=True)
        self.probabilities = _checks.nan_unless(good, self.probabilities / total)
        tails = jnp.cumsum(self.probabilities[..., ::-1], axis=-1)[..., ::-1]
        self.beyond = jnp.concatenate([tails[..., 1:], jnp.zeros_like(tails[..., :1])], axis=-1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.probabilities.shape[:-1]

    def survival(self, x: Any) -> Float[Array, "*K"]:
        return self._total(x, jnp.greater)

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        return safe_log(self._total(x, jnp.equal))

    def _total(self, x: Any, relation: Callable[[Array, Array], Array]) -> Float[Array, "*K"]:
        """The probability of the values that stand in ``relation`` to x."""
        x, probabilities = self._align(x, self.probabilities)
        values = jnp.expand_dims(self.values, tuple(range(x.ndim - 1)))
        return jnp.sum(jnp.where(relation(*comparable(values, x)), probabilities, 0), axis=-1)

    def mean(self, of: Float[Array, " n"]) -> Float[Array, "*K"]:
        """The mean of what each value stands for."""
        of = jnp.broadcast_to(of, self.probabilities.shape)
        return jnp.sum(jnp.where(self.probabilities > 0, self.probabilities * of, 0), axis=-1)

    def isf(self, u: Float[Array, "..."]) -> Shaped[Array, "*K"]:
        u, beyond = self._align(u, self.beyond)
        return self.values[jnp.sum(beyond >= u, axis=-1)]

    def _align(self, x: Any, table: Float[Array, "*K n"]) -> tuple[Array, Float[Array, "..."]]:
        """``x`` with a last axis of 1 beside a ``table`` of as many axes: nothing is left to promote."""
        x = jnp.asarray(x)
        rank = max(x.ndim, len(self.shape))
        x = jnp.expand_dims(x, (*range(rank - x.ndim), rank))
        return x, jnp.expand_dims(table, tuple(range(rank - len(self.shape))))

    def draw(self, u: Float[Array, ""], arm: Int[Array, ""]) -> Shaped[Array, ""]:
        """One value for one arm by binary search: what ``isf`` gives, without a pass over the table."""
        if self.beyond.ndim == 1:
            row, rows = jnp.zeros_like(arm), self.beyond[None]
        else:
            row, rows = arm, self.beyond
        low, high = jnp.zeros_like(arm), jnp.full_like(arm, self.values.shape[0] - 1)
        for _ in range((self.values.shape[0] - 1).bit_length()):
            middle = (low + high) // 2
            beyond = rows[row, middle] >= u
            low, high = jnp.where(beyond, middle + 1, low), jnp.where(beyond, high, middle)
        return pick(self.values, low) if self.values.shape[0] <= 4 else self.values[low]
