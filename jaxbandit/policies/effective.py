"""Effective pulls: how much of its reward, in expectation, each pull has had the time to show.

``Ñ_i(t) = sum over s <= t-1 with a_s = i of τ(min(t-s, m))`` counts old pulls (t - s >= m) by τ(m) each, and convolves
the young ones with τ. Rounds are cut into chunks, and chunks into blocks. When a chunk begins, what the young pulls of
all earlier chunks will add in each of its rounds is computed by matrix products; when a block begins, likewise what the
pulls of its own chunk will add. Within the block only its own pulls remain to be added.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8, UInt32

from jaxbandit.laws import one_hot

BLOCK = 8
CHUNK = 128

CDF = Callable[[Int[Array, "..."]], Float[Array, "..."]]
"""τ: the probability that a reward has arrived at this age."""


class EffectivePulls(NamedTuple):
    """``pulled[:, s-1]`` is the arm of round s, one-hot, once the block of round s is over, and bit i of ``recent`` that
    of i rounds ago.

    ``old`` counts the pulls that have reached the window, and bit j of ``leaving`` is the one that will in the j-th
    round of the present block. ``far[:, j]`` is what young pulls of earlier chunks add to Ñ in the j-th round of the
    present chunk, and ``near[:, j]`` what all young pulls add in the j-th round of the present block.
    """

    pulled: UInt8[Array, "K R"]
    recent: UInt32[Array, " K"]
    leaving: UInt32[Array, " K"]
    old: Float[Array, " K"]
    far: Float[Array, "K C"]
    near: Float[Array, "K B"]

    @classmethod
    def empty(cls, num_arms: int, horizon: int) -> "EffectivePulls":
        rounds = CHUNK * (horizon // CHUNK + 1)
        return cls(
            pulled=jnp.zeros((num_arms, rounds), jnp.uint8),
            recent=jnp.zeros(num_arms, jnp.uint32),
            leaving=jnp.zeros(num_arms, jnp.uint32),
            old=jnp.zeros(num_arms),
            far=jnp.zeros((num_arms, CHUNK)),
            near=jnp.zeros((num_arms, BLOCK)),
        )

    def at(self, t: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> Float[Array, " K"]:
        """Ñ at the start of round t."""
        return self.near[:, (t - 1) % BLOCK] + cdf(window) * self.old

    def observe(self, t: Int[Array, ""], arm: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> "EffectivePulls":
        """After ``arm`` was pulled in round t."""
        j = (t - 1) % BLOCK
        now = one_hot(arm, self.old.shape[0])
        recent = (self.recent << 1) | now.astype(jnp.uint32)
        within = _young(jnp.arange(BLOCK, dtype=jnp.int32) - j, window, cdf)
        near = self.near + now.astype(self.near.dtype)[:, None] * within[None]
        reaching = jnp.where(window <= BLOCK, _bit(recent, window - 1), _bit(self.leaving, j))
        old = self.old + reaching.astype(self.old.dtype)

        def begin_block() -> tuple[Array, ...]:
            block = _bit(recent[:, None], BLOCK - 1 - jnp.arange(BLOCK, dtype=jnp.int32)[None])
            pulled = jax.lax.dynamic_update_slice_in_dim(self.pulled, block.astype(jnp.uint8), t - BLOCK, axis=1)
            far = jax.lax.cond(t % CHUNK == 0, lambda: _far(pulled, self.far, t, window, cdf), lambda: self.far)
            first = t - t % CHUNK
            own = _product(pulled, first, t, BLOCK, window, cdf)
            near = jax.lax.dynamic_slice_in_dim(far, t - first, BLOCK, axis=1) + own
            return pulled, _bits(pulled, t + 1 - window), far, near

        kept = (self.pulled, self.leaving, self.far, near)
        pulled, leaving, far, near = jax.lax.cond(t % BLOCK == 0, begin_block, lambda: kept)
        return EffectivePulls(pulled=pulled, recent=recent, leaving=leaving, old=old, far=far, near=near)


def _bit(bits: UInt32[Array, "..."], i: Int[Array, "..."]) -> UInt32[Array, "..."]:
    return (bits >> i.astype(jnp.uint32)) & 1


def _bits(pulled: UInt8[Array, "K R"], first: Int[Array, ""]) -> UInt32[Array, " K"]:
    """Columns ``first``, ``first + 1``, ... as bits 0, 1, ...; 0 for those before the first round."""
    start = jnp.maximum(first, 0)
    block = jax.lax.dynamic_slice_in_dim(pulled, start, BLOCK, axis=1).astype(jnp.uint32)
    bits = jnp.sum(block << jnp.arange(BLOCK, dtype=jnp.uint32)[None], axis=1, dtype=jnp.uint32)
    return jnp.where(start - first < BLOCK, bits << (start - first).astype(jnp.uint32), 0)


def _young(age: Int[Array, "..."], window: Int[Array, ""], cdf: CDF) -> Float[Array, "..."]:
    return jnp.where((age >= 1) & (age < window), cdf(jnp.maximum(age, 1)), 0)


def _product(
    pulled: UInt8[Array, "K R"], first: Int[Array, ""], t: Int[Array, ""], rounds: int, window: Int[Array, ""], cdf: CDF
) -> Float[Array, "K rounds"]:
    """What the young pulls of the chunk that begins after round ``first`` add in rounds t + 1..t + ``rounds``."""
    earlier = jax.lax.dynamic_slice_in_dim(pulled, first, CHUNK, axis=1)
    offset = jnp.arange(rounds, dtype=jnp.int32)[None] - jnp.arange(CHUNK, dtype=jnp.int32)[:, None]
    by_age = _young(t - first + jnp.arange(1 - CHUNK, rounds, dtype=jnp.int32), window, cdf)
    return jnp.matmul(earlier.astype(by_age.dtype), by_age[offset + CHUNK - 1], precision="highest")


def _far(
    pulled: UInt8[Array, "K R"], before: Float[Array, "K C"], t: Int[Array, ""], window: Int[Array, ""], cdf: CDF
) -> Float[Array, "K C"]:
    """What the young pulls of rounds 1..t add in each round of the chunk that begins after round t."""

    def add(chunk: Int[Array, ""], far: Float[Array, "K C"]) -> Float[Array, "K C"]:
        return far + _product(pulled, chunk * CHUNK, t, CHUNK, window, cdf)

    oldest = jnp.maximum((t + 1 - window) // CHUNK, 0)
    nothing = 0 * before  # varies over the devices as they do, as the loop of a shard_map needs it
    return jax.lax.fori_loop(oldest, t // CHUNK, add, nothing)
