"""What JAX's transformations have to be told about a run: that it varies with its inputs, and has no derivative."""

from typing import Any

import jax
import jax.numpy as jnp


def depending_on(inputs: Any, carry: Any) -> Any:
    """``carry``, the same numbers, but made to depend on all ``inputs``.

    Inside ``shard_map`` a scan may only carry what varies over the mesh as its result does: here, as any input does.
    """
    condition = jnp.stack([jnp.any(leaf != leaf) for leaf in jax.tree.leaves(inputs)]).any()
    return jax.tree.map(lambda x: jnp.where(condition, x, x), carry)


@jax.custom_jvp
def path_only(inputs: Any) -> Any:
    """``inputs``, of which nothing may be differentiated."""
    return inputs


@path_only.defjvp
def _path_only_jvp(primals: Any, tangents: Any) -> Any:
    raise TypeError(
        "a simulated run cannot be differentiated: arms are chosen by an argmax, so that the derivative of the regret "
        "along one path leaves out how choices change, and is wrong for the expected regret; differentiate "
        "jaxbandit.expected_regret instead, or put jax.lax.stop_gradient around the arguments of simulate"
    )
