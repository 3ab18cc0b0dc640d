"""The policies of the field: what each must do where the answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.policies.klucb import bernoulli_upper
from tests import reference
from tests.examples import AT_RANDOM, OF_EACH_KIND, POLICIES, each, instance, refused


def tables(seed: int = 0, horizon: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rewards = (rng.uniform(size=(horizon, 3)) < [0.2, 0.5, 0.7]).astype(float)
    return rewards, np.floor(rng.uniform(size=rewards.shape) ** -1.5) - 1


def assert_same(rewards, delays, one: jb.Policy, other: jb.Policy) -> None:
    np.testing.assert_array_equal(jb.replay(rewards, delays, one).arms, jb.replay(rewards, delays, other).arms)


@pytest.mark.parametrize("x64", [True, False])
def test_the_bound_of_kl_ucb_is_that_of_a_bisection(x64):
    means = [0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1 - 1e-6, 1]
    budgets = [1e-6, 1e-4, 1e-2, 0.1, 1, 3, 15]
    with jax.enable_x64(x64):
        dtype = np.float64 if x64 else np.float32
        mean, budget = (x.astype(dtype) for x in np.meshgrid(means, budgets))
        found = np.asarray(jax.jit(bernoulli_upper)(jnp.asarray(mean), jnp.asarray(budget)))
    assert found.dtype == dtype
    exact = np.vectorize(reference.bernoulli_upper)(mean.astype(float), budget.astype(float))
    np.testing.assert_allclose(found, exact, rtol=1e-12 if x64 else 8 * np.finfo(dtype).eps, atol=1e-14)


def test_kl_ucb_is_exact_at_means_of_0_and_1():
    budget = jnp.array([0.01, 0.5, 5.0])
    np.testing.assert_array_equal(bernoulli_upper(jnp.zeros(3), budget), -jnp.expm1(-budget))
    np.testing.assert_array_equal(bernoulli_upper(jnp.array([0.0, 0.3, 1.0]), jnp.zeros(3)), jnp.array([0.0, 0.3, 1.0]))
    np.testing.assert_array_equal(bernoulli_upper(jnp.ones(3), budget), jnp.ones(3))


def test_the_blocks_of_odaaf_have_the_lengths_of_the_formula():
    """n_1..n_4 at T = 100 000, worked out by hand for E = 0 and E = 50."""
    log_horizon = jnp.asarray(np.log(1e5), float)
    for expected, lengths in ((0, (426, 1299, 4073, 12727)), (50, (1305, 4814, 14830, 42153))):
        for j, length in enumerate(lengths, start=1):
            found = jb.ODAAF(expected).rounds(jnp.asarray(j, float), jnp.asarray(0.5**j, float), log_horizon)
            assert abs(int(found) - length) <= 1


def test_elimination_needs_so_many_pulls_that_a_short_run_is_uniform():
    problem = jb.Instance(jb.Bernoulli([0.5, 0.55]), jb.NoDelay())
    run = jb.simulate(0, problem, jb.SuccessiveElimination(), horizon=3000)
    assert float(run.regret[-1]) == pytest.approx(75, rel=1e-6)


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_a_batch_of_one_round_is_the_policy_itself(policy):
    keys = jax.random.key(4)
    run, batched = (jb.simulate(keys, instance(), p, horizon=150) for p in (policy, jb.Batched(policy, 1)))
    jax.tree.map(np.testing.assert_array_equal, run, batched)


def test_a_window_with_a_warm_up_is_discarding():
    class WarmedUp(jb.Windowed):
        def scores(self, state, t, key):
            return jnp.where(t <= self.window + 3, jnp.inf, super().scores(state, t, key))

    for seed in range(5):
        assert_same(*tables(seed), WarmedUp(jb.DelayedUCB1(), 20), jb.Discarding(20))


def test_a_window_shows_conversions_to_who_needs_no_more():
    rewards, delays = tables()
    assert_same(rewards, np.zeros_like(delays), jb.Windowed(jb.UCB1(), 1), jb.UCB1())


def test_without_delays_thompson_sampling_draws_the_same_with_and_without_feedback():
    problem = jb.Instance(jb.Bernoulli([0.2, 0.5, 0.7]), jb.NoDelay())
    blind, told = (jb.simulate(3, problem, policy, horizon=300) for policy in (jb.Thompson(), jb.DelayedThompson()))
    jax.tree.map(np.testing.assert_array_equal, blind, told)


def test_a_period_can_be_vmapped():
    periods = jnp.array([1, 4, 50], jnp.int32)

    def run(period):
        return jb.simulate(0, instance(), jb.Batched(jb.UCB1(), period), horizon=60).pulls

    together = jax.vmap(run)(periods)
    for period, pulls in zip(periods, together, strict=True):
        np.testing.assert_array_equal(run(int(period)), pulls)


SLOW_BY_THEORY = {
    "Uniform": "learns nothing",
    "PatientBandits": "its bonus leaves room for delays there are not",
    "PatientBandits schedule": "the same",
    "AdaptPatientBandits": "the same",
    "OTFLinUCB": "its bound, 2 f / sqrt(N) with f above 5, is wider than the gap up to N = 1400",
    "ODAAF": "needs some 330 and then 950 rounds an arm, and throws away others between",
    "Softmax": "of PatientBandits",
}
"""Policies that lose a fifth of uniform play or more, and why."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in POLICIES if name not in SLOW_BY_THEORY])
def test_regret_without_delays_is_below_a_fifth_of_uniform_play(name):
    problem = jb.Instance(jb.Bernoulli([0.3, 0.6]), jb.NoDelay())
    runs = jb.simulate_batch(0, problem, POLICIES[name], horizon=10_000, seeds=16, checkpoints=[10_000])
    assert runs.regret.mean() < 0.2 * 0.15 * 10_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.Thompson(0.0), "Thompson: successes must be finite and > 0, got 0.0"),
        (lambda: jb.Thompson(1.0, -1.0), "Thompson: failures must be finite and > 0"),
        (lambda: jb.DelayedThompson(float("nan")), "DelayedThompson: successes"),
        (lambda: jb.CorrectedThompson(jb.Pareto(0.7), 5, failures=0), "CorrectedThompson: failures"),
        (lambda: jb.CorrectedThompson(jb.Pareto(0.7), 0), "CorrectedThompson: window must be an integer from 1"),
        (lambda: jb.KLUCB(-1), "KLUCB: c must be finite and >= 0"),
        (lambda: jb.DelayedKLUCB(float("inf")), "DelayedKLUCB: c"),
        (lambda: jb.OTFLinUCB(0), "OTFLinUCB: window"),
        (lambda: jb.OTFLinUCB(5, ridge=0), "OTFLinUCB: ridge"),
        (lambda: jb.OTFLinUCB(5, delta=0), "OTFLinUCB: delta"),
        (lambda: jb.ODAAF(float("inf")), "ODAAF: expected_delay must be finite and >= 0, got inf.*no end"),
        (lambda: jb.ODAAF(-1), "ODAAF: expected_delay"),
        (lambda: jb.Batched(jb.UCB1(), 0), "Batched: period must be an integer from 1"),
        (lambda: jb.Windowed(jb.UCB1(), 0), "Windowed: window must be an integer from 1"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with refused(ValueError, message):
        make()


def test_what_is_not_a_law_or_a_policy_is_refused():
    by_pull = jb.AdaptPatientBandits(1.0, 0.2, 0.5)
    for make, message in (
        (lambda: jb.CorrectedThompson(0.7, 5), "CorrectedThompson: cdf must be a delay law"),
        (lambda: jb.Batched(3, 5), "Batched: policy must be a jaxbandit.Policy"),
        (lambda: jb.Windowed(None, 5), "Windowed: policy must be a jaxbandit.Policy"),
        (lambda: jb.Windowed(by_pull, 5), "Windowed: policy AdaptPatientBandits needs to know which pull"),
    ):
        with refused(TypeError, message):
            make()


def test_draws_of_thompson_sampling_differ_from_run_to_run():
    runs = jb.simulate_batch(0, instance(), jb.Thompson(), horizon=100, seeds=20)
    assert len(np.unique(runs.pulls[:, -1, 1])) > 5
    assert {"Thompson", "DelayedThompson", "CorrectedThompson"} <= AT_RANDOM


@pytest.mark.parametrize("policy", [jb.UCB1(), jb.KLUCB(), jb.DelayedUCB1(), jb.PatientBandits(0.3)])
def test_queued_is_the_policy_itself_without_delays(policy):
    problem = jb.Instance(jb.Bernoulli([0.2, 0.5, 0.6]), jb.NoDelay())
    run, inside = (jb.simulate(3, problem, p, horizon=200) for p in (jb.Queued(policy), policy))
    jax.tree.map(np.testing.assert_array_equal, run, inside)


def test_queued_refuses_what_cannot_be_fed_at_once():
    with refused(TypeError, "needs feedback by pull"):
        jb.Queued(jb.AdaptPatientBandits(1.0, 0.3, 0.3))
    with refused(ValueError, "Discarding waits"):
        jb.Queued(jb.Discarding(10))
    for policy in (jb.Thompson(), jb.Softmax(jb.UCB1(), 0.1)):
        with refused(ValueError, "draws"):
            jb.simulate(0, instance(), jb.Queued(policy), horizon=5)
