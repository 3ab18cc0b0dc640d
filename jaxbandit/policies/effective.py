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
from jaxtyping import Array, Float, Int

from jaxbandit.laws import one_hot

BLOCK = 8
CHUNK = 128

CDF = Callable[[Int[Array, "..."]], Float[Array, "..."]]
"""τ: the probability that a reward has arrived at this age."""


class EffectivePulls(NamedTuple):
    """``pulled[:, s-1]`` is the arm of round s, one-hot, and ``old`` counts the pulls that have reached the window.

    ``far[:, j]`` is what young pulls of earlier chunks add to Ñ in the j-th round of the present one, and
    ``near[:, j]`` what all young pulls from before the present block add in its j-th round.
    """

    pulled: Float[Array, "K R"]
    old: Float[Array, " K"]
    far: Float[Array, "K C"]
    near: Float[Array, "K B"]

    @classmethod
    def empty(cls, num_arms: int, horizon: int) -> "EffectivePulls":
        rounds = CHUNK * (horizon // CHUNK + 1)
        return cls(
            pulled=jnp.zeros((num_arms, rounds)),
            old=jnp.zeros(num_arms),
            far=jnp.zeros((num_arms, CHUNK)),
            near=jnp.zeros((num_arms, BLOCK)),
        )

    def at(self, t: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> Float[Array, " K"]:
        """Ñ at the start of round t."""
        j = (t - 1) % BLOCK
        block = jax.lax.dynamic_slice_in_dim(self.pulled, t - 1 - j, BLOCK, axis=1)
        weights = _young(j - jnp.arange(BLOCK, dtype=jnp.int32), window, cdf)
        return self.near[:, j] + jnp.sum(weights[None] * block, axis=1) + cdf(window) * self.old

    def observe(self, t: Int[Array, ""], arm: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> "EffectivePulls":
        """After ``arm`` was pulled in round t."""
        column = one_hot(arm, self.old.shape[0]).astype(self.pulled.dtype)[:, None]
        pulled = jax.lax.dynamic_update_slice_in_dim(self.pulled, column, t - 1, axis=1)
        reaching = t + 1 - window
        old = self.old + jnp.where(reaching >= 1, pulled[:, jnp.maximum(reaching, 1) - 1], 0)

        def begin_block() -> tuple[Array, Array]:
            far = jax.lax.cond(t % CHUNK == 0, lambda: _far(pulled, t, window, cdf), lambda: self.far)
            first = t - t % CHUNK
            own = _product(pulled, first, t, BLOCK, window, cdf)
            return far, jax.lax.dynamic_slice_in_dim(far, t - first, BLOCK, axis=1) + own

        far, near = jax.lax.cond(t % BLOCK == 0, begin_block, lambda: (self.far, self.near))
        return EffectivePulls(pulled=pulled, old=old, far=far, near=near)


def _young(age: Int[Array, "..."], window: Int[Array, ""], cdf: CDF) -> Float[Array, "..."]:
    return jnp.where((age >= 1) & (age < window), cdf(jnp.maximum(age, 1)), 0)


def _product(
    pulled: Float[Array, "K R"], first: Int[Array, ""], t: Int[Array, ""], rounds: int, window: Int[Array, ""], cdf: CDF
) -> Float[Array, "K rounds"]:
    """What the young pulls of the chunk that begins after round ``first`` add in rounds t + 1..t + ``rounds``."""
    earlier = jax.lax.dynamic_slice_in_dim(pulled, first, CHUNK, axis=1)
    offset = jnp.arange(rounds, dtype=jnp.int32)[None] - jnp.arange(CHUNK, dtype=jnp.int32)[:, None]
    by_age = _young(t - first + jnp.arange(1 - CHUNK, rounds, dtype=jnp.int32), window, cdf)
    return jnp.matmul(earlier, by_age[offset + CHUNK - 1], precision="highest")


def _far(pulled: Float[Array, "K R"], t: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> Float[Array, "K C"]:
    """What the young pulls of rounds 1..t add in each round of the chunk that begins after round t."""

    def add(chunk: Int[Array, ""], far: Float[Array, "K C"]) -> Float[Array, "K C"]:
        return far + _product(pulled, chunk * CHUNK, t, CHUNK, window, cdf)

    oldest = jnp.maximum((t + 1 - window) // CHUNK, 0)
    nothing = 0 * pulled[:, :CHUNK]  # varies over the devices as ``pulled`` does, as the loop of a shard_map needs it
    return jax.lax.fori_loop(oldest, t // CHUNK, add, nothing)
