"""The random tape: every random number of a run, by (key, arm, pull number).

The n-th pull of an arm has the same reward and the same delay whatever the policy, the horizon or the round in which
it happens, so that two policies can be compared on the same luck. One block of Threefry-2x32 (Salmon, Moraes, Dror and
Shaw, 2011), the generator behind ``jax.random``, gives the two words of a pull. For arm 0 they are the key data of
``jax.random.fold_in(key, n)``.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit._keys import Words, seed_words, threefry, to_uniform, words

__all__ = ["Words", "policy_key", "seed_words", "threefry", "to_uniform", "uniforms", "words"]

_POLICY = 2**32 - 1  # no arm has this number: its column of the tape is the policy's


def uniforms(key: Words, arm: Int[Array, ""], pull: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Two uniforms in (0, 1], for the reward and for the delay of the ``pull``-th pull (from 0) of ``arm``."""
    first, second = threefry(key, arm, pull)
    return to_uniform(first), to_uniform(second)


def policy_key(key: Words, t: Int[Array, ""]) -> Array:
    """A key for the policy's own randomness in round ``t``, independent of every reward and delay."""
    column = jnp.full_like(t, _POLICY, dtype=jnp.uint32)
    return jax.random.wrap_key_data(jnp.stack(threefry(key, column, t)), impl="threefry2x32")
