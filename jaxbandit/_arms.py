"""Arrays with one number an arm: which entry is whose."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

MAX_TABLE = 2**31 - 1
"""Rounds times arms are below this: tables of all pulls are looked up by int32, and ties are ordered by it."""

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


def is_arm(arm: Int[Array, ""], num_arms: int) -> Bool[Array, " K"]:
    """True at ``arm``."""
    return jnp.arange(num_arms, dtype=jnp.int32) == arm


def one_hot(arm: Int[Array, ""], num_arms: int) -> Int[Array, " K"]:
    """1 at ``arm``, else 0."""
    return is_arm(arm, num_arms).astype(jnp.int32)
