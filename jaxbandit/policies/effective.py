"""Effective pulls: how much of its reward, in expectation, each pull has had the time to show.

``Ñ_i(t) = sum over s <= t-1 with a_s = i of τ(min(t-s, m))`` counts old pulls (t - s >= m) by τ(m) each, and convolves
the young ones with τ. Rounds are cut into chunks, and chunks into blocks. When a chunk begins, what the young pulls of
all earlier chunks will add in each of its rounds is computed by matrix products; when a block begins, likewise what the
pulls of its own chunk will add. Within the block only its own pulls remain to be added.

Without a window every pull stays young, and products alone would take a time that grows with t. There, chunks are
gathered into eras. When an era begins, what the pulls of all earlier ones but the last chunk will add is computed by
Fourier transforms.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8, UInt32

from jaxbandit._arms import one_hot
from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw

BLOCK = 8
CHUNK = 64
ERA = 1024

MOST_STEEP = 32
"""A Fourier transform is off by some ulps of the range of its weights times sqrt(2 ERA). Where this is more than so
many ulps of the smallest weight of an arm, products are taken for all."""


class EffectivePulls(NamedTuple):
    """``Ñ_i(t) = sum over s <= t-1 with a_s = i of τ_i(min(t-s, m))``: what a policy's own pulls can have shown.

    For the state of any policy that is told a delay law τ, one for all arms or one an arm, and a window m (Vernade,
    Cappé and Perchet, 2017): begin with ``empty``, call ``observe`` once a round, ask ``at`` for Ñ. The work of a round
    does not grow with the window.

    The fields are what is known of past pulls, and what they add to Ñ in the rounds to come. ``pulled[:, s-1]`` is the
    arm of round s, one-hot, once its block is over; bit i of ``recent`` is that of i rounds ago. ``old`` counts the
    pulls that have reached the window; bit j of ``leaving`` is the one that will in the j-th round of the present
    block. To Ñ in the j-th round of the present block, chunk or era is added: ``near[:, j]`` by all young pulls,
    ``far[:, j]`` by those of earlier chunks, ``deep[:, j]`` by those of earlier eras but for the last chunk
    (``None`` if there is a window, or but one era).
    """

    pulled: UInt8[Array, "K R"]
    recent: UInt32[Array, " K"]
    leaving: UInt32[Array, " K"]
    old: Float[Array, " K"]
    far: Float[Array, "K C"]
    near: Float[Array, "K B"]
    deep: Float[Array, "K E"] | None

    @classmethod
    def empty(cls, num_arms: int, horizon: int, *, censored: bool) -> "EffectivePulls":
        """Before round 1; ``censored`` if there will be a window shorter than ``jaxbandit.NEVER``."""
        rounds = CHUNK * (horizon // CHUNK + 1)
        return cls(
            pulled=jnp.zeros((num_arms, rounds), jnp.uint8),
            recent=jnp.zeros(num_arms, jnp.uint32),
            leaving=jnp.zeros(num_arms, jnp.uint32),
            old=jnp.zeros(num_arms),
            far=jnp.zeros((num_arms, CHUNK)),
            near=jnp.zeros((num_arms, BLOCK)),
            deep=None if censored or horizon <= ERA else jnp.zeros((num_arms, ERA)),
        )

    def at(self, t: Int[Array, ""], window: Int[Array, ""], law: DelayLaw) -> Float[Array, " K"]:
        """Ñ at the start of round t, after t - 1 rounds were observed."""
        return self.near[:, (t - 1) % BLOCK] + law.cdf(window) * self.old

    def observe(
        self, t: Int[Array, ""], arm: Int[Array, ""], window: Int[Array, ""], law: DelayLaw
    ) -> "EffectivePulls":
        """After ``arm`` was pulled in round t; ``window`` (int32) and ``law`` are the same in every round."""
        j = (t - 1) % BLOCK
        now = one_hot(arm, self.old.shape[0])
        recent = (self.recent << 1) | now.astype(jnp.uint32)
        within = _young(jnp.arange(BLOCK, dtype=jnp.int32) - j, window, law)
        near = self.near + now.astype(self.near.dtype)[:, None] * within
        reaching = jnp.where(window <= BLOCK, _bit(recent, window - 1), _bit(self.leaving, j))
        old = self.old + reaching.astype(self.old.dtype)

        def begin_block() -> tuple[Array | None, ...]:
            block = _bit(recent[:, None], BLOCK - 1 - jnp.arange(BLOCK, dtype=jnp.int32)[None])
            pulled = jax.lax.dynamic_update_slice_in_dim(self.pulled, block.astype(jnp.uint8), t - BLOCK, axis=1)
            deep, far = jax.lax.cond(t % CHUNK == 0, partial(begin_chunk, pulled), lambda: (self.deep, self.far))
            first = t - t % CHUNK
            own = _product(pulled, first, t, BLOCK, window, law)
            near = jax.lax.dynamic_slice_in_dim(far, t - first, BLOCK, axis=1) + own
            return pulled, _bits(pulled, t + 1 - window), far, near, deep

        def begin_chunk(pulled: Array) -> tuple[Array | None, Array]:
            if self.deep is None:
                oldest = jnp.maximum((t + 1 - window) // CHUNK, 0)
                return None, _products(pulled, oldest, t // CHUNK, 0 * self.far, t, window, law)
            era, before = t % ERA, self.deep
            deep = jax.lax.cond(era == 0, lambda: _deep(pulled, before, t, law), lambda: before)
            oldest = jnp.maximum((t - era) // CHUNK - 1, 0)
            start = jax.lax.dynamic_slice_in_dim(deep, era, CHUNK, axis=1)
            return deep, _products(pulled, oldest, t // CHUNK, start, t, window, law)

        kept = (self.pulled, self.leaving, self.far, near, self.deep)
        pulled, leaving, far, near, deep = jax.lax.cond(t % BLOCK == 0, begin_block, lambda: kept)
        return EffectivePulls(pulled=pulled, recent=recent, leaving=leaving, old=old, far=far, near=near, deep=deep)


def _bit(bits: UInt32[Array, "..."], i: Int[Array, "..."]) -> UInt32[Array, "..."]:
    return (bits >> i.astype(jnp.uint32)) & 1


def _bits(pulled: UInt8[Array, "K R"], first: Int[Array, ""]) -> UInt32[Array, " K"]:
    """Columns ``first``, ``first + 1``, ... as bits 0, 1, ...; 0 for those before the first round."""
    start = jnp.maximum(first, 0)
    block = jax.lax.dynamic_slice_in_dim(pulled, start, BLOCK, axis=1).astype(jnp.uint32)
    bits = jnp.sum(block << jnp.arange(BLOCK, dtype=jnp.uint32)[None], axis=1, dtype=jnp.uint32)
    return jnp.where(start - first < BLOCK, bits << (start - first).astype(jnp.uint32), 0)


def _weights(age: Int[Array, " n"], law: DelayLaw) -> Float[Array, "L n"]:
    """τ at these ages: one row for all arms, or one an arm."""
    return law.cdf(age)[None] if law.batch_shape == () else jax.vmap(law.cdf, out_axes=1)(age)


def _young(age: Int[Array, " n"], window: Int[Array, ""], law: DelayLaw) -> Float[Array, "L n"]:
    young = (age >= 1) & (age < window)
    return jnp.where(young[None], _weights(jnp.maximum(age, 1), law), 0)


def _product(
    pulled: UInt8[Array, "K R"],
    first: Int[Array, ""],
    t: Int[Array, ""],
    rounds: int,
    window: Int[Array, ""],
    law: DelayLaw,
) -> Float[Array, "K rounds"]:
    """What the young pulls of the chunk that begins after round ``first`` add in rounds t + 1..t + ``rounds``."""
    earlier = jax.lax.dynamic_slice_in_dim(pulled, first, CHUNK, axis=1)
    by_age = _young(t - first + jnp.arange(1 - CHUNK, rounds, dtype=jnp.int32), window, law)
    later = jax.vmap(partial(_toeplitz, rows=CHUNK))(by_age)
    earlier = earlier.astype(by_age.dtype)
    if by_age.shape[0] == 1:
        return jnp.matmul(earlier, later[0], precision="highest")
    return jnp.einsum("kc,kcr->kr", earlier, later, precision="highest")


def _toeplitz(x: Float[Array, " n"], rows: int) -> Float[Array, "rows columns"]:
    """Row i holds ``x[rows-1-i:][:columns]``: repeated and cut into rows of another length, faster than by look-ups."""
    period = x.shape[0] + 1
    repeated = jnp.tile(jnp.pad(x, (0, 1)), rows)
    return repeated[rows - 1 : rows - 1 + rows * (period - 1)].reshape(rows, period - 1)[:, : period - rows]


def _products(
    pulled: UInt8[Array, "K R"],
    oldest: Int[Array, ""] | int,
    stop: Int[Array, ""],
    start: Float[Array, "K rounds"],
    t: Int[Array, ""],
    window: Int[Array, ""],
    law: DelayLaw,
) -> Float[Array, "K rounds"]:
    """``start``, and what the young pulls of chunks ``oldest..stop-1`` add in rounds t + 1..t + ``rounds``."""

    def add(chunk: Int[Array, ""], total: Float[Array, "K rounds"]) -> Float[Array, "K rounds"]:
        return total + _product(pulled, chunk * CHUNK, t, start.shape[1], window, law)

    return jax.lax.fori_loop(oldest, stop, add, start)


def _deep(
    pulled: UInt8[Array, "K R"], before: Float[Array, "K E"], t: Int[Array, ""], law: DelayLaw
) -> Float[Array, "K E"]:
    """What the pulls of rounds 1..t - CHUNK add in rounds t + 1..t + ERA, where an era begins.

    Weights that differ little are the smallest of an era and what is above it: the smallest times the number of pulls,
    and a convolution. So what rounding does to the transforms stays small beside the sum. Under a ``vmap`` over laws
    both are computed, products too, and one is chosen.
    """
    youngest = jnp.asarray(CHUNK + 1, jnp.int32)
    nothing = 0 * before

    def transformed() -> Float[Array, "K E"]:
        def add(era: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            spectrum, flat = sums
            first = era * ERA
            rows = jax.lax.dynamic_slice_in_dim(pulled, first, ERA, axis=1).astype(before.dtype)
            rows = jnp.where(first + jnp.arange(ERA, dtype=jnp.int32) < t - CHUNK, rows, 0)
            lag = (jnp.arange(2 * ERA, dtype=jnp.int32) + ERA) % (2 * ERA) - ERA
            weights = _weights(jnp.maximum(t - first + lag, youngest), law)
            smallest = law.cdf(jnp.maximum(t - first - ERA + 1, youngest))
            above = jnp.fft.rfft((weights - jnp.atleast_1d(smallest)[:, None]).astype(before.dtype))
            return spectrum + jnp.fft.rfft(rows, 2 * ERA) * above, flat + smallest * jnp.sum(rows, axis=1)

        start = jnp.fft.rfft(nothing, 2 * ERA), nothing[:, 0]
        spectrum, flat = jax.lax.fori_loop(0, t // ERA, add, start)
        return flat[:, None] + jnp.fft.irfft(spectrum, 2 * ERA)[:, :ERA]

    def multiplied() -> Float[Array, "K E"]:
        return _products(pulled, 0, t // CHUNK - 1, nothing, t, jnp.asarray(NEVER, jnp.int32), law)

    smallest, largest = law.cdf(youngest), law.cdf(t + ERA)
    flat = (largest - smallest) * (2 * ERA) ** 0.5 <= MOST_STEEP * smallest
    return jax.lax.cond(jnp.all(flat), transformed, multiplied)
