"""A small recurrent network that is a policy: what it has seen of an arm goes in, the arm's score comes out."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

import jaxbandit as jb
from jaxbandit.policies.base import ArmStatistics

FEATURES = 7


class Memory(NamedTuple):
    """What the network remembers of each arm and is fed with, the plain statistics, and the horizon."""

    hidden: Float[Array, "K H"]
    features: Float[Array, "K F"]
    arms: ArmStatistics
    horizon: Int[Array, ""]


class Recurrent(jb.Policy):
    """One gated recurrent unit (Cho et al., 2014) for all arms, each with its own memory, and linear scores.

    Shared over the arms, the network cannot tell them apart but by what they did: it need not learn each thing K times,
    and plays any number of them. It is fed, arm by arm, with what is new (pulled, paid), and with what a network of
    this size would else have to learn to keep: the share of all pulls, the rate of conversions, the best rate of
    another arm, ``1 / sqrt(pulls + 1)``, and ``t / T``. Scores see these too, so that an index is learned at once, and
    the memory is left to what an index cannot know: how long ago the pulls were that have not paid.
    """

    cell: eqx.nn.GRUCell
    readout: eqx.nn.Linear

    def __init__(self, units: int, key: Any):
        for_cell, for_readout = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(FEATURES, units, key=for_cell)
        self.readout = eqx.nn.Linear(units + FEATURES, 1, use_bias=False, key=for_readout)

    def init(self, num_arms: int, horizon: int) -> Memory:
        hidden = jnp.zeros((num_arms, self.cell.hidden_size))
        features = jnp.zeros((num_arms, FEATURES))
        return Memory(hidden, features, ArmStatistics.empty(num_arms), jnp.asarray(horizon, jnp.int32))

    def scores(self, state: Memory, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return jax.vmap(self.readout)(jnp.concatenate([state.hidden, state.features], axis=1))[:, 0]

    def update(self, state: Memory, t: Int[Array, ""], arm: Int[Array, ""], observation: jb.Conversions) -> Memory:
        arms = state.arms.observe(arm, observation.rewards)
        dtype = arms.rewards.dtype
        pulls, now = arms.pulls.astype(dtype), t.astype(dtype)
        rate = arms.rewards / jnp.maximum(pulls, 1)
        others = jnp.where(jnp.eye(len(rate), dtype=bool), 0, rate[None])
        features = (
            (arms.pulls - state.arms.pulls).astype(dtype),
            observation.rewards.astype(dtype),
            pulls / now,
            rate,
            jnp.max(others, axis=1),
            jax.lax.rsqrt(pulls + 1),
            jnp.broadcast_to(now / state.horizon.astype(dtype), pulls.shape),
        )
        together = jnp.stack(features, axis=1)
        return Memory(jax.vmap(self.cell)(together, state.hidden), together, arms, state.horizon)
