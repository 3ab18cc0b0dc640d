"""Play that learns nothing: what every policy has to beat."""

from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit._arms import one_hot
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Conversions


class Uniform(Policy):
    """Every arm in turn: all scores tie, and the tie goes to the arm with the fewest pulls."""

    def init(self, num_arms: int, horizon: int) -> Int[Array, " K"]:
        return jnp.zeros(num_arms, jnp.int32)

    def scores(self, state: Int[Array, " K"], t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return jnp.zeros(state.shape)

    def update(
        self, state: Int[Array, " K"], t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> Int[Array, " K"]:
        return state + one_hot(arm, state.shape[0])
