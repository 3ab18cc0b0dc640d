"""Successive elimination: every arm in turn, until it is sure that another is better."""

import math
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit.policies.base import ArmStatistics, Policy
from jaxbandit.policies.observations import Feedback


class EliminationState(NamedTuple):
    """What has settled, and which arms are still in."""

    settled: ArmStatistics
    active: Bool[Array, " K"]
    deviation: Float[Array, ""]


class SuccessiveElimination(Policy):
    """Every arm in turn; out for good is an arm with ``R/n + w < max over j of (R_j/n_j - w_j)``.

    ``w = sqrt(2 log T / max(n, 1))``, n the pulls that have settled and R their rewards; the maximum is over the arms
    that are in, and only arms with n >= 1 count. Needs ``Feedback``. Even-Dar, Mannor and Mansour (2006); with delays
    Lancewicki, Segal, Koren and Mansour (2021).
    """

    observes: ClassVar = Feedback

    def init(self, num_arms: int, horizon: int) -> EliminationState:
        return EliminationState(
            settled=ArmStatistics.empty(num_arms),
            active=jnp.ones(num_arms, bool),
            deviation=jnp.asarray(math.sqrt(2 * math.log(horizon)), float),
        )

    def scores(self, state: EliminationState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return jnp.where(state.active, jnp.zeros_like(state.settled.rewards), -jnp.inf)

    def update(
        self, state: EliminationState, t: Int[Array, ""], arm: Int[Array, ""], observation: Feedback
    ) -> EliminationState:
        settled = state.settled.add(observation.settled, observation.rewards)
        n = jnp.maximum(settled.pulls, 1).astype(settled.rewards.dtype)
        mean, width = settled.rewards / n, state.deviation / jnp.sqrt(n)
        known = state.active & (settled.pulls > 0)
        best = jnp.max(jnp.where(known, mean - width, -jnp.inf))
        return state._replace(settled=settled, active=state.active & ~(known & (mean + width < best)))
