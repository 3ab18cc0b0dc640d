"""Adapt-PatientBandits: the tail index is estimated on the way, from the age at which rewards have arrived."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit.policies.base import ArmStatistics, Policy, check_single
from jaxbandit.policies.observations import ConversionsByPull, Sums
from jaxbandit.policies.patient import log_term, patient_bonus

Scalar = Float[Array, ""]


class AdaptiveState(NamedTuple):
    """``old`` are the sums behind ``m_D`` and ``m_d``, in this order."""

    arms: ArmStatistics
    old: Sums
    log_term: Scalar


class AdaptPatientBandits(Policy):
    """PatientBandits with the tail index estimated from the most pulled arm. Round-robin for t <= 2 K.

    With n the pulls of that arm, D = max(1, floor(n/2)), d = max(1, floor((c/2)^(1/alpha_min) D)) and m_w the mean of
    C_s 1{D_s <= w} over its pulls that are at least w rounds old,

    ``alpha_hat = min(-log(m_D - m_d) / log n, 1/2)`` (1/2 where m_D <= m_d),
    ``alpha_bar = max(0, alpha_hat - lcb_scale log(16 sqrt(L) / (c mean_min)) / log n)``,

    and the index is ``S/N + sqrt(2 L / N) + 2 N^-alpha_bar``, ``L = log(2 K T^3)``. Algorithm 2 of Manegueu, Vernade,
    Carpentier and Valko (2020). ``diagnostics`` are ``alpha_hat`` and ``alpha_bar``. With lcb_scale = 1 alpha_bar is 0
    until the most pulled arm has some 26 000 pulls (K = 2, c = 1, mean_min = 0.5).

    Args:
        c: constant of Assumption 2, in (0, 1]; 1 for Pareto delays.
        alpha_min: lower bound on the tail index, > 0.
        mean_min: lower bound on the means, in (0, 1].
        lcb_scale: factor of the confidence width of alpha_hat, >= 0; 1 in the paper, 0 to trust the estimate.

    Raises:
        ValueError: a number outside its range.
    """

    observes: ClassVar = ConversionsByPull

    c: Scalar
    alpha_min: Scalar
    mean_min: Scalar
    lcb_scale: Scalar

    def __init__(self, c: Any, alpha_min: Any, mean_min: Any, lcb_scale: Any = 1.0):
        def number(name: str, x: Any, rule: str, mend: str) -> Array:
            return _checks.floats(f"AdaptPatientBandits: {name}", x, rule, mend)

        self.c = number("c", c, "in (0, 1]", "1 is right for Pareto delays")
        self.alpha_min = number("alpha_min", alpha_min, "finite and > 0", "give a lower bound")
        self.mean_min = number("mean_min", mean_min, "in (0, 1]", "give a lower bound on the means")
        self.lcb_scale = number("lcb_scale", lcb_scale, "finite and >= 0", "the paper's is 1")

    def init(self, num_arms: int, horizon: int) -> AdaptiveState:
        check_single(self)
        return AdaptiveState(
            arms=ArmStatistics.empty(num_arms),
            old=Sums(pulls=jnp.zeros((2, num_arms), jnp.int32), rewards=jnp.zeros((2, num_arms))),
            log_term=jnp.asarray(log_term(num_arms, horizon)),
        )

    def windows(self, pulls: Int[Array, " K"]) -> Int[Array, "2 K"]:
        """D and d. An ulp is added before the floor: (1/2)^5 times 32 is 1, however it is rounded."""
        long = jnp.maximum(pulls // 2, 1)
        ratio = jnp.exp(jnp.log(self.c / 2) / self.alpha_min) * (1 + jnp.finfo(self.c.dtype).eps)
        short = jnp.maximum(jnp.floor(ratio * long.astype(ratio.dtype)).astype(jnp.int32), 1)
        return jnp.stack([long, short])

    def estimate(self, state: AdaptiveState) -> tuple[Scalar, Scalar]:
        """``alpha_hat`` and ``alpha_bar`` at the start of a round."""
        pulls = state.arms.pulls
        most = jnp.argmax(pulls).astype(jnp.int32)
        log_n = jnp.log(jnp.maximum(pick(pulls, most), 2).astype(state.log_term.dtype))
        old = jnp.maximum(pick(state.old.pulls, most), 1)
        long, short = pick(state.old.rewards, most) / old.astype(state.old.rewards.dtype)
        rise = long - short
        slope = -jnp.log(jnp.where(rise > 0, rise, 1)) / log_n
        alpha_hat = jnp.where(rise > 0, jnp.minimum(slope, 0.5), 0.5)
        width = jnp.log(16 * jnp.sqrt(state.log_term) / (self.c * self.mean_min)) / log_n
        return alpha_hat, jnp.maximum(alpha_hat - self.lcb_scale * width, 0)

    def scores(self, state: AdaptiveState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        _, alpha_bar = self.estimate(state)
        pulls, rewards = state.arms.pulls, state.arms.rewards
        deviation, two = jnp.sqrt(2 * state.log_term), jnp.asarray(2, state.log_term.dtype)
        index = rewards / jnp.maximum(pulls, 1).astype(rewards.dtype) + patient_bonus(pulls, alpha_bar, deviation, two)
        return jnp.where(t <= 2 * pulls.shape[0], jnp.inf, index)

    def update(
        self, state: AdaptiveState, t: Int[Array, ""], arm: Int[Array, ""], observation: ConversionsByPull
    ) -> AdaptiveState:
        arms = state.arms.observe(arm, observation.rewards)
        return AdaptiveState(arms=arms, old=observation.old, log_term=state.log_term)

    def diagnostics(self, state: AdaptiveState, t: Int[Array, ""]) -> dict[str, Array]:
        alpha_hat, alpha_bar = self.estimate(state)
        return {"alpha_hat": alpha_hat, "alpha_bar": alpha_bar}
