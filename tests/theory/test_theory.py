"""The theorems as functions: against plain NumPy, against exact laws, and against the simulator."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from experiments.paper.lower_bound import twins
from jaxbandit.laws.base import DelayLaw
from jaxbandit.theory.checks import BLOCK
from tests.examples import DELAYS, POLICIES, REWARDS, each, refused

RTOL = 2e-5  # of single precision after a few logarithms and powers
TAIL_INDEXES = (0.1, 0.3, 0.5, 0.8, 2.0)


def pair(means=(0.6, 0.8), tail_indexes=(1.0, 0.3)) -> jb.Instance:
    return jb.Instance(jb.Bernoulli(means), jb.Pareto(tail_indexes))


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_theorem_1(alpha):
    n = np.array([1, 2, 17, 3000, 10**6])
    expected = np.sqrt(2 * np.log(2 / 0.05) / n) + 2 * n ** -min(alpha, 0.5)
    np.testing.assert_allclose(jb.theorem1_width(n, alpha, 0.05), expected, rtol=RTOL)
    assert jb.theorem1_width(0, alpha, 0.05) == np.inf


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_the_bias_is_within_the_last_term_of_theorem_1(alpha):
    """Pulls in the last n rounds before round t, the worst case, and any other: mean 1, Pareto delays."""
    rng = np.random.default_rng(0)
    survival = lambda age: age ** -float(alpha)  # noqa: E731
    for n in (1, 2, 5, 40, 1000):
        last = survival(np.arange(1, n + 1)).mean()
        scattered = survival(rng.choice(np.arange(1, 5000), n, replace=False)).mean()
        bias_term = float(jb.theorem1_width(n, alpha, 1.0)) - math.sqrt(2 * math.log(2) / n)
        assert scattered <= last <= bias_term * (1 + 1e-5)


def theorem2(gaps, alpha, horizon, factor):
    exponent = max((1 - alpha) / alpha, 1)
    terms = [max(64 * math.log(2 * horizon) / g, factor * (8 / g) ** exponent) for g in gaps if g > 0]
    return sum(terms) + 2 * len(gaps)


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_theorem_2_as_printed_and_corrected(alpha):
    instance = jb.Instance(jb.Bernoulli([0.2, 0.9, 0.5, 0.9]), jb.Pareto(alpha))
    gaps = [0.7, 0.0, 0.4, 0.0]
    np.testing.assert_allclose(jb.theorem2_bound(instance, alpha, 3000), theorem2(gaps, alpha, 3000, 8), rtol=1e-4)
    printed = jb.theorem2_bound(instance, alpha, 3000, printed=True)
    np.testing.assert_allclose(printed, theorem2(gaps, alpha, 3000, 1), rtol=1e-4)


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_the_correction_of_theorem_2_follows_from_equation_13(alpha):
    """``Δ (max(16 log(2KT^3)/Δ^2, (8/Δ)^max(1/α, 2), 1) + 1)`` a gap is within the corrected bound, and for α < 1/2 and
    small gaps not within the printed one."""
    for gap, horizon in itertools.product((0.01, 0.1, 0.5, 1.0), (10, 3000, 10**6)):
        instance = pair(means=(0.0, gap), tail_indexes=(alpha, alpha))
        pulls = max(16 * math.log(2 * 2 * horizon**3) / gap**2, (8 / gap) ** max(1 / alpha, 2), 1)
        proved = gap * (pulls + 1)
        assert proved <= float(jb.theorem2_bound(instance, alpha, horizon)) * (1 + 1e-4)
        if alpha < 0.5 and gap == 0.01:
            assert proved > 1.5 * float(jb.theorem2_bound(instance, alpha, horizon, printed=True))


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_theorem_3_and_that_it_follows_from_the_corrected_theorem_2(alpha):
    """For every gap: its term of Theorem 2, or the gap times T, is within Theorem 3."""
    for num_arms, horizon in ((2, 10), (2, 10**6), (10, 3000)):
        a = min(alpha, 0.5)
        expected = 2 * 64 ** max(1 - alpha, 0.5) * horizon ** (1 - a)
        expected = expected * (num_arms * math.log(2 * horizon)) ** a + 2 * num_arms
        bound = float(jb.theorem3_bound(num_arms, horizon, alpha))
        np.testing.assert_allclose(bound, expected, rtol=1e-4)
        for gap in np.geomspace(1e-4, 1, 30):
            assert min(theorem2([0] + [gap] * (num_arms - 1), alpha, horizon, 8), gap * horizon) <= expected


def test_theorem_3_says_something_from_the_horizons_in_its_docstring_on():
    for alpha, horizon in ((0.5, 4700), (0.2, 2.7e10)):
        bounds = np.asarray(jb.theorem3_bound(2, jnp.array([0.9 * horizon, 1.1 * horizon]), alpha))
        assert bounds[0] > 0.9 * horizon
        assert bounds[1] < 1.1 * horizon


def test_theorem_7_is_what_it_says_and_says_nothing():
    with jax.enable_x64(True):
        value = float(jb.theorem7_bound(3, 10**6, 0.3, 0.8, 0.2, 0.4))
        expected = 8**17 * (0.8 * 0.4) ** -4 * (2 / 0.8) ** (4 * 0.3 / 0.2) * math.log(2e6) ** 6.5 * 1e6 * 3e-6**0.3
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        for horizon, vacuous in ((1e63, True), (2e64, False)):
            assert (float(jb.theorem7_bound(2, horizon, 0.5, 1.0, 0.5, 0.5)) > horizon) is vacuous


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("horizon", [1, 2, 100, 10**5])
def test_theorem_4_s_problems_look_alike_and_satisfy_assumption_1(horizon, alpha):
    a, b = jb.theorem4_pair(horizon, alpha)
    p = horizon**-alpha
    q = p / (4 - 2 * p)
    np.testing.assert_allclose(jb.theorem4_gap(horizon, alpha), q, rtol=RTOL)
    np.testing.assert_allclose(a.means, [0.5, 0.5 - q], atol=1e-7)
    np.testing.assert_allclose(b.means, [0.5, 0.5 + q], atol=1e-7)
    seen = b.means * b.delay.cdf(horizon - 1)
    np.testing.assert_allclose(seen, a.means, atol=2e-7)
    np.testing.assert_array_equal(a.delay.survival(0), [0, 0])
    np.testing.assert_array_equal(b.delay.survival(horizon), [0, 0])
    if horizon > 2:
        assert (np.asarray(jb.assumption1_tail_index(b.delay, 2 * horizon)) >= alpha * (1 - 1e-5)).all()
    lower = float(jb.theorem4_lower_bound(horizon, alpha))
    np.testing.assert_allclose(lower, horizon ** (1 - alpha) / 8, rtol=RTOL)
    assert lower <= q * horizon / 2


@each({name: policy for name, policy in POLICIES.items() if policy.observes is not jb.Feedback}, "policy")
def test_no_policy_tells_theorem_4_s_problems_apart(policy):
    """Regret in A plus regret in B is q T: with the same luck the same arms are pulled."""
    horizon = 400
    for seed, alpha in enumerate((0.05, 0.1, 0.3)):
        q = float(jb.theorem4_gap(horizon, alpha))
        problems = twins(horizon, alpha, seed)
        pulls = [np.bincount(jb.replay(*tables, policy).arms, minlength=2) for tables in problems]
        regret_a, regret_b = q * pulls[0][1], q * pulls[1][0]
        assert regret_a + regret_b == pytest.approx(q * horizon, rel=1e-12)
        assert max(regret_a, regret_b) >= float(jb.theorem4_lower_bound(horizon, alpha))


def test_feedback_tells_theorem_4_s_problems_apart():
    """The identity is about conversions: who is told what has settled learns which problem it is."""
    horizon, alpha = 2000, 0.05
    pulls = [np.bincount(jb.replay(*t, jb.DelayedUCB1()).arms, minlength=2) for t in twins(horizon, alpha, 0)]
    assert pulls[0][1] + pulls[1][0] < 0.5 * horizon


@pytest.mark.parametrize("policy", [jb.UCB1(), jb.PatientBandits(0.1, bonus_scale=0.3)], ids=["UCB1", "PatientBandits"])
def test_the_laws_of_theorem_4_s_problems_are_those_of_the_twins(policy):
    """On the random tape the two problems have different luck: the identity holds within 5 standard errors."""
    horizon, alpha, seeds = 1000, 0.1, 200
    problems = jb.theorem4_pair(horizon, alpha)
    runs = [
        jb.simulate_batch(seed, problem, policy, horizon=horizon, seeds=seeds, checkpoints=[horizon])
        for seed, problem in enumerate(problems)
    ]
    regret = [np.asarray(run.regret[:, -1], float) for run in runs]
    error = np.hypot(*(r.std(ddof=1) for r in regret)) / np.sqrt(seeds)
    total = float(jb.theorem4_gap(horizon, alpha)) * horizon
    assert error < 0.05 * total
    assert abs(regret[0].mean() + regret[1].mean() - total) < 5 * error


def test_theorem_5_is_what_the_identity_leaves():
    horizon, alpha = 10**4, 0.3
    total = float(jb.theorem4_gap(horizon, alpha)) * horizon
    printed = float(jb.theorem4_lower_bound(horizon, alpha))
    assert float(jb.theorem5_lower_bound(horizon, alpha, printed)) > printed
    np.testing.assert_allclose(jb.theorem5_lower_bound(horizon, alpha, 0.25 * total), 0.75 * total, rtol=1e-4)
    assert float(jb.theorem5_lower_bound(horizon, alpha, 2 * total)) == 0


def test_the_slope_of_lai_and_robbins():
    means = np.array([0.0, 0.3, 0.8, 0.8])
    kl = [math.log(1 / 0.2), 0.3 * math.log(0.3 / 0.8) + 0.7 * math.log(0.7 / 0.2)]
    slope = jb.lai_robbins_slope(jb.Instance(jb.Bernoulli(means), jb.NoDelay()))
    np.testing.assert_allclose(slope, 0.8 / kl[0] + 0.5 / kl[1], rtol=1e-4)
    assert jb.lai_robbins_slope(jb.Instance(jb.Bernoulli([0.3, 1.0]), jb.NoDelay())) == 0
    assert jb.lai_robbins_slope(jb.Instance(jb.Bernoulli([0.3, 0.3]), jb.NoDelay())) == 0
    per_arm = jb.Instance(jb.PerArm([jb.Bernoulli(0.6), jb.Bernoulli(0.8)]), jb.NoDelay())
    np.testing.assert_allclose(jb.lai_robbins_slope(per_arm), jb.lai_robbins_slope(pair()), rtol=1e-5)


@pytest.mark.parametrize("alpha", TAIL_INDEXES)
def test_proposition_1(alpha):
    n, c, alpha_min, mean_min, delta = np.array([2, 50, 10**6]), 0.7, 0.25, 0.4, 1e-9
    a, b = min(alpha, 0.5), math.sqrt(2 * math.log(2 / delta))
    spread = (2 / c) ** (a / alpha_min)
    high = a + np.log(2**3.5 * b / (c * mean_min)) / np.log(n)
    for printed, below in ((False, 8 * (spread + b)), (True, 8 * spread + b)):
        low_end, high_end = jb.proposition1_interval(n, alpha, c, alpha_min, mean_min, delta, printed=printed)
        np.testing.assert_allclose(low_end, a - np.log(below) / np.log(n), rtol=1e-4)
        np.testing.assert_allclose(high_end, high, rtol=1e-4)
    assert jb.proposition1_interval(1, alpha, c, alpha_min, mean_min, delta) == (-np.inf, np.inf)


def test_the_width_of_adapt_patient_bandits_is_proposition_1_s():
    """``alpha_bar`` at lcb_scale = 1 is alpha_hat less the upper half-width at δ = 1/(KT^3)."""
    horizon, alpha = 3000, 0.5
    rewards = np.random.default_rng(0).integers(0, 2, (horizon, 1)).astype(float)
    delays = np.ceil(np.random.default_rng(1).uniform(size=(horizon, 1)) ** -2)
    trace = jb.replay(rewards, delays, jb.AdaptPatientBandits(1.0, 0.5, 1.0))
    width = jb.proposition1_interval(horizon - 1, alpha, 1.0, 0.5, 1.0, 1 / horizon**3)[1] - alpha
    gap = trace.diagnostics["alpha_hat"][-1] - trace.diagnostics["alpha_bar"][-1]
    assert trace.diagnostics["alpha_bar"][-1] == 0 or gap == pytest.approx(float(width), rel=1e-4)
    assert float(width) == pytest.approx(math.log(16 * math.sqrt(math.log(2 * horizon**3))) / math.log(2999), rel=1e-4)


def test_the_limits_of_ducb_and_where_they_rank_figure_5_rightly():
    instance, believed = pair(), jb.Pareto(0.7)
    for m in (10, 91, 92, 200):
        expected = np.array([0.6, 0.8]) * (1 - m ** -np.array([1.0, 0.3])) / (1 - m**-0.7)
        limits = np.asarray(jb.ducb_limits(instance, m, believed))
        np.testing.assert_allclose(limits, expected, rtol=RTOL)
        assert (limits.argmax() == 1) == (m >= 92)
    assert int(jb.ducb_consistent_window(instance)) == 92


@pytest.mark.parametrize("means", [(0.61, 0.8), (0.8, 0.62), (0.5, 0.55), (0.1, 0.9), (0.7, 0.7)])
def test_the_consistent_window_of_any_pair_of_tail_indexes(means):
    """Against a search through all windows up to 20 000."""
    m = np.arange(2, 20_001, dtype=float)
    for tail_indexes in itertools.product((0.2, 0.5, 1.0, 3.0), repeat=2):
        seen = np.array(means) * (1 - m[:, None] ** -np.array(tail_indexes))
        best = np.array(means) == max(means)
        right = best.all() | (np.where(best, seen, -1).max(axis=1) > np.where(best, -1, seen).max(axis=1))
        expected = m[right.argmax()] if right.any() else np.inf
        found = int(jb.ducb_consistent_window(pair(means, tail_indexes)))
        assert found == expected or (found > 20_000 and not right.any()), (tail_indexes, found, expected)
        assert right[right.argmax() :].all() or not right.any()


def test_the_consistent_window_of_three_arms_and_of_none():
    three = jb.Instance(jb.Bernoulli([0.6, 0.8, 0.75]), jb.Pareto([1.0, 0.3, 1.0]))
    pairs = [pair((low, 0.8)) for low in (0.6, 0.75)]
    assert int(jb.ducb_consistent_window(three)) == max(int(jb.ducb_consistent_window(p)) for p in pairs)
    assert int(jb.ducb_consistent_window(pair((0.5, 0.500001), (1.0, 0.05)))) == jb.NEVER


def last_windows(instance: jb.Instance, windows: np.ndarray) -> np.ndarray:
    """Whether each ranks rightly, one by one."""
    survival = np.asarray(jax.vmap(instance.delay.survival)(jnp.asarray(windows, float)))
    shortfall = np.asarray(instance.gaps) + np.asarray(instance.means) * (
        survival if survival.ndim == 2 else survival[:, None]
    )
    best = np.asarray(instance.gaps == 0)
    return np.where(best, shortfall, np.inf).min(axis=1) < np.where(best, np.inf, shortfall).min(axis=1)


@each(DELAYS, "delay")
@pytest.mark.parametrize("means", [(0.3, 0.5, 0.6), (0.6, 0.5, 0.3), (0.55, 0.6, 0.59)])
def test_the_consistent_window_of_any_law(means, delay):
    """The window before it ranks wrongly, and it and all later ones rightly: 20 000 at once, then in steps of 0.1 %."""
    instance = jb.Instance(jb.Bernoulli(means), delay)
    found = int(jb.ducb_consistent_window(instance))
    further = np.unique(np.geomspace(found, jb.NEVER, 8000).astype(int))
    later = np.concatenate([np.arange(found, min(found + 20_000, jb.NEVER)), further])
    assert last_windows(instance, later[(found <= later) & (later < jb.NEVER)]).all()
    assert found == 2 or not last_windows(instance, np.array([found - 1])).any()


def test_a_law_that_comes_to_rank_the_arms_wrongly_again():
    """The worse arm's rewards come at once; a third of the better one's come by 3, more at 10 000, all at 40 000, and
    those of a third arm at 20 000: rightly ranked are 10 000 to 19 999, and from 40 000 on."""
    waits = [1, 10_000, 20_000, 40_000]
    chances = [[1, 0, 0, 0], [0.3, 0.4, 0, 0.3], [0, 0, 1, 0]]
    instance = jb.Instance(jb.Bernoulli([0.4, 0.8, 0.7]), jb.Empirical(waits, chances))
    right = last_windows(instance, np.array([2, 9_999, 10_000, 19_999, 20_000, 39_999, 40_000, 10**6]))
    np.testing.assert_array_equal(right, [False, False, True, True, False, False, True, True])
    assert int(jb.ducb_consistent_window(instance)) == 40_000


@each(DELAYS, "delay")
def test_the_assumptions_against_a_look_at_every_age(delay):
    horizon = BLOCK + 3
    ages = np.arange(1, horizon + 1)
    survival = np.asarray(jax.vmap(delay.survival)(jnp.asarray(ages, float)), float)
    with np.errstate(divide="ignore"):
        exponents = -np.log(survival[1:]) / np.log(ages[1:, None])
    np.testing.assert_allclose(jb.assumption1_tail_index(delay, horizon), exponents.min(axis=0), rtol=1e-4, atol=1e-6)
    constants = (survival * ages[:, None] ** 0.4).min(axis=0)
    np.testing.assert_allclose(jb.assumption2_constant(delay, 0.4, horizon), constants, rtol=1e-4, atol=1e-6)


def test_the_assumptions_of_laws_that_are_known():
    np.testing.assert_allclose(jb.assumption1_tail_index(jb.Pareto([0.3, 2.0]), 1000), [0.3, 2.0], rtol=RTOL)
    np.testing.assert_allclose(jb.assumption2_constant(jb.Pareto([0.3, 0.3]), 0.3, 1000), [1, 1], rtol=RTOL)
    assert jb.assumption1_tail_index(jb.Pareto(0.3), 2).shape == ()
    np.testing.assert_allclose(jb.assumption1_tail_index(jb.Pareto(0.3), 2), 0.3, rtol=RTOL)
    np.testing.assert_array_equal(jb.assumption1_tail_index(jb.NoDelay(2), 100), [np.inf, np.inf])
    np.testing.assert_array_equal(jb.assumption1_tail_index(jb.Constant([2, 3]), 100), [np.inf, 0])
    np.testing.assert_array_equal(jb.assumption2_constant(jb.NoDelay(2), 0.5, 100), [0, 0])
    lost = 0.05  # a share that never comes: the exponent up to T is log(1/loss) / log T, and 0 in the end
    np.testing.assert_allclose(
        jb.assumption1_tail_index(jb.Lossy(jb.NoDelay(), lost), 10**5), math.log(1 / lost) / math.log(1e5), rtol=RTOL
    )


def test_everything_works_under_jit_and_vmap():
    alphas = jnp.array([0.2, 0.5, 0.9])

    def everything(alpha):
        instance = jb.Instance(jb.Bernoulli(jnp.stack([alpha / 2, alpha])), jb.Pareto(jnp.stack([alpha, alpha / 2])))
        a, b = jb.theorem4_pair(100, alpha)
        return [
            jb.theorem1_width(10, alpha, 0.1),
            jb.theorem2_bound(instance, alpha, 1000),
            jb.theorem3_bound(2, 1000, alpha),
            jb.theorem4_gap(100, alpha),
            a.means + b.means,
            b.delay.survival(50.0),
            jb.theorem4_lower_bound(100, alpha),
            jb.theorem5_lower_bound(100, alpha, 1.0),
            jb.theorem7_bound(2, 1000, alpha, 1.0, 0.2, 0.5),
            *jb.proposition1_interval(50, alpha, 1.0, 0.2, 0.5, 0.01),
            jb.lai_robbins_slope(instance),
            jb.ducb_limits(instance, 20, jb.Pareto(0.7)),
            jb.ducb_consistent_window(instance),
            jb.assumption1_tail_index(instance.delay, 100),
            jb.assumption2_constant(instance.delay, alpha, 100),
        ]

    together = jax.jit(jax.vmap(everything))(alphas)
    for i, alpha in enumerate(alphas):
        for many, one in zip(together, everything(alpha), strict=True):
            np.testing.assert_allclose(many[i], one, rtol=RTOL)
    slope = jax.grad(lambda law: jb.assumption1_tail_index(law, 50).sum())(jb.Pareto(alphas)).tail_index
    np.testing.assert_allclose(slope, 1, rtol=RTOL)


class Unknown(DelayLaw):
    """A law of which only draws are known."""

    mean = jnp.ones(())

    def survival(self, x):
        raise NotImplementedError

    def isf(self, u):
        return jnp.ones_like(u, jnp.int32)

    def log_prob(self, x):
        raise NotImplementedError


class Broken(Unknown):
    def survival(self, x):
        return jnp.where(x > 9, jnp.nan, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jb.theorem1_width(10, 0.0, 0.1), ValueError, "theorem1_width: tail_index must be finite and > 0"),
        (lambda: jb.theorem1_width(10, 0.5, 0.0), ValueError, r"theorem1_width: delta must be in \(0, 1\], got 0.0"),
        (lambda: jb.theorem1_width([3, -1], 0.5, 0.1), ValueError, r"theorem1_width: pulls .* got -1.0 at index \[1\]"),
        (lambda: jb.theorem2_bound(pair(), -0.3, 100), ValueError, "theorem2_bound: tail_index must be .*, got -0.3"),
        (
            lambda: jb.theorem2_bound([0.5], 0.3, 100),
            TypeError,
            "theorem2_bound: instance must be a jaxbandit.Instance",
        ),
        (lambda: jb.theorem3_bound(2, 0, 0.3), ValueError, "theorem3_bound: horizon must be finite and >= 1"),
        (lambda: jb.theorem3_bound(2, 100, 0), ValueError, "theorem3_bound: tail_index"),
        (lambda: jb.theorem4_pair(100, 0.0), ValueError, "theorem4_pair: tail_index must be finite and > 0, got 0.0"),
        (lambda: jb.theorem4_pair(0, 0.5), ValueError, "theorem4_pair: horizon must be an integer from 1"),
        (lambda: jb.theorem4_pair(10.5, 0.5), TypeError, "theorem4_pair: horizon must be an integer"),
        (lambda: jb.theorem4_gap(100, np.nan), ValueError, "theorem4_gap: tail_index"),
        (lambda: jb.theorem4_lower_bound(100, -1), ValueError, "theorem4_lower_bound: tail_index"),
        (lambda: jb.theorem5_lower_bound(100, 0.3, -1), ValueError, "theorem5_lower_bound: regret"),
        (lambda: jb.theorem7_bound(2, 100, 0.3, 2.0, 0.2, 0.5), ValueError, "theorem7_bound: c must be in"),
        (lambda: jb.proposition1_interval(0, 0.3, 1, 0.2, 0.5, 0.1), ValueError, "proposition1_interval: pulls"),
        (lambda: jb.proposition1_interval(5, 0.3, 1, 0, 0.5, 0.1), ValueError, "proposition1_interval: alpha_min"),
        (lambda: jb.lai_robbins_slope(jb.Bernoulli([0.5])), TypeError, "lai_robbins_slope: instance"),
        (
            lambda: jb.lai_robbins_slope(jb.Instance(REWARDS["TruncatedNormal"], DELAYS["Pareto"])),
            TypeError,
            "lai_robbins_slope: rewards must be Bernoulli",
        ),
        (
            lambda: jb.ducb_consistent_window(pair((0.5,), (0.3,))),
            ValueError,
            "ducb_consistent_window: instance has one arm",
        ),
        (
            lambda: jb.ducb_consistent_window(jb.Instance(jb.Bernoulli([0.1, 0.2]), Unknown())),
            TypeError,
            "ducb_consistent_window: the survival function of delay .* is unknown",
        ),
        (
            lambda: jb.ducb_limits(pair(), 0, jb.Pareto(0.7)),
            ValueError,
            "ducb_limits: window must be an integer from 1",
        ),
        (lambda: jb.ducb_limits(pair(), 10, 0.7), TypeError, "ducb_limits: cdf must be a delay law"),
        (
            lambda: jb.assumption1_tail_index([3, 5, 2], 100),
            TypeError,
            r"assumption1_tail_index: delay must be a delay law, whose survival function is known, got \[3, 5, 2\]",
        ),
        (lambda: jb.assumption1_tail_index(jb.Bernoulli(0.5), 100), TypeError, "delay must be a delay law"),
        (lambda: jb.assumption1_tail_index(Unknown(), 100), TypeError, "survival function of delay .* is unknown"),
        (lambda: jb.assumption2_constant(Unknown(), 0.3, 100), TypeError, "survival function of delay .* is unknown"),
        (lambda: jb.assumption1_tail_index(Broken(), 100), ValueError, "survival function .* is NaN"),
        (lambda: jb.assumption2_constant(jb.Pareto(0.3), 0, 100), ValueError, "assumption2_constant: tail_index"),
        (lambda: jb.assumption1_tail_index(jb.Pareto(0.3), 1), ValueError, "horizon must be an integer from 2"),
    ],
)
def test_what_makes_no_sense_is_refused(call, error, message):
    with refused(error, message):
        call()
