"""What D-UCB tends to with a window, and from which window on it ranks the arms rightly."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.instance import Instance
from jaxbandit.laws.base import DelayLaw
from jaxbandit.laws.combined import all_of
from jaxbandit.theory import checks
from jaxbandit.theory.checks import BLOCK


def ducb_limits(instance: Instance, window: Any, cdf: DelayLaw) -> Float[Array, " K"]:
    """``μ_i P(D_i <= m) / τ(m)``: what the estimates of ``DUCB(window=m, cdf=τ)`` tend to, arm by arm.

    They are the means only if τ is the delay law of every arm. In the ranking of the arms τ cancels.

    Args:
        instance: the problem.
        window: the threshold m >= 1, a whole number, or an array of them: of shape [...], for limits of [..., K].
        cdf: the delay law τ the policy believes in, one for all arms.

    Raises:
        TypeError: something that is not an instance, a window that is not whole, a ``cdf`` that is not a delay law.
        ValueError: a window < 1.
    """
    checks.check_instance("ducb_limits", instance)
    window = _checks.integers("ducb_limits: window", window, 1, NEVER, "give a number of rounds").astype(float)
    if not all_of(DelayLaw, cdf):
        raise TypeError(f"ducb_limits: cdf must be a delay law such as Pareto(0.7), got {cdf!r}")
    return instance.means * instance.delay.cdf(window) / jnp.broadcast_to(cdf.cdf(window), window.shape)[..., None]


def ducb_consistent_window(instance: Instance) -> Int[Array, ""]:
    """The smallest window m >= 2 from which on ``ducb_limits`` put a best arm first; ``NEVER`` if there is none below.

    With a smaller window D-UCB may settle on a worse arm, and its regret is linear: for means (0.6, 0.8) and Pareto
    delays of tail index (1, 0.3), as in Figure 5, below m = 92. The belief τ makes no difference. As m grows, Pareto
    delays rank the arms wrongly, then rightly; others may come to rank them wrongly again: the last time counts.

    Raises:
        TypeError: something that is not an instance, or delays whose survival function is unknown.
        ValueError: fewer than two arms.
    """
    checks.check_instance("ducb_consistent_window", instance)
    if instance.num_arms < 2:
        raise ValueError("ducb_consistent_window: instance has one arm; there is nothing to rank, give it two or more")
    with checks.known_survival("ducb_consistent_window", instance.delay):
        return _first_window(instance)


@jax.jit
def _first_window(instance: Instance) -> Int[Array, ""]:
    """From ``NEVER`` downwards to the first window that ranks wrongly.

    Let u(m) and v(m) be the least ``μ_b - μ_i P(D_i <= m)`` of the best arms and of the others: m ranks rightly where
    u(m) < v(m). Neither grows with m, so that u(a) < v(b) settles all of a..b, and the least such a is found by
    bisection. Where that is not far, the windows of a block are looked at one by one.
    """
    best = instance.gaps == 0

    def shortfalls(window: Int[Array, ""]) -> tuple[Array, Array]:
        """u and v, with differences of small numbers in place of numbers near 1."""
        shortfall = instance.gaps + instance.means * instance.delay.survival(window.astype(float))
        return jnp.min(jnp.where(best, shortfall, jnp.inf)), jnp.min(jnp.where(best, jnp.inf, shortfall))

    def ranks_rightly(window: Int[Array, ""]) -> Bool[Array, ""]:
        u, v = shortfalls(window)
        return (window >= 2) & (u < v)

    def halve(_: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, v = state
        middle = low + (high - low) // 2
        settled = shortfalls(middle)[0] < v
        return jnp.where(settled | (low == high), low, middle + 1), jnp.where(settled, middle, high), v

    def further_down(first: Int[Array, ""]) -> Int[Array, ""]:
        start = jnp.full((), 2, jnp.int32), first - 1, shortfalls(first - 1)[1]
        first = jax.lax.fori_loop(0, NEVER.bit_length(), halve, start)[1]
        block = jax.vmap(ranks_rightly)(first - 1 - jnp.arange(BLOCK, dtype=jnp.int32))
        return first - jnp.where(block.all(), BLOCK, jnp.argmin(block)).astype(jnp.int32)

    never = jnp.full((), NEVER, jnp.int32)
    return jax.lax.while_loop(lambda first: ranks_rightly(first - 1), further_down, never)
