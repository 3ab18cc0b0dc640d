"""Adapt-PatientBandits: the tail index is estimated on the way, in O(K) work a round."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit._checks import NEVER
from jaxbandit.policies.base import ArmStatistics, Policy, add_compensated, check_single
from jaxbandit.policies.observations import ConversionsByPull, Pull, counts
from jaxbandit.policies.patient import log_term, patient_bonus

Scalar = Float[Array, ""]


class Log(NamedTuple):
    """The pull of every round: ``code`` is its delay and its arm, so that both are one look-up.

    A reward of 0 is logged as one that never comes; if rewards are 0 or 1, ``reward`` is not needed, nor written.
    """

    code: Int[Array, "T+1"]
    reward: Float[Array, "T+1"]

    @classmethod
    def empty(cls, horizon: int) -> "Log":
        return cls(code=jnp.zeros(horizon + 1, jnp.int32), reward=jnp.zeros(horizon + 1))

    def write(self, t: Int[Array, ""], pull: Pull, num_arms: int) -> "Log":
        """A delay of half the horizon or more is longer than any window, and shortened to that."""
        longest = self.code.shape[0] // 2 + 2
        delay = jnp.where(pull.reward > 0, jnp.minimum(pull.delay, longest), longest)
        code = self.code.at[t].set((delay << _bits(num_arms)) | pull.arm)
        if counts(pull.reward):
            return self._replace(code=code)
        return Log(code=code, reward=self.reward.at[t].set(pull.reward.astype(self.reward.dtype)))

    def read(self, t: Int[Array, "..."], num_arms: int) -> tuple[Int[Array, "..."], Int[Array, "..."]]:
        """Delays and arms."""
        code = self.code[t]
        return code >> _bits(num_arms), code & (2 ** _bits(num_arms) - 1)


def _bits(num_arms: int) -> int:
    """Bits of an arm. Beside it a delay fits, unless (T + 5) (K - 1) reaches 2^31: far more than a memory holds."""
    return (num_arms - 1).bit_length()


class Lookback(NamedTuple):
    """For a window of w_i rounds per arm: the arm's pulls of rounds s <= t - w_i, at the start of round t.

    The first axis is for the long windows D and the short ones d. ``seen`` is the sum of C_s 1{D_s <= w_i} over these
    pulls, and ``error`` its rounding error. ``by_delay[..., i, d]`` is the sum of C_s over those with D_s = d; it is
    read at d = w_i + 1 only, when the window grows to it, and by then each of these pulls is that old.
    """

    window: Int[Array, "2 K"]
    pulls: Int[Array, "2 K"]
    seen: Float[Array, "2 K"]
    error: Float[Array, "2 K"]
    by_delay: Float[Array, "2 K W"]

    @classmethod
    def empty(cls, num_arms: int, horizon: int) -> "Lookback":
        shape = (2, num_arms)
        return cls(
            window=jnp.ones(shape, jnp.int32),
            pulls=jnp.zeros(shape, jnp.int32),
            seen=jnp.zeros(shape),
            error=jnp.zeros(shape),
            by_delay=jnp.zeros((*shape, horizon // 2 + 2)),
        )

    def advance(self, t: Int[Array, ""], log: Log, window: Int[Array, "2 K"], exact: bool) -> "Lookback":
        """To the start of round t, with the windows of that round: each as before, or grown by one.

        Of a window that stayed, pull t - w is now old enough. Of one that grew, the set of old pulls stayed, and
        rewards with a delay of exactly the new window have become visible.
        """
        num_arms = window.shape[1]
        which, arms = jnp.arange(2, dtype=jnp.int32)[:, None], jnp.arange(num_arms, dtype=jnp.int32)[None]
        grown = window > self.window
        s = t - window
        at = jnp.maximum(s, 0)
        delay, arm = log.read(at, num_arms)
        ripe = ~grown & (s >= 1) & (arm == arms)
        reward = jnp.where(ripe, 1 if exact else log.reward[at], 0).astype(self.seen.dtype)
        filed = jnp.where(ripe, delay, NEVER)  # what never comes is beyond the last entry, and not added
        by_delay = self.by_delay.at[which, arms, filed].add(reward, mode="drop", wrap_negative_indices=False)
        arrived = jnp.where(grown, by_delay[which, arms, window], jnp.where(delay <= window, reward, 0))
        seen, error = add_compensated(self.seen, self.error, arrived, exact)
        pulls = self.pulls + ripe.astype(jnp.int32)
        return Lookback(window=window, pulls=pulls, seen=seen, error=error, by_delay=by_delay)

    def means(self, arm: Int[Array, ""]) -> Float[Array, "2"]:
        """``m_D`` and ``m_d``: the mean of C_s 1{D_s <= w} over the arm's pulls that are at least w rounds old."""
        return pick(self.seen, arm) / jnp.maximum(pick(self.pulls, arm), 1).astype(self.seen.dtype)


class AdaptiveState(NamedTuple):
    arms: ArmStatistics
    log: Log
    lookback: Lookback
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
            log=Log.empty(horizon),
            lookback=Lookback.empty(num_arms, horizon),
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
        long, short = state.lookback.means(most)
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
        log = state.log.write(t, observation.pull, arms.pulls.shape[0])
        exact = counts(observation.pull.reward)
        lookback = state.lookback.advance(t + 1, log, self.windows(arms.pulls), exact)
        return AdaptiveState(arms=arms, log=log, lookback=lookback, log_term=state.log_term)

    def diagnostics(self, state: AdaptiveState, t: Int[Array, ""]) -> dict[str, Array]:
        alpha_hat, alpha_bar = self.estimate(state)
        return {"alpha_hat": alpha_hat, "alpha_bar": alpha_bar}
