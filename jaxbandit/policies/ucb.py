"""UCB1 and two ways to feed it: on what has arrived, on what is old enough, on what is known to have settled."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._arms import one_hot
from jaxbandit._checks import NEVER
from jaxbandit.policies.base import ArmStatistics, Policy, check_single, where_pulled
from jaxbandit.policies.observations import Conversions, Feedback


def ucb1_index(rewards: Float[Array, " K"], pulls: Num[Array, " K"], t: Int[Array, ""]) -> Float[Array, " K"]:
    """``S/n + sqrt(2 log t / n)``, +inf where n = 0 (Auer, Cesa-Bianchi and Fischer, 2002)."""
    n = jnp.maximum(pulls, 1).astype(rewards.dtype)
    return where_pulled(pulls, rewards / n + jnp.sqrt(2 * jnp.log(t.astype(rewards.dtype)) / n))


class UCB1(Policy):
    """UCB1 that takes a reward which has not arrived for a zero: ``S/N + sqrt(2 log t / N)``.

    Round-robin for t <= K. The control that is blind to delays (Auer, Cesa-Bianchi and Fischer, 2002).
    """

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return ucb1_index(state.rewards, state.pulls, t)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> ArmStatistics:
        return state.observe(arm, observation.rewards)


class DelayedUCB1(Policy):
    """UCB1 on the pulls whose delay has passed, zeros included (Joulani, György and Szepesvári, 2013).

    ``S/n + sqrt(2 log t / n)`` with n the pulls that have settled; +inf where n = 0. Needs ``Feedback``.
    """

    observes: ClassVar = Feedback

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return ucb1_index(state.rewards, state.pulls, t)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Feedback
    ) -> ArmStatistics:
        return state.add(observation.settled, observation.rewards)


class DiscardingState(NamedTuple):
    """``old`` counts the pulls that are at least ``window`` rounds old, and their rewards."""

    old: ArmStatistics
    arms: Int[Array, "T+1"]


class Discarding(Policy):
    """UCB1 on the pulls that are at least ``window`` rounds old, and their conversions of delay ``window`` or less.

    Round-robin for t <= window + K.

    Args:
        window: whole number of rounds, >= 1.

    Raises:
        TypeError: a window that is not a whole number.
        ValueError: a window < 1.
    """

    window: Int[Array, ""]

    def __init__(self, window: Any):
        self.window = _checks.integers("Discarding: window", window, 1, NEVER, "give a number of rounds")

    def init(self, num_arms: int, horizon: int) -> DiscardingState:
        check_single(self)
        return DiscardingState(old=ArmStatistics.empty(num_arms), arms=jnp.zeros(horizon + 1, jnp.int32))

    def scores(self, state: DiscardingState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        warming_up = t <= self.window + state.old.pulls.shape[0]
        return jnp.where(warming_up, jnp.inf, ucb1_index(state.old.rewards, state.old.pulls, t))

    def update(
        self, state: DiscardingState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> DiscardingState:
        arms = state.arms.at[t].set(arm)
        ripe = t + 1 - self.window
        counted = jnp.where(ripe >= 1, one_hot(arms[jnp.maximum(ripe, 0)], state.old.pulls.shape[0]), 0)
        return DiscardingState(old=state.old.add(counted, observation.rewards), arms=arms)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(delay <= self.window, self.window, NEVER)
