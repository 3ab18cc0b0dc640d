"""The theorems, arm by arm and instance by instance. Numbers may be arrays of one shape."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import rel_entr
from jaxtyping import Array, Float

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.instance import Instance
from jaxbandit.laws.combined import all_of
from jaxbandit.laws.discrete_delays import Empirical
from jaxbandit.laws.rewards import Bernoulli
from jaxbandit.theory import checks
from jaxbandit.theory.checks import Numbers


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
    a = jnp.minimum(checks.tail_index("theorem1_width", tail_index), 0.5)
    delta = checks.fraction("theorem1_width: delta", delta)
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
    checks.check_instance("theorem2_bound", instance)
    tail_index = checks.tail_index("theorem2_bound", tail_index)
    horizon = checks.count("theorem2_bound: horizon", horizon)
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
    k, t = checks.count("theorem3_bound: num_arms", num_arms), checks.count("theorem3_bound: horizon", horizon)
    tail_index = checks.tail_index("theorem3_bound", tail_index)
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
    return jnp.exp(-checks.tail_index(name, tail_index) * jnp.log(checks.count(f"{name}: horizon", horizon)))


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
    checks.check_instance("lai_robbins_slope", instance)
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
    a = jnp.minimum(checks.tail_index(name, tail_index), 0.5)
    log_n = jnp.log(checks.count(f"{name}: pulls", pulls))
    c, alpha_min, mean_min = _assumption2(name, c, alpha_min, mean_min)
    b = jnp.sqrt(2 * jnp.log(2 / checks.fraction(f"{name}: delta", delta)))
    spread = jnp.exp(a / alpha_min * jnp.log(2 / c))
    below = 8 * spread + b if printed else 8 * (spread + b)
    return a - jnp.log(below) / log_n, a + jnp.log(2**3.5 * b / (c * mean_min)) / log_n


def _assumption2(name: str, c: Any, alpha_min: Any, mean_min: Any) -> tuple[Numbers, Numbers, Numbers]:
    return (
        checks.fraction(f"{name}: c", c),
        _checks.floats(f"{name}: alpha_min", alpha_min, "finite and > 0", "give a lower bound on the tail index"),
        checks.fraction(f"{name}: mean_min", mean_min),
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
    k, t = checks.count(f"{name}: num_arms", num_arms), checks.count(f"{name}: horizon", horizon)
    a = jnp.minimum(checks.tail_index(name, tail_index), 0.5)
    c, alpha_min, mean_min = _assumption2(name, c, alpha_min, mean_min)
    constant = 17 * np.log(8).item() - 4 * jnp.log(c * mean_min) + 4 * a / alpha_min * jnp.log(2 / c)
    return jnp.exp(constant + 6.5 * jnp.log(jnp.log(2 * t)) + jnp.log(t) + a * jnp.log(k / t))
