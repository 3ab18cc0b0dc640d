"""OTFLinUCB for arms without features: a confidence bound that counts what a window cannot have shown."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import one_hot
from jaxbandit._checks import NEVER
from jaxbandit.policies.base import ArmStatistics, Policy, check_single
from jaxbandit.policies.observations import Conversions


class OTFState(NamedTuple):
    """``recent`` are the pulls of the last ``window`` rounds."""

    arms: ArmStatistics
    recent: Int[Array, " K"]
    log: Int[Array, "T+1"]


class OTFLinUCB(Policy):
    """``b/V + (2 f + sum over the last m pulls of 1/sqrt(V_{a_s})) / sqrt(V)``, ``V = ridge + N``, b the conversions
    with D <= m, ``f = sqrt(ridge) + sqrt(2 log(1/delta) + K log((K ridge + t) / (K ridge)))``.

    The K-armed case of Vernade, Carpentier, Lattimore, Zappella, Ermis and Brueckner (2020), Theorem 1, whose text is
    followed; the published code squares the norms, which gives a far narrower bound and another policy.

    Args:
        window: the threshold m, a whole number of rounds >= 1.
        ridge: > 0.
        delta: in (0, 1], how often the bound may fail.

    Raises:
        TypeError: a window that is not a whole number.
        ValueError: a window < 1, a ridge that is not positive, a delta outside (0, 1].
    """

    window: Int[Array, ""]
    ridge: Float[Array, ""]
    delta: Float[Array, ""]

    def __init__(self, window: Any, ridge: Any = 1.0, delta: Any = 0.1):
        self.window = _checks.integers("OTFLinUCB: window", window, 1, NEVER, "give a number of rounds")
        self.ridge = _checks.floats("OTFLinUCB: ridge", ridge, "finite and > 0", "1 is usual")
        self.delta = _checks.floats("OTFLinUCB: delta", delta, "in (0, 1]", "0.1 is usual")

    def init(self, num_arms: int, horizon: int) -> OTFState:
        check_single(self)
        return OTFState(
            arms=ArmStatistics.empty(num_arms),
            recent=jnp.zeros(num_arms, jnp.int32),
            log=jnp.zeros(horizon + 1, jnp.int32),
        )

    def scores(self, state: OTFState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        dtype, num_arms = state.arms.rewards.dtype, state.recent.shape[0]
        ridge, delta = self.ridge.astype(dtype), self.delta.astype(dtype)
        v = ridge + state.arms.pulls.astype(dtype)
        root = jnp.sqrt(v)
        log_volume = num_arms * jnp.log1p(t.astype(dtype) / (num_arms * ridge))
        f = jnp.sqrt(ridge) + jnp.sqrt(-2 * jnp.log(delta) + log_volume)
        return state.arms.rewards / v + (2 * f + jnp.sum(state.recent.astype(dtype) / root)) / root

    def update(self, state: OTFState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions) -> OTFState:
        num_arms = state.recent.shape[0]
        log = state.log.at[t].set(arm)
        left = t - self.window  # pulls of rounds t + 1 - window..t are recent in round t + 1
        leaving = jnp.where(left >= 1, one_hot(log[jnp.maximum(left, 0)], num_arms), 0)
        recent = state.recent + one_hot(arm, num_arms) - leaving
        return OTFState(arms=state.arms.observe(arm, observation.rewards), recent=recent, log=log)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(delay <= self.window, delay, NEVER)
