"""The choice among scores: one rule of ties for every policy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from jaxbandit._arms import MAX_TABLE


def choose(scores: Float[Array, " K"], pulls: Int[Array, " K"]) -> Int[Array, ""]:
    """The arm with the highest score; of several, the one with the fewest pulls; of several, the lowest.

    A NaN gives K, which is no arm: nothing is pulled, and the missing pull is found out. It is looked for in every
    score: XLA's reduction to a maximum loses a NaN where many runs lie side by side on a CPU.

    Args:
        scores: of ``Policy.scores``, one an arm.
        pulls: how often each arm has been pulled, int32.

    Raises:
        TypeError: something else than arrays of these types.
        ValueError: arrays of different shapes.
    """
    _check_choice(scores, pulls)
    num_arms = scores.shape[0]
    highest = jnp.max(_fold(jnp.maximum, scores))
    order = pulls * num_arms + jnp.arange(num_arms, dtype=jnp.int32)
    order = jnp.where(jnp.isnan(scores), -1, jnp.where(scores == highest, order, MAX_TABLE))
    first = jnp.min(_fold(jnp.minimum, order))
    return jnp.where(first < 0, num_arms, first % num_arms)


def _check_choice(scores: Any, pulls: Any) -> None:
    for name, x, kind, mend in (
        ("scores", scores, jnp.floating, "pass what Policy.scores gives"),
        ("pulls", pulls, jnp.integer, "count them in jnp.zeros(num_arms, jnp.int32)"),
    ):
        if not isinstance(x, (jax.Array, np.ndarray)) or not jnp.issubdtype(x.dtype, kind):
            raise TypeError(f"choose: {name} must be an array of {kind.__name__} numbers, got {x!r}; {mend}")
    if scores.ndim != 1 or scores.shape != pulls.shape:
        raise ValueError(f"choose: scores and pulls must both have shape [K], got {scores.shape} and {pulls.shape}")


def _fold(operation: Callable[[Array, Array], Array], x: Num[Array, " K"]) -> Num[Array, " k"]:
    """Halves laid on each other until ``k <= 32``: XLA's reduction of more takes three times the time on a CPU.

    The halves share the middle of an odd number, which a maximum or minimum does not mind.
    """
    while x.shape[0] > 32:
        half = -(-x.shape[0] // 2)
        x = operation(x[:half], x[-half:])
    return x
