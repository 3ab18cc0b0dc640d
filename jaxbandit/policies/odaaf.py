"""ODAAF: elimination from the sum of what arrives, whichever arm it belongs to."""

import math
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import is_arm, one_hot
from jaxbandit.policies.base import ArmStatistics, Policy, check_single
from jaxbandit.policies.observations import Anonymous


class ODAAFState(NamedTuple):
    """``own`` are the rounds of each arm's blocks and what arrived in them; ``arm`` is the one in play, K: none yet.

    ``phase``, ``gap`` and ``target`` are j, its gap and n_j; ``bridge`` counts the rounds left to throw away.
    """

    own: ArmStatistics
    active: Bool[Array, " K"]
    arm: Int[Array, ""]
    phase: Float[Array, ""]
    gap: Float[Array, ""]
    target: Int[Array, ""]
    bridge: Int[Array, ""]
    log_horizon: Float[Array, ""]


class ODAAF(Policy):
    """Phase j = 1, 2, ... with ``gap_j = 2^-j`` plays each active arm in one block until it has n_j rounds in all,
    ``n_j = ceil(gap^-2 (sqrt(2 l) + sqrt(2 l + 8/3 gap l + 6 gap j E))^2)``, ``l = max(log(T gap^2), 0)``.

    X_i is the mean of what arrives in the arm's own rounds. Then an arm with ``X_i + gap < max X`` is out, and a bridge
    of n_j - n_(j-1) rounds of an active arm is thrown away. Once ``T gap^2 <= e`` the arm with the best X is played.
    In the manner of Pike-Burke, Agrawal, Szepesvári and Grünewälder (2018), for a known expectation. Sees
    ``Anonymous``.

    Args:
        expected_delay: ``E = E[max(D, 1) - 1] >= 0``, the mean number of rounds by which a reward misses the earliest
            round it can be seen in.

    Raises:
        ValueError: an expectation that is infinite, negative or NaN.
    """

    observes: ClassVar = Anonymous

    expected_delay: Float[Array, ""]

    def __init__(self, expected_delay: Any):
        mend = "with an infinite mean its blocks would have no end; use a policy that knows arms, such as DUCB"
        self.expected_delay = _checks.floats("ODAAF: expected_delay", expected_delay, "finite and >= 0", mend)

    def rounds(self, phase: Float[Array, ""], gap: Float[Array, ""], log_horizon: Float[Array, ""]) -> Int[Array, ""]:
        """n_j."""
        expected = self.expected_delay.astype(gap.dtype)
        log = jnp.maximum(log_horizon + 2 * jnp.log(gap), 0)
        root = jnp.sqrt(2 * log) + jnp.sqrt(2 * log + 8 / 3 * gap * log + 6 * gap * phase * expected)
        return jnp.ceil(jnp.clip(root**2 / gap**2, 1, 2.0**30)).astype(jnp.int32)

    def init(self, num_arms: int, horizon: int) -> ODAAFState:
        check_single(self)
        phase, gap = jnp.ones(()), jnp.asarray(0.5, float)
        log_horizon = jnp.asarray(math.log(horizon), float)
        return ODAAFState(
            own=ArmStatistics.empty(num_arms),
            active=jnp.ones(num_arms, bool),
            arm=jnp.asarray(num_arms, jnp.int32),
            phase=phase,
            gap=gap,
            target=self.rounds(phase, gap, log_horizon),
            bridge=jnp.zeros((), jnp.int32),
            log_horizon=log_horizon,
        )

    def scores(self, state: ODAAFState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        now = state.active & is_arm(state.arm, state.active.shape[0])
        wanted = state.active & ((state.bridge > 0) | (state.own.pulls < state.target))
        in_turn = jnp.where(now & wanted, 2, jnp.where(wanted, 1, 0)).astype(state.gap.dtype)
        return jnp.where(state.active, jnp.where(_decided(state), _means(state.own), in_turn), -jnp.inf)

    def update(self, state: ODAAFState, t: Int[Array, ""], arm: Int[Array, ""], observation: Anonymous) -> ODAAFState:
        num_arms, bridging = state.active.shape[0], state.bridge > 0
        pulled = jnp.where(bridging | _decided(state), 0, one_hot(arm, num_arms))
        own = state.own.add(pulled, pulled.astype(observation.reward.dtype) * observation.reward)
        done = ~bridging & ~_decided(state) & jnp.all(~state.active | (own.pulls >= state.target))
        best = jnp.max(jnp.where(state.active, _means(own), -jnp.inf))
        active = jnp.where(done & (_means(own) + state.gap < best), False, state.active)
        phase, gap = state.phase + 1, state.gap / 2
        last = self.rounds(state.phase - 1, 2 * state.gap, state.log_horizon)
        previous = jnp.where(state.phase > 1, last, 0)
        return ODAAFState(
            own=own,
            active=active,
            arm=arm,
            phase=jnp.where(done, phase, state.phase),
            gap=jnp.where(done, gap, state.gap),
            target=jnp.where(done, self.rounds(phase, gap, state.log_horizon), state.target),
            bridge=jnp.where(done, jnp.maximum(state.target - previous, 0), jnp.maximum(state.bridge - 1, 0)),
            log_horizon=state.log_horizon,
        )


def _decided(state: ODAAFState) -> Bool[Array, ""]:
    return (state.phase > 1) & (state.log_horizon + 2 * jnp.log(state.gap) <= 1)


def _means(own: ArmStatistics) -> Float[Array, " K"]:
    return own.rewards / jnp.maximum(own.pulls, 1).astype(own.rewards.dtype)
