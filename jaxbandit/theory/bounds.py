"""The bounds and hard instances of Manegueu, Vernade, Carpentier and Valko (2020), "the paper", as functions.

Each docstring has the statement, its number, and what is wrong with it; where the paper's version and a correct one
differ, ``printed=True`` gives the paper's. Numbers may be arrays of one shape; all works under ``jit`` and ``vmap``.
Here a is ``min(tail_index, 1/2)``, K is ``num_arms`` and T is ``horizon``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import rel_entr
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.engine.protocol import MAX_HORIZON
from jaxbandit.instance import Instance
from jaxbandit.laws.base import DelayLaw, safe_log
from jaxbandit.laws.combined import all_of
from jaxbandit.laws.continuous_delays import Pareto
from jaxbandit.laws.discrete_delays import Empirical
from jaxbandit.laws.rewards import Bernoulli

BLOCK = 2**12  # so many ages of a delay law are looked at side by side

Numbers = Float[Array, "..."]


def _tail_index(name: str, x: Any) -> Numbers:
    return _checks.floats(f"{name}: tail_index", x, "finite and > 0", "rewards that come at once have any tail index")


def _count(name: str, x: Any) -> Numbers:
    return _checks.floats(name, x, "finite and >= 1", "give a number of rounds, pulls or arms")


def _fraction(name: str, x: Any) -> Numbers:
    return _checks.floats(name, x, "in (0, 1]", "give a number above 0 and at most 1")


def _check_instance(name: str, instance: Any) -> None:
    if not isinstance(instance, Instance):
        raise TypeError(f"{name}: instance must be a jaxbandit.Instance, got {instance!r}")


def theorem1_width(pulls: Any, tail_index: Any, delta: Any) -> Numbers:
    """``sqrt(2 log(2/δ) / n) + 2 n^-a``: half the width of the confidence interval of an arm's mean after n pulls.

    Theorem 1: under Assumption 1, ``|S/n - mean|`` is at most this with probability 1 - δ. The proof is for a number of
    pulls fixed in advance; for a policy that chooses it, δ is to be divided by the pulls possible (Eq. 8 has K T^2 for
    all arms and rounds together). Both terms are generous: the rewards lie in an interval of length 1, not 2, for which
    ``sqrt(log(2/δ) / (2 n))`` is enough; and the bias is one-sided, at most ``mean (1 + 2^-α + ... + n^-α) / n``.

    Args:
        pulls: n >= 0; the width of no pulls is infinite.
        tail_index: α of Assumption 1, > 0.
        delta: δ, in (0, 1].

    Raises:
        ValueError: a number outside its range.
    """
    n = _checks.floats("theorem1_width: pulls", pulls, "finite and >= 0", "give a number of pulls")
    a = jnp.minimum(_tail_index("theorem1_width", tail_index), 0.5)
    delta = _fraction("theorem1_width: delta", delta)
    return jnp.sqrt(2 * jnp.log(2 / delta) / n) + 2 * jnp.exp(-a * jnp.log(n))


def theorem2_bound(instance: Instance, tail_index: Any, horizon: Any, *, printed: bool = False) -> Float[Array, ""]:
    """``sum over gaps Δ > 0 of max(64 log(2T)/Δ, 8 (8/Δ)^max((1-α)/α, 1)) + 2K``: a bound on the expected regret of
    ``PatientBandits(tail_index)``.

    Theorem 2, from Assumption 1. The paper has lost the 8 before the power, in which its proof puts ``Δ (8/Δ)^(1/α)``.
    The first term needs ``16 log(2KT^3)/Δ^2`` pulls in Eq. 12, where the printed step gives 32; it is right because the
    bias of delays is one-sided.

    Args:
        instance: the problem; of it only the gaps are used.
        tail_index: α > 0, for which the delays satisfy Assumption 1, and which the policy is told.
        horizon: T >= 1.
        printed: the paper's version.

    Raises:
        TypeError: something that is not an instance.
        ValueError: a number outside its range.
    """
    _check_instance("theorem2_bound", instance)
    tail_index, horizon = _tail_index("theorem2_bound", tail_index), _count("theorem2_bound: horizon", horizon)
    gap = jnp.where(instance.gaps > 0, instance.gaps, 1)
    power = (1 if printed else 8) * jnp.exp(jnp.maximum((1 - tail_index) / tail_index, 1) * jnp.log(8 / gap))
    terms = jnp.maximum(64 * jnp.log(2 * horizon) / gap, power)
    return jnp.sum(jnp.where(instance.gaps > 0, terms, 0), axis=-1) + 2 * instance.num_arms


def theorem3_bound(num_arms: Any, horizon: Any, tail_index: Any) -> Numbers:
    """``2 · 64^max(1-α, 1/2) T^(1-a) (K log(2T))^a + 2K``: a bound on the expected regret of
    ``PatientBandits(tail_index)`` on every instance that satisfies Assumption 1.

    Theorem 3. It stands although Theorem 2 does not: its constant has room for the missing 8. For K = 2 it says
    something (is below T) from T = 4700 on if α = 1/2, and from T = 2.7e10 on if α = 0.2.

    Raises:
        ValueError: a number outside its range.
    """
    k, t = _count("theorem3_bound: num_arms", num_arms), _count("theorem3_bound: horizon", horizon)
    tail_index = _tail_index("theorem3_bound", tail_index)
    a = jnp.minimum(tail_index, 0.5)
    constant = 2 * jnp.exp(jnp.maximum(1 - tail_index, 0.5) * np.log(64).item())
    return constant * jnp.exp((1 - a) * jnp.log(t) + a * jnp.log(k * jnp.log(2 * t))) + 2 * k


def theorem4_gap(horizon: Any, tail_index: Any) -> Numbers:
    """``q = p / (4 - 2p)`` with ``p = T^-α``: the gap of both problems of ``theorem4_pair`` (Eq. 14).

    Raises:
        ValueError: a number outside its range.
    """
    return _gap(_lost("theorem4_gap", horizon, tail_index))


def _lost(name: str, horizon: Any, tail_index: Any) -> Numbers:
    """``p = T^-α``, the share of rewards that Problem B delays beyond the horizon."""
    return jnp.exp(-_tail_index(name, tail_index) * jnp.log(_count(f"{name}: horizon", horizon)))


def _gap(lost: Numbers) -> Numbers:
    return lost / (4 - 2 * lost)


def theorem4_pair(horizon: Any, tail_index: Any) -> tuple[Instance, Instance]:
    """Problems A and B, which no policy can tell apart in T rounds, and whose better arms differ.

    Arm 0 is a fair coin without delay in both. In A arm 1 is worse by q, without delay; in B it is better by q, but
    a share p = T^-α of its rewards comes T rounds late: ``(1/2 + q)(1 - p) = 1/2 - q`` (proof of Theorem 4). A policy
    that sees conversions, as in the paper, thus pulls arm 1 as often in A as in B, in expectation, and
    ``regret in A + regret in B = q T`` exactly, whatever the policy. One with feedback can tell them apart.

    Args:
        horizon: T, a whole number >= 1.
        tail_index: α > 0; both problems satisfy Assumption 1 for it.

    Raises:
        TypeError: a horizon that is not a whole number.
        ValueError: a number outside its range.
    """
    horizon = _checks.integers("theorem4_pair: horizon", horizon, 1, NEVER - 1, "give a number of rounds")
    p = _lost("theorem4_pair", horizon.astype(float), tail_index)
    q, zero, half = _gap(p), jnp.zeros_like(p), jnp.full_like(p, 0.5)
    delays = jnp.stack([jnp.zeros_like(horizon), horizon])

    def problem(mean: Numbers, late: Numbers) -> Instance:
        chances = jnp.stack([1 - jnp.stack([zero, late]), jnp.stack([zero, late])], axis=-1)
        return Instance(reward=Bernoulli(jnp.stack([half, mean])), delay=Empirical(delays, chances))

    return problem(half - q, zero), problem(half + q, p)


def theorem4_lower_bound(horizon: Any, tail_index: Any) -> Numbers:
    """``T^(1-α) / 8``: below the larger regret of any policy on the two problems of ``theorem4_pair``.

    Theorem 4, which swaps the quantifiers: there is no problem that is hard for all policies, but for every policy one
    of the two is. As their regrets add up to q T, the larger is at least ``q T / 2 >= T^(1-α) / 8``.

    Raises:
        ValueError: a number outside its range.
    """
    return _lost("theorem4_lower_bound", horizon, tail_index) * jnp.asarray(horizon, dtype=float) / 8


def theorem5_lower_bound(horizon: Any, tail_index: Any, regret: Any) -> Numbers:
    """``max(q T - regret, 0)``: the expected regret on Problem A of a policy that has at most ``regret`` on Problem B.

    What is left of Theorem 5: caution for tails of index α costs as much where there is no delay at all. As printed,
    ``T^(1-α) / 8`` is the bound for every policy with ``regret <= T^(1-α) / 8`` wherever Assumption 1 holds. At that
    value this function exceeds it, but by Theorem 4 no such policy exists. (In the proof p must be T^-α, not T^α.)

    Args:
        horizon: T >= 1.
        tail_index: α > 0, of ``theorem4_pair``.
        regret: expected regret on Problem B, or a bound on it, >= 0.

    Raises:
        ValueError: a number outside its range.
    """
    gap = _gap(_lost("theorem5_lower_bound", horizon, tail_index))
    regret = _checks.floats("theorem5_lower_bound: regret", regret, "finite and >= 0", "give a regret")
    return jnp.maximum(gap * jnp.asarray(horizon, dtype=float) - regret, 0)


def lai_robbins_slope(instance: Instance) -> Float[Array, ""]:
    """``sum over gaps Δ_i > 0 of Δ_i / kl(μ_i, μ*)``, kl between Bernoulli laws: the regret of any consistent policy
    grows at least like this times log T.

    Lai and Robbins (1985). Delays take information away, so that the floor holds with them too. It is one for T to
    infinity: at a given horizon a policy may be below it.

    Raises:
        TypeError: something that is not an instance, or rewards that are not all Bernoulli.
    """
    _check_instance("lai_robbins_slope", instance)
    if not all_of(Bernoulli, instance.reward):
        raise TypeError(f"lai_robbins_slope: rewards must be Bernoulli, got {instance.reward!r}")
    means = instance.means
    best = jnp.broadcast_to(jnp.max(means, axis=-1, keepdims=True), means.shape)
    divergence = rel_entr(means, best) + rel_entr(1 - means, 1 - best)
    worse = instance.gaps > 0
    return jnp.sum(jnp.where(worse, instance.gaps / jnp.where(worse, divergence, 1), 0), axis=-1)


def proposition1_interval(
    pulls: Any, tail_index: Any, c: Any, alpha_min: Any, mean_min: Any, delta: Any, *, printed: bool = False
) -> tuple[Numbers, Numbers]:
    """Lower and upper end, between which ``alpha_hat`` of ``AdaptPatientBandits`` lies:

    ``a - log(8 ((2/c)^(a/alpha_min) + B)) / log n`` and ``a + log(2^(7/2) B / (c mean_min)) / log n``, with
    ``B = sqrt(2 log(2/δ))`` and n the pulls of the most pulled arm.

    Proposition 1: under Assumption 2, for all rounds at once with probability ``1 - 2KT^2 δ``. The statement has lost
    the brackets around the sum, ``log(8 (2/c)^(a/alpha_min) + B)``, which the proof does not give for large B.

    Args:
        pulls: n >= 1; for n = 1 the interval is the whole line.
        tail_index: α, the same for all arms, > 0.
        c, alpha_min, mean_min: constants of Assumption 2, as for ``AdaptPatientBandits``.
        delta: δ, in (0, 1]; the policy's width is that of δ = 1/(KT^3).
        printed: the paper's version.

    Raises:
        ValueError: a number outside its range.
    """
    name = "proposition1_interval"
    a = jnp.minimum(_tail_index(name, tail_index), 0.5)
    log_n = jnp.log(_count(f"{name}: pulls", pulls))
    c, alpha_min, mean_min = _assumption2(name, c, alpha_min, mean_min)
    b = jnp.sqrt(2 * jnp.log(2 / _fraction(f"{name}: delta", delta)))
    spread = jnp.exp(a / alpha_min * jnp.log(2 / c))
    below = 8 * spread + b if printed else 8 * (spread + b)
    return a - jnp.log(below) / log_n, a + jnp.log(2**3.5 * b / (c * mean_min)) / log_n


def _assumption2(name: str, c: Any, alpha_min: Any, mean_min: Any) -> tuple[Numbers, Numbers, Numbers]:
    return (
        _fraction(f"{name}: c", c),
        _checks.floats(f"{name}: alpha_min", alpha_min, "finite and > 0", "give a lower bound on the tail index"),
        _fraction(f"{name}: mean_min", mean_min),
    )


def theorem7_bound(num_arms: Any, horizon: Any, tail_index: Any, c: Any, alpha_min: Any, mean_min: Any) -> Numbers:
    """``8^17 (c mean_min)^-4 (2/c)^(4a/alpha_min) log(2T)^(13/2) T (K/T)^a``: a bound on the expected regret of
    ``AdaptPatientBandits(c, alpha_min, mean_min)`` under Assumption 2.

    Theorem 7 (Theorem 6 with its constant). It is vacuous at any horizon one can run: even for K = 2, c = 1,
    mean_min = 1/2 and α = alpha_min = 1/2 it exceeds T, the regret of playing the worst arm always, below T = 1e64.

    Raises:
        ValueError: a number outside its range.
    """
    name = "theorem7_bound"
    k, t = _count(f"{name}: num_arms", num_arms), _count(f"{name}: horizon", horizon)
    a = jnp.minimum(_tail_index(name, tail_index), 0.5)
    c, alpha_min, mean_min = _assumption2(name, c, alpha_min, mean_min)
    constant = 17 * np.log(8).item() - 4 * jnp.log(c * mean_min) + 4 * a / alpha_min * jnp.log(2 / c)
    return jnp.exp(constant + 6.5 * jnp.log(jnp.log(2 * t)) + jnp.log(t) + a * jnp.log(k / t))


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
    _check_instance("ducb_limits", instance)
    window = _checks.integers("ducb_limits: window", window, 1, NEVER, "give a number of rounds").astype(float)
    if not all_of(DelayLaw, cdf):
        raise TypeError(f"ducb_limits: cdf must be a delay law such as Pareto(0.7), got {cdf!r}")
    return instance.means * instance.delay.cdf(window) / jnp.broadcast_to(cdf.cdf(window), window.shape)[..., None]


def ducb_consistent_window(instance: Instance) -> Int[Array, ""]:
    """The smallest window m >= 2 from which on ``ducb_limits`` put a best arm first; ``NEVER`` if there is none below.

    With a smaller window D-UCB settles on a worse arm, and its regret is linear: for means (0.6, 0.8) and Pareto delays
    of tail index (1, 0.3), as in Figure 5, below m = 92. The belief τ makes no difference. Found by bisection:
    ``P(D_i <= m) / P(D_j <= m)`` is monotone in m for any two tail indexes.

    Raises:
        TypeError: something that is not an instance, or delays that are not all Pareto.
        ValueError: fewer than two arms.
    """
    _check_instance("ducb_consistent_window", instance)
    if not all_of(Pareto, instance.delay):
        raise TypeError(f"ducb_consistent_window: delays must be Pareto, got {instance.delay!r}; compare ducb_limits")
    if instance.num_arms < 2:
        raise ValueError("ducb_consistent_window: instance has one arm; there is nothing to rank, give it two or more")
    return _first_window(instance)


@jax.jit
def _first_window(instance: Instance) -> Int[Array, ""]:
    best = instance.gaps == 0

    def ranks_rightly(window: Int[Array, ""]) -> Array:
        """``μ_b P(D_b <= m) > μ_i P(D_i <= m)``, with differences of small numbers in place of numbers near 1."""
        shortfall = instance.gaps + instance.means * instance.delay.survival(window.astype(float))
        return jnp.min(jnp.where(best, shortfall, jnp.inf)) < jnp.min(jnp.where(best, jnp.inf, shortfall))

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = low + (high - low) // 2
        right = ranks_rightly(middle)
        return jnp.where(right | (low == high), low, middle + 1), jnp.where(right, middle, high)

    ends = jnp.full((), 2, jnp.int32), jnp.full((), NEVER, jnp.int32)
    return jax.lax.fori_loop(0, NEVER.bit_length(), halve, ends)[1]


def assumption1_tail_index(delay: DelayLaw, horizon: int) -> Float[Array, "*K"]:
    """The largest α with ``P(D > m) <= m^-α`` for m = 1..T, arm by arm: Assumption 1 holds up to T for their minimum.

    0 where it holds for no α > 0, as for a constant delay of 3 rounds or more; infinite if D <= 2 always. The
    assumption has no constant before m^-α: a law of light tails and long delays fails it as one of heavy tails does.

    Args:
        delay: a delay law.
        horizon: T, a whole number from 2 to 2^24, not traced.

    Raises:
        TypeError: something that is not a delay law with a known survival function.
        ValueError: a horizon outside its range.
    """
    return _least("assumption1_tail_index", _local_tail_index, delay, jnp.ones(()), first=2, last=horizon)


def assumption2_constant(delay: DelayLaw, tail_index: Any, horizon: int) -> Float[Array, "*K"]:
    """The largest c with ``P(D > m) >= c m^-α`` for m = 1..T, arm by arm.

    Assumption 2 holds up to T with α and the least of them over the arms, if that is > 0 and Assumption 1 holds with
    the same α, which is one for all arms: arms of different tail indexes fail it.

    Args:
        delay: a delay law.
        tail_index: α > 0; the smallest ``assumption1_tail_index`` of an arm is the only choice for T to infinity.
        horizon: T, a whole number from 2 to 2^24, not traced.

    Raises:
        TypeError: something that is not a delay law with a known survival function.
        ValueError: a number outside its range.
    """
    tail_index = _tail_index("assumption2_constant", tail_index)
    return _least("assumption2_constant", _local_constant, delay, tail_index, first=1, last=horizon)


def _local_tail_index(m: Float[Array, ""], survival: Float[Array, "*K"], tail_index: Numbers) -> Float[Array, "*K"]:
    return -safe_log(survival) / jnp.log(m)


def _local_constant(m: Float[Array, ""], survival: Float[Array, "*K"], tail_index: Numbers) -> Float[Array, "*K"]:
    return survival * jnp.exp(tail_index * jnp.log(m))


def _least(
    name: str, of: Callable[..., Array], delay: Any, tail_index: Numbers, *, first: int, last: Any
) -> Float[Array, "*K"]:
    """The minimum of ``of(m, P(D > m), tail_index)`` over m = first..last; -inf if a probability is NaN."""
    mend = "give a law such as Pareto, or Empirical for delays that were measured"
    if not all_of(DelayLaw, delay):
        raise TypeError(f"{name}: delay must be a delay law, whose survival function is known, got {delay!r}; {mend}")
    last = _checks.whole_number(f"{name}: horizon", last, 2, MAX_HORIZON, "give the number of rounds")
    try:
        least = _least_of_blocks(of, delay, tail_index, first=first, last=last)
    except NotImplementedError:
        raise TypeError(f"{name}: the survival function of delay {delay!r} is unknown; {mend}") from None
    if not _checks.is_traced(least) and np.isneginf(np.asarray(least)).any():
        raise ValueError(f"{name}: the survival function of delay {delay!r} is NaN at some m; mend the law")
    return least


@partial(jax.jit, static_argnames=("of", "first", "last"))
def _least_of_blocks(
    of: Callable[..., Array], delay: DelayLaw, tail_index: Numbers, *, first: int, last: int
) -> Float[Array, "*K"]:
    def add(block: Int[Array, ""], least: Float[Array, "*K"]) -> Float[Array, "*K"]:
        ages = jnp.minimum(first + block * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32), last).astype(float)
        survival = jax.vmap(delay.survival)(ages)
        values = jax.vmap(partial(of, tail_index=tail_index))(ages, survival)
        # XLA's minimum may lose a NaN.
        return jnp.minimum(least, jnp.min(jnp.where(jnp.isnan(survival), -jnp.inf, values), axis=0))

    blocks = -(-(last - first + 1) // BLOCK)
    return jax.lax.fori_loop(0, blocks, add, jnp.full(delay.batch_shape, jnp.inf))
