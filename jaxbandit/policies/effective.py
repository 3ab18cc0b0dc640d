"""Effective pulls: how much of its reward, in expectation, each pull has had the time to show.

``Ñ_i(t) = sum over s <= t-1 with a_s = i of τ(min(t-s, m))`` counts old pulls (t - s >= m) by τ(m) each, and convolves
the young ones with τ. Rounds are cut into blocks. When a block begins, what all young earlier pulls will add in each of
its rounds is one matrix product per earlier block; within the block only its own pulls remain to be added.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit.laws import one_hot

BLOCK = 32

CDF = Callable[[Int[Array, "..."]], Float[Array, "..."]]
"""τ: the probability that a reward has arrived at this age."""


class EffectivePulls(NamedTuple):
    """``pulled[s-1]`` is the arm of round s, one-hot, and ``old`` counts the pulls that have reached the window.

    ``base[j]`` is what young pulls from before the present block add to Ñ in its j-th round.
    """

    pulled: Float[Array, "R K"]
    old: Float[Array, " K"]
    base: Float[Array, "B K"]

    @classmethod
    def empty(cls, num_arms: int, horizon: int) -> "EffectivePulls":
        rounds = BLOCK * (horizon // BLOCK + 1)
        return cls(pulled=jnp.zeros((rounds, num_arms)), old=jnp.zeros(num_arms), base=jnp.zeros((BLOCK, num_arms)))

    def at(self, t: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> Float[Array, " K"]:
        """Ñ at the start of round t."""
        j = (t - 1) % BLOCK
        block = jax.lax.dynamic_slice_in_dim(self.pulled, t - 1 - j, BLOCK)
        weights = _young(j - jnp.arange(BLOCK, dtype=jnp.int32), window, cdf)
        return self.base[j] + jnp.sum(weights[:, None] * block, axis=0) + cdf(window) * self.old

    def observe(self, t: Int[Array, ""], arm: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> "EffectivePulls":
        """After ``arm`` was pulled in round t."""
        row = one_hot(arm, self.old.shape[0]).astype(self.pulled.dtype)
        pulled = jax.lax.dynamic_update_slice_in_dim(self.pulled, row[None], t - 1, axis=0)
        reaching = t + 1 - window
        old = self.old + jnp.where(reaching >= 1, pulled[jnp.maximum(reaching, 1) - 1], 0)
        begins = t % BLOCK == 0
        base = jax.lax.cond(begins, lambda: _base(pulled, t // BLOCK, window, cdf), lambda: self.base)
        return EffectivePulls(pulled=pulled, old=old, base=base)


def _young(age: Int[Array, "..."], window: Int[Array, ""], cdf: CDF) -> Float[Array, "..."]:
    return jnp.where((age >= 1) & (age < window), cdf(jnp.maximum(age, 1)), 0)


def _base(pulled: Float[Array, "R K"], block: Int[Array, ""], window: Int[Array, ""], cdf: CDF) -> Float[Array, "B K"]:
    """What young pulls of earlier blocks add in each round of block number ``block``."""
    oldest = jnp.maximum((block * BLOCK + 1 - window) // BLOCK, 0)  # the first block with a young pull
    offsets = jnp.arange(BLOCK, dtype=jnp.int32)

    def add(b: Int[Array, ""], base: Float[Array, "B K"]) -> Float[Array, "B K"]:
        ages = (block - b) * BLOCK + offsets[:, None] - offsets[None, :]
        earlier = jax.lax.dynamic_slice_in_dim(pulled, b * BLOCK, BLOCK)
        return base + jnp.matmul(_young(ages, window, cdf), earlier, precision="highest")

    nothing = 0 * pulled[:BLOCK]  # varies over the devices as ``pulled`` does, as the loop of a shard_map needs it
    return jax.lax.fori_loop(oldest, block, add, nothing)
