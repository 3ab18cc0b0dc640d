"""PatientBandits: a confidence bound that leaves room for rewards which are still to come."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._arms import is_arm, pick
from jaxbandit.policies.base import ArmStatistics, Policy, check_single, where_pulled
from jaxbandit.policies.observations import Conversions


def log_term(num_arms: int, horizon: int) -> float:
    """``L = log(2 K T^3)`` of the paper's confidence bounds."""
    return math.log(2 * num_arms) + 3 * math.log(horizon)


def corollary1_alpha(t: Int[Array, ""]) -> Float[Array, ""]:
    """``max(0, log log t / log t)`` for t >= 3 and 0 before: the schedule of Corollary 1."""
    log_t = jnp.log(jnp.maximum(t, 3).astype(float))
    return jnp.where(t < 3, 0, jnp.maximum(jnp.log(log_t) / log_t, 0))


def patient_bonus(
    pulls: Num[Array, "*K"], alpha: Float[Array, ""], deviation: Float[Array, ""], bias_scale: Float[Array, ""]
) -> Float[Array, "*K"]:
    """``deviation / sqrt(n) + bias_scale n^-min(alpha, 1/2)``, +inf where n = 0."""
    n = jnp.maximum(pulls, 1).astype(deviation.dtype)
    bias = bias_scale * jnp.exp(-jnp.minimum(alpha, 0.5) * jnp.log(n))
    return where_pulled(pulls, deviation / jnp.sqrt(n) + bias)


class PatientState(NamedTuple):
    """``bonus`` is ``patient_bonus`` at the present pulls, renewed for the pulled arm only; schedules do not use it."""

    arms: ArmStatistics
    bonus: Float[Array, " K"]
    deviation: Float[Array, ""]


class PatientBandits(Policy):
    """``S/N + bonus_scale sqrt(2 L / N) + bias_scale N^-min(alpha, 1/2)`` with ``L = log(2 K T^3)``.

    Round-robin for t <= K. Algorithm 1 of Manegueu, Vernade, Carpentier and Valko (2020).

    Args:
        alpha: tail index the delays are trusted to have, >= 0: a number, or a function of the round t (1..T) such as
            ``jaxbandit.corollary1_alpha``. A function is part of the program: a new one compiles again. One with
            numbers of its own is an ``equinox.Module`` with a ``__call__``: they are traced.
        bonus_scale: factor of the deviation term, >= 0.
        bias_scale: factor of the bias term, >= 0.

    Raises:
        ValueError: a negative or NaN number.
    """

    alpha: Float[Array, ""] | Callable[[Array], Array]
    bonus_scale: Float[Array, ""]
    bias_scale: Float[Array, ""]

    def __init__(self, alpha: Any, bonus_scale: Any = 1.0, bias_scale: Any = 2.0):
        def number(name: str, x: Any, mend: str) -> Array:
            return _checks.floats(f"PatientBandits: {name}", x, "finite and >= 0", mend)

        if callable(alpha):
            schedule: Any = alpha if isinstance(alpha, eqx.Module) else jax.tree_util.Partial(alpha)
            self.alpha = schedule
        else:
            self.alpha = number("alpha", alpha, "give the smallest tail index you expect, or a function of t")
        self.bonus_scale = number("bonus_scale", bonus_scale, "the paper's is 1")
        self.bias_scale = number("bias_scale", bias_scale, "the paper's is 2")

    def init(self, num_arms: int, horizon: int) -> PatientState:
        check_single(self)
        return PatientState(
            arms=ArmStatistics.empty(num_arms),
            bonus=jnp.full(num_arms, jnp.inf, self.bonus_scale.dtype),
            deviation=self.bonus_scale * math.sqrt(2 * log_term(num_arms, horizon)),
        )

    def scores(self, state: PatientState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        if callable(self.alpha):
            bonus = patient_bonus(state.arms.pulls, self.alpha(t), state.deviation, self.bias_scale)
        else:
            bonus = state.bonus
        return state.arms.rewards / jnp.maximum(state.arms.pulls, 1).astype(bonus.dtype) + bonus

    def update(
        self, state: PatientState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> PatientState:
        arms, bonus = state.arms.observe(arm, observation.rewards), state.bonus
        if not callable(self.alpha):
            renewed = patient_bonus(pick(arms.pulls, arm), self.alpha, state.deviation, self.bias_scale)
            bonus = jnp.where(is_arm(arm, bonus.shape[0]), renewed, bonus)
        return PatientState(arms=arms, bonus=bonus, deviation=state.deviation)
