"""Thompson sampling with a Beta posterior: on what has arrived, on what has settled, corrected for what is to come."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw
from jaxbandit.policies import beta
from jaxbandit.policies.base import ArmStatistics, Policy, check_single
from jaxbandit.policies.ducb import CorrectedState, check_arms, delay_law, window_or_never, window_or_none
from jaxbandit.policies.observations import Conversions, Feedback


def _prior(name: str, count: Any) -> Float[Array, "..."]:
    return _checks.floats(name, count, "finite and > 0", "1 and 1 are a uniform prior")


class Thompson(Policy):
    """A draw of ``Beta(successes + S, failures + max(N - S, 0))``: a reward that has not arrived is taken for a zero.

    Thompson (1933), Chapelle and Li (2011, Algorithm 2). Rewards between 0 and 1 enter as they are. A draw is
    ``X / (X + Y)`` of two gammas, each within 1e-5 of its distribution function, and smooth in the prior's counts.

    Args:
        successes: > 0, of the prior.
        failures: > 0.

    Raises:
        ValueError: a prior count that is not finite and positive.
    """

    successes: Float[Array, ""]
    failures: Float[Array, ""]

    def __init__(self, successes: Any = 1.0, failures: Any = 1.0):
        self.successes = _prior("Thompson: successes", successes)
        self.failures = _prior("Thompson: failures", failures)

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        check_single(self)
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return posterior_draw(key, self.successes, self.failures, state.rewards, state.pulls)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> ArmStatistics:
        return state.observe(arm, observation.rewards)


class DelayedThompson(Policy):
    """A draw of ``Beta(successes + R, failures + n - R)``, n the pulls that have settled and R their rewards.

    Needs ``Feedback``. Thompson sampling on what has settled, in the manner of Wu and Wager (2022), who study its
    Gaussian kin. Arguments and errors as for ``Thompson``, whose draws these are without delays.
    """

    observes: ClassVar = Feedback

    successes: Float[Array, ""]
    failures: Float[Array, ""]

    def __init__(self, successes: Any = 1.0, failures: Any = 1.0):
        self.successes = _prior("DelayedThompson: successes", successes)
        self.failures = _prior("DelayedThompson: failures", failures)

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        check_single(self)
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return posterior_draw(key, self.successes, self.failures, state.rewards, state.pulls)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Feedback
    ) -> ArmStatistics:
        return state.add(observation.settled, observation.rewards)


class CorrectedThompson(Policy):
    """A draw of ``Beta(successes + S, failures + max(Ñ - S, 0))``: only pulls that can have shown a reward count.

    S are the conversions with a delay of ``window`` rounds or less and Ñ the effective pulls, both as for ``DUCB``,
    whose correction this is (Vernade, Cappé and Perchet, 2017), with a posterior in place of a bound.

    Args:
        cdf: the delay law τ the policy believes in: one for all arms, or one an arm.
        window: the threshold m: conversions with a longer delay are not counted. ``None``: all are.
        successes, failures: as for ``Thompson``.

    Raises:
        TypeError: a window that is not a whole number, a ``cdf`` that is not a delay law.
        ValueError: a window < 1, ``cdf`` with laws for another number of arms, a prior count that is not positive.
    """

    cdf: DelayLaw
    window: Int[Array, ""] | None
    successes: Float[Array, ""]
    failures: Float[Array, ""]

    def __init__(self, cdf: DelayLaw, window: Any, successes: Any = 1.0, failures: Any = 1.0):
        self.cdf = delay_law("CorrectedThompson", cdf)
        self.window = window_or_none("CorrectedThompson", window)
        self.successes = _prior("CorrectedThompson: successes", successes)
        self.failures = _prior("CorrectedThompson: failures", failures)

    def init(self, num_arms: int, horizon: int) -> CorrectedState:
        check_single(self)
        check_arms("CorrectedThompson", self.cdf, num_arms)
        return CorrectedState.empty(num_arms, horizon, censored=self.window is not None)

    def scores(self, state: CorrectedState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        effective = state.effective.at(t, window_or_never(self.window), self.cdf)
        return posterior_draw(key, self.successes, self.failures, state.arms.rewards, effective)

    def update(
        self, state: CorrectedState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> CorrectedState:
        return state.observe(t, arm, observation, window_or_never(self.window), self.cdf)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(delay <= window_or_never(self.window), delay, NEVER)


def posterior_draw(
    key: Array, successes: Float[Array, ""], failures: Float[Array, ""], rewards: Array, pulls: Array
) -> Float[Array, " K"]:
    """A draw for each arm of ``Beta(successes + rewards, failures + max(pulls - rewards, 0))``."""
    dtype = rewards.dtype
    lost = jnp.maximum(pulls.astype(dtype) - rewards, 0)
    # Shapes are at least the prior's counts, which are the same in all runs of a batch.
    below_1 = (successes < 1) | (failures < 1)
    return beta.draw(key, successes.astype(dtype) + rewards, failures.astype(dtype) + lost, below_1)
