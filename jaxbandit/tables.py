"""A law with finitely many values, given as a table: what ``Discrete`` rewards and ``Empirical`` delays share."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from jaxbandit import _checks
from jaxbandit.laws import pick


class Table(eqx.Module):
    """``P(X = values[j]) = probabilities[..., j]``, values increasing.

    ``beyond[..., j] = P(X > values[j])`` is summed from the small end, so that a rare large value keeps its
    relative precision; the last entry is exactly 0.
    """

    values: Shaped[Array, " n"]
    probabilities: Float[Array, "*K n"]
    beyond: Float[Array, "*K n"]

    def __init__(self, law: str, name: str, values: Array, probabilities: Any):
        self.probabilities = _checks.floats(
            f"{law}: probabilities", probabilities, "in [0, 1]", "divide counts by their sum"
        )
        if values.ndim != 1 or self.probabilities.ndim == 0 or self.probabilities.shape[-1] != values.shape[0]:
            raise ValueError(
                f"{law}: probabilities must have shape [n] or [K, n] for the n {name} (a vector), got {name} of "
                f"shape {values.shape} and probabilities of shape {self.probabilities.shape}"
            )
        if not _checks.is_traced((values, probabilities)):
            total = np.asarray(probabilities, dtype=float).sum(axis=-1)
            if (np.abs(total - 1) > 1e-4).any():
                raise ValueError(f"{law}: probabilities must sum to 1, got {total}; divide them by their sum")
            if (np.diff(np.asarray(values)) <= 0).any():
                raise ValueError(f"{law}: {name} must increase strictly; sort them and add up what repeats")
        self.values = values
        tails = jnp.cumsum(self.probabilities[..., ::-1], axis=-1)[..., ::-1]
        self.beyond = jnp.concatenate([tails[..., 1:], jnp.zeros_like(tails[..., :1])], axis=-1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.probabilities.shape[:-1]

    def survival(self, x: Any) -> Float[Array, "*K"]:
        above = self.values > jnp.asarray(x)[..., None]
        return jnp.sum(jnp.where(above, self.probabilities, 0), axis=-1)

    def isf(self, u: Float[Array, "..."]) -> Shaped[Array, "*K"]:
        index = jnp.sum(self.beyond >= jnp.asarray(u)[..., None], axis=-1)
        return self.values[index]

    def log_prob(self, x: Any) -> Float[Array, "*K"]:
        here = self.values == jnp.asarray(x)[..., None]
        return jnp.log(jnp.sum(jnp.where(here, self.probabilities, 0), axis=-1))

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
