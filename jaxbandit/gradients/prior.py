"""A prior over instances: laws whose parameters have a leading axis."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbandit.engine import tape
from jaxbandit.instance import Instance

AT_ONCE = 1024
"""Runs that are in memory together."""


def prior_of(instance: Instance) -> tuple[int | None, Any]:
    """How many instances a prior has, None for a single one, and which of its leaves have an entry for each."""
    if not isinstance(instance, Instance):
        return None, None
    laws = (instance.reward, instance.delay)
    sizes = {law.batch_shape[:-1] for law in laws if len(law.batch_shape) > 1}
    if len(sizes) > 1 or any(len(size) > 1 for size in sizes):
        raise ValueError(
            f"instance must have one leading axis, the same for rewards and delays, got {sorted(sizes)}; use jax.vmap"
        )
    count = min(sizes)[0] if sizes else None
    own = [
        len(law.batch_shape) > 1 and leaf.ndim > 1 and leaf.shape[0] == count
        for law in laws
        for leaf in jax.tree.leaves(law)
    ]
    return count, jax.tree.unflatten(jax.tree.structure(instance), own)


def first_of(instance: Instance) -> Instance:
    count, own = prior_of(instance)
    if count is None:
        return instance
    return jax.tree.map(lambda leaf, own: leaf[0] if own else leaf, instance, own)


def over_instances(
    one: Callable[[Instance, tape.Words], Any], instance: Instance, words: tape.Words, seeds: int
) -> Any:
    """What ``one`` gives for every instance, each with its own key."""
    count, own = prior_of(instance)
    many, shared = eqx.partition(instance, own)
    numbers = jnp.arange(count or 0, dtype=jnp.int32)

    def at(now: tuple[Any, Array]) -> Any:
        return one(eqx.combine(now[0], shared), tape.seed_words(words, now[1]))

    return jax.lax.map(at, (many, numbers), batch_size=max(AT_ONCE // seeds, 1))
