"""Where the runs of a batch lie in memory: next to each other, so that a processor works on several runs at once.

``vmap`` puts the axis of the runs first and that of the arms last: a loop over 10 arms leaves most of a vector unit
idle. The program stays so; the compiler alone is told to store such arrays the other way round.
"""

from typing import Any

import jax
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Shaped

FEWEST_ARMS, MOST_ARMS = 3, 32
"""On a CPU the hint pays between these: with two arms it changes nothing, with 100 it costs a third."""


def runs_side_by_side(tree: Any, num_arms: int) -> Any:
    """``tree``; where it is vmapped, its arrays with one number an arm are stored arm by arm on a CPU."""
    if not FEWEST_ARMS <= num_arms <= MOST_ARMS:
        return tree
    return jax.tree.map(lambda x: _stored(x) if x.shape == (num_arms,) else x, tree)


@jax.custom_jvp
def arm_by_arm(x: Shaped[Array, " K"]) -> Shaped[Array, " K"]:
    """``x``; where it is vmapped, it is stored arm by arm on a CPU, however many arms there are."""
    return _stored(x)


@arm_by_arm.defjvp
def _arm_by_arm_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """``custom_vmap`` has no derivative in reverse."""
    return _stored(*primals), *tangents


@jax.custom_batching.custom_vmap
def _stored(x: Shaped[Array, " K"]) -> Shaped[Array, " K"]:
    return x


@_stored.def_vmap
def _stored_vmap(axis_size: int, in_batched: list[bool], x: Shaped[Array, "runs K"]) -> tuple[Array, bool]:
    if not in_batched[0]:
        return x, False
    transposed = Layout((1, 0))
    return jax.lax.platform_dependent(x, cpu=lambda x: with_layout_constraint(x, transposed), default=lambda x: x), True
