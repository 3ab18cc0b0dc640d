"""KL-UCB: the bound of UCB1, with the Bernoulli law's own distance in place of a square."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit.policies.base import ArmStatistics, Policy, check_single, where_pulled
from jaxbandit.policies.observations import Conversions, Feedback

NEWTON_STEPS = 8

SERIES_BELOW = 0.1
"""Below this the logarithm is taken by its series, which does not cancel."""


def bernoulli_upper(mean: Float[Array, "..."], budget: Float[Array, "..."]) -> Float[Array, "..."]:
    """``max{q in [mean, 1] : kl(mean, q) <= budget}``, kl that of Bernoulli laws; exact at means 0 and 1.

    In ``1 - q = (1 - mean) e^-s`` the distance is ``mean g((q - mean) / mean) + (1 - mean) (s - 1 + e^-s)`` with
    ``g(x) = x - log(1 + x)``, convex in s: Newton's method comes down on the root from a bound that is never below it.
    """
    inner = (mean > 0) & (mean < 1)
    p = jnp.where(inner, mean, 0.5)
    s = _start(p, budget)
    for _ in range(NEWTON_STEPS):
        w = -jnp.expm1(-s)
        above = (1 - p) * w
        rest = jnp.where(w < SERIES_BELOW, _minus_log1p(-jnp.minimum(w, SERIES_BELOW)), s - w)
        distance = p * _minus_log1p(above / p) + (1 - p) * rest
        slope = above / (p + above)
        s = jnp.maximum(s - (distance - budget) / jnp.where(slope > 0, slope, 1), 0)
    upper = jnp.where(inner, p - (1 - p) * jnp.expm1(-s), -jnp.expm1(-budget))
    return jnp.where(mean < 1, jnp.minimum(upper, 1), 1)


def _start(p: Float[Array, "..."], budget: Float[Array, "..."]) -> Float[Array, "..."]:
    """An s at or above the root: kl is at least ``(1-p) s - p log(1/p)``, and at least ``2 (q-p)^2``; below it as well
    ``(q-p)^2 / (2 p (1-p))`` for p > 1/2 and the distance of Poisson laws."""
    linear = (budget - p * jnp.log(p)) / (1 - p)
    rise = jnp.sqrt(budget / 2)
    steep = jnp.where(p > 0.5, jnp.sqrt(2 * p * (1 - p) * budget), jnp.sqrt(2 * p * budget) + budget)
    w = jnp.minimum(rise, steep) / (1 - p)
    return jnp.minimum(linear, jnp.where(w < 1, -jnp.log1p(-jnp.where(w < 1, w, 0)), linear))


def _minus_log1p(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``x - log(1 + x) >= 0``, to the precision of the floats near 0 too."""
    small = jnp.abs(x) < SERIES_BELOW
    y = jnp.where(small, x, 0)
    z = y / (2 + y)
    # log(1 + y) = 2 artanh z: what is left of y - 2z is y z, and the rest a series in z^2.
    terms = sum((z * z) ** k / (2 * k + 1) for k in range(6, 0, -1))
    series = z * (y - 2 * terms)
    return jnp.where(small, series, x - jnp.log1p(jnp.where(small, 0, x)))


def klucb_index(
    rewards: Float[Array, " K"], pulls: Int[Array, " K"], t: Int[Array, ""], c: Float[Array, ""]
) -> Float[Array, " K"]:
    """``max{q >= S/n : n kl(S/n, q) <= log t + c log max(log t, 1)}``, +inf where n = 0."""
    n = jnp.maximum(pulls, 1).astype(rewards.dtype)
    log_t = jnp.log(t.astype(rewards.dtype))
    budget = log_t + c.astype(rewards.dtype) * jnp.log(jnp.maximum(log_t, 1))
    mean = jnp.clip(rewards / n, 0, 1)
    return where_pulled(pulls, bernoulli_upper(mean, budget / n))


def _constant(name: str, c: Any) -> Float[Array, "..."]:
    return _checks.floats(f"{name}: c", c, "finite and >= 0", "0 is best in practice, 3 is what the theory asks for")


class KLUCB(Policy):
    """``max{q >= S/N : N kl(S/N, q) <= log t + c log max(log t, 1)}``, kl that of Bernoulli laws; +inf where N = 0.

    A reward that has not arrived is taken for a zero (Garivier and Cappé, 2011).

    Args:
        c: >= 0.

    Raises:
        ValueError: a negative or NaN number.
    """

    c: Float[Array, ""]

    def __init__(self, c: Any = 0.0):
        self.c = _constant("KLUCB", c)

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        check_single(self)
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return klucb_index(state.rewards, state.pulls, t, self.c)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> ArmStatistics:
        return state.observe(arm, observation.rewards)


class DelayedKLUCB(Policy):
    """KL-UCB on the pulls whose delay has passed, zeros included (Joulani, György and Szepesvári, 2013, Section 4).

    ``max{q >= R/n : n kl(R/n, q) <= log t + c log max(log t, 1)}`` with n the pulls that have settled and R their
    rewards; +inf where n = 0. Needs ``Feedback``. Arguments and errors as for ``KLUCB``.
    """

    observes: ClassVar = Feedback

    c: Float[Array, ""]

    def __init__(self, c: Any = 0.0):
        self.c = _constant("DelayedKLUCB", c)

    def init(self, num_arms: int, horizon: int) -> ArmStatistics:
        check_single(self)
        return ArmStatistics.empty(num_arms)

    def scores(self, state: ArmStatistics, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return klucb_index(state.rewards, state.pulls, t, self.c)

    def update(
        self, state: ArmStatistics, t: Int[Array, ""], arm: Int[Array, ""], observation: Feedback
    ) -> ArmStatistics:
        return state.add(observation.settled, observation.rewards)
