"""D-UCB and DKL-UCB: the mean is corrected for what cannot have arrived yet, by a delay law that is given."""

import abc
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.laws.base import DelayLaw
from jaxbandit.laws.combined import all_of
from jaxbandit.policies.base import ArmStatistics, Policy, check_single, where_pulled
from jaxbandit.policies.effective import EffectivePulls
from jaxbandit.policies.observations import Conversions

NEWTON_STEPS = 5

Warmup = Literal["arms", "window"]


class CorrectedState(NamedTuple):
    """Pulls, conversions with a delay of the window or less, and effective pulls."""

    arms: ArmStatistics
    effective: EffectivePulls

    @classmethod
    def empty(cls, num_arms: int, horizon: int, *, censored: bool) -> "CorrectedState":
        return cls(ArmStatistics.empty(num_arms), EffectivePulls.empty(num_arms, horizon, censored=censored))

    def observe(
        self, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions, window: Int[Array, ""], law: DelayLaw
    ) -> "CorrectedState":
        return CorrectedState(
            arms=self.arms.observe(arm, observation.rewards),
            effective=self.effective.observe(t, arm, window, law),
        )


def window_or_none(name: str, window: Any) -> Int[Array, "..."] | None:
    mend = "give a number of rounds, or None for the uncensored version"
    return None if window is None else _checks.integers(f"{name}: window", window, 1, NEVER, mend)


def window_or_never(window: Int[Array, ""] | None) -> Int[Array, ""]:
    return jnp.asarray(NEVER, jnp.int32) if window is None else window


def delay_law(name: str, cdf: Any) -> DelayLaw:
    """The law to be believed in, checked."""
    if not all_of(DelayLaw, cdf):
        raise TypeError(f"{name}: cdf must be a delay law such as Pareto(0.7), got {cdf!r}")
    return cdf


def check_arms(name: str, cdf: DelayLaw, num_arms: int) -> None:
    """Refuse a belief about other arms than there are.

    Raises:
        ValueError: it is one.
    """
    if cdf.batch_shape not in ((), (num_arms,)):
        raise ValueError(
            f"{name}: cdf has laws of shape {cdf.batch_shape}, but there are {num_arms} arms; "
            "give one law for all arms, or one an arm"
        )


class DelayCorrected(Policy):
    """What D-UCB and DKL-UCB share; they differ in ``index``.

    S are the conversions with a delay of ``window`` rounds or less, and Ñ the effective pulls, ``Ñ_i(t) = sum over
    s <= t-1 with a_s = i of τ_i(min(t-s, window))``.
    """

    window: Int[Array, ""] | None
    cdf: DelayLaw
    warmup: Warmup = eqx.field(static=True)

    def __init__(self, window: Any, cdf: DelayLaw, warmup: Warmup = "arms"):
        name = type(self).__name__
        self.window = window_or_none(name, window)
        self.cdf = delay_law(name, cdf)
        if warmup not in ("arms", "window"):
            raise ValueError(f"{name}: warmup must be 'arms' or 'window', got {warmup!r}")
        if warmup == "window" and window is None:
            raise ValueError(f"{name}: warmup='window' needs a window; use warmup='arms' for the uncensored version")
        self.warmup = warmup

    @abc.abstractmethod
    def index(
        self,
        rewards: Float[Array, " K"],
        effective: Float[Array, " K"],
        pulls: Float[Array, " K"],
        log_t: Float[Array, ""],
    ) -> Float[Array, " K"]:
        """The index of arms with ``effective`` > 0."""

    def init(self, num_arms: int, horizon: int) -> CorrectedState:
        check_single(self)
        check_arms(type(self).__name__, self.cdf, num_arms)
        return CorrectedState.empty(num_arms, horizon, censored=self.window is not None)

    def scores(self, state: CorrectedState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        pulls, rewards = state.arms.pulls, state.arms.rewards
        effective = state.effective.at(t, window_or_never(self.window), self.cdf)
        safe = jnp.where(effective > 0, effective, 1)
        log_t = jnp.log(t.astype(rewards.dtype))
        index = self.index(rewards, safe, pulls.astype(rewards.dtype), log_t)
        index = where_pulled(effective, index)
        if self.warmup == "arms":
            return index
        return jnp.where(t <= window_or_never(self.window) + pulls.shape[0], jnp.inf, index)

    def update(
        self, state: CorrectedState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> CorrectedState:
        return state.observe(t, arm, observation, window_or_never(self.window), self.cdf)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(delay <= window_or_never(self.window), delay, NEVER)


class DUCB(DelayCorrected):
    """``S/Ñ + sqrt(N/Ñ) sqrt(log t / (2 Ñ))``, +inf where Ñ = 0 (Vernade, Cappé and Perchet, 2017).

    Args:
        window: the threshold m: conversions with a longer delay are not counted. ``None``: the uncensored version.
        cdf: the delay law τ the policy believes in: one for all arms, or one an arm (``PerArm`` too).
        warmup: ``"arms"``: round-robin for t <= K, as in 2017; ``"window"``: for t <= m + K, as in Section 8.2 of
            Manegueu, Vernade, Carpentier and Valko (2020).

    Raises:
        TypeError: a window that is not a whole number, a ``cdf`` that is not a delay law.
        ValueError: a window < 1, an unknown warm-up, ``cdf`` with laws for another number of arms.
    """

    def __init__(self, window: Any, cdf: DelayLaw, warmup: Warmup = "arms"):
        super().__init__(window, cdf, warmup)

    def index(
        self,
        rewards: Float[Array, " K"],
        effective: Float[Array, " K"],
        pulls: Float[Array, " K"],
        log_t: Float[Array, ""],
    ) -> Float[Array, " K"]:
        return (rewards + jnp.sqrt(pulls * log_t / 2)) / effective


class DKLUCB(DelayCorrected):
    """``max{q in [θ, 1] : Ñ (θ log(θ/q) + q - θ) <= log t}`` with ``θ = min(1, S/Ñ)``, and +inf where
    Ñ = 0.

    DKL-UCB of Vernade, Cappé and Perchet (2017). Arguments and errors as for ``DUCB``.
    """

    def __init__(self, window: Any, cdf: DelayLaw, warmup: Warmup = "arms"):
        super().__init__(window, cdf, warmup)

    def index(
        self,
        rewards: Float[Array, " K"],
        effective: Float[Array, " K"],
        pulls: Float[Array, " K"],
        log_t: Float[Array, ""],
    ) -> Float[Array, " K"]:
        theta = jnp.minimum(rewards / effective, 1)
        budget = log_t / effective
        upper = poisson_upper(jnp.where(theta > 0, theta, 1), budget)
        return jnp.minimum(jnp.where(theta > 0, upper, budget), 1)


def poisson_upper(theta: Float[Array, "..."], budget: Float[Array, "..."]) -> Float[Array, "..."]:
    """The q >= θ > 0 with ``θ log(θ/q) + q - θ = budget``.

    In ``q = θ e^s`` this reads ``e^s - 1 - s = y`` with ``y = budget/θ``. Newton's method comes down on it from
    ``e^s = 1 + sqrt(2y) + y``, which is never below the root, and is at the precision of the floats after few steps.
    """
    y = budget / theta
    s = jnp.log1p(jnp.sqrt(2 * y) + y)
    for _ in range(NEWTON_STEPS):
        slope = jnp.expm1(s)
        s = jnp.maximum(s - (slope - s - y) / jnp.where(slope > 0, slope, 1), 0)
    return theta * jnp.exp(s)
