"""Keys: of what kind a user gives them, the words they are made of, and the keys of a batch's seeds."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int, UInt32

from jaxbandit import _checks

Words = UInt32[Array, "2"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(key: Words, high: Array, low: Array) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
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


def seed_words(key: Words, i: Int[Array, ""]) -> Words:
    """The words of ``jax.random.fold_in(key, i)``: one seed of a batch."""
    return jnp.stack(threefry(key, jnp.zeros_like(i), i))


def to_uniform(word: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """``(word + 1) / 2^32``, in (0, 1]. All 32 bits are kept: below 2^-8 a float32 resolves every one of them."""
    one = jnp.asarray(1, dtype=float)
    return (word.astype(one.dtype) + one) * jnp.asarray(2.0**-32, one.dtype)


def fold_in(key: Any, i: Any) -> Array:
    """The key of seed ``i``: ``simulate(fold_in(key, i), ...)`` is run i of ``simulate_batch(key, ...)``.

    As ``jax.random.fold_in``, of which ``jax.random.fold_in(0, 3)`` is an error, but for every kind of key.

    Args:
        key: a key of ``jax.random``, typed or raw, or a whole number below 2^32.
        i: a whole number from 0 to 2^31 - 1; it may be traced, and vmapped.

    Returns:
        A typed Threefry key if ``key`` is typed, else a raw one of shape [2].

    Raises:
        TypeError, ValueError: a key as ``simulate`` refuses it, or an i that is not such a number.
    """
    if isinstance(i, Tracer):
        if i.shape != () or not jnp.issubdtype(i.dtype, jnp.integer):
            raise TypeError(
                f"fold_in: i must be a whole number, got a traced {i.dtype} of shape {i.shape}; use jax.vmap"
            )
    else:
        i = _checks.whole_number("fold_in: i", i, 0, 2**31 - 1, "use jax.vmap over many")
    data = seed_words(words(key), jnp.asarray(i).astype(jnp.int32))
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(data, impl="threefry2x32") if typed else data
