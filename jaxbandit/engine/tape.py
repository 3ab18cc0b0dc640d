"""The random tape: every random number of a run, by (key, arm, pull number).

The n-th pull of an arm has the same reward and the same delay whatever the policy, the horizon or the round in which
it happens, so that two policies can be compared on the same luck. One block of Threefry-2x32 (Salmon, Moraes, Dror and
Shaw, 2011), the generator behind ``jax.random``, gives the two words of a pull. For arm 0 they are the key data of
``jax.random.fold_in(key, n)``.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int, UInt32

from jaxbandit import _checks

Words = UInt32[Array, "2"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_POLICY = 2**32 - 1  # no arm has this number: its column of the tape is the policy's


def threefry(key: Words, high: Array, low: Array) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
    """Threefry-2x32 with 20 rounds of the counter (high, low), written out so that XLA can fuse it into a step."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    a, b = high.astype(jnp.uint32) + schedule[0], low.astype(jnp.uint32) + schedule[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            a = a + b
            b = (b << jnp.uint32(distance)) | (b >> jnp.uint32(32 - distance))
            b = a ^ b
        a = a + schedule[(group + 1) % 3]
        b = b + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return a, b


def words(key: Any) -> Words:
    """The two words of a seed: of a typed key, a raw key or a whole number below 2^32.

    Raises:
        TypeError: something else.
        ValueError: a number that does not fit 32 bits, or an array of keys (use ``vmap``).
    """
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape != ():
            raise ValueError(f"key must be a single key, got keys of shape {key.shape}; use jax.vmap over keys")
        if str(jax.random.key_impl(key)) != "threefry2x32":
            return jax.random.bits(key, (2,), jnp.uint32)
        return jax.random.key_data(key)
    if hasattr(key, "dtype") and getattr(key, "shape", None) == (2,) and key.dtype == jnp.uint32:
        return jnp.asarray(key)
    if isinstance(key, Tracer) and key.shape == () and jnp.issubdtype(key.dtype, jnp.integer):
        return jax.random.key_data(jax.random.key(key, impl="threefry2x32"))
    mend = "pass jax.random.key(seed), a raw uint32 key of shape (2,), or a whole number"
    if isinstance(key, Tracer):
        raise TypeError(f"key must be a key or a whole number, got a traced {key.dtype} of shape {key.shape}; {mend}")
    if hasattr(key, "shape") and key.shape != ():
        raise ValueError(f"key must be a single key, got an array of shape {key.shape}; {mend}")
    seed = _checks.whole_number("key", key, 0, 2**32 - 1, mend)
    return jnp.array([0, seed], jnp.uint32)


def fold_in(key: Words, i: Int[Array, ""]) -> Words:
    """The words of ``jax.random.fold_in(key, i)``: one seed of a batch."""
    return jnp.stack(threefry(key, jnp.zeros_like(i), i))


def uniforms(key: Words, arm: Int[Array, ""], pull: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Two uniforms in (0, 1], for the reward and for the delay of the ``pull``-th pull (from 0) of ``arm``."""
    first, second = threefry(key, arm, pull)
    return to_uniform(first), to_uniform(second)


def to_uniform(word: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """``(word + 1) / 2^32``, in (0, 1]. All 32 bits are kept: below 2^-8 a float32 resolves every one of them."""
    one = jnp.asarray(1, dtype=float)
    return (word.astype(one.dtype) + one) * jnp.asarray(2.0**-32, one.dtype)


def policy_key(key: Words, t: Int[Array, ""]) -> Array:
    """A key for the policy's own randomness in round ``t``, independent of every reward and delay."""
    column = jnp.full_like(t, _POLICY, dtype=jnp.uint32)
    return jax.random.wrap_key_data(jnp.stack(threefry(key, column, t)), impl="threefry2x32")
