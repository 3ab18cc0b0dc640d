"""Runs that start from a past."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import jaxbandit as jb
from jaxbandit._arms import pick
from jaxbandit.engine import history as module
from jaxbandit.engine import tape
from jaxbandit.engine.protocol import plan
from jaxbandit.engine.run import draw_from_tape, rollout, start
from jaxbandit.engine.step import scan
from jaxbandit.engine.traces import Pulled, drawn
from jaxbandit.policies.observations import Feedback
from tests.examples import BY_ARM, DELAYS, NUM_ARMS, OF_EACH_KIND, POLICIES, REWARDS, each, instance, refused

HORIZON, PAST = 90, 57
FIXED = jb.Instance(REWARDS["Bernoulli"], jb.Constant([0, 7, 12]))
"""Fixed delays: what is to come of a past is no matter of chance."""


def assert_equal(first, second) -> None:
    jax.tree.map(np.testing.assert_array_equal, first, second)


def past_of(trace: jb.Trace, policy: jb.Policy, rounds: int = PAST) -> jb.History:
    """What the policy could see: zeros only if it observes them."""
    return jb.History.from_trace(trace, rounds, settled=policy.observes is Feedback, num_arms=NUM_ARMS)


@each(POLICIES | BY_ARM, "policy", quick=OF_EACH_KIND)
def test_the_state_is_that_of_the_run_that_the_history_is_of(policy):
    """Bit for bit, with delays that are beyond the cut, or never pass."""
    key, every = tape.words(0), jnp.arange(1, HORIZON + 1, dtype=jnp.int32)

    @jax.jit
    def whole(problem):
        carry = start(problem, policy, horizon=HORIZON)
        report = lambda c: (c.state, c.pulls, c.arm, pick(c.pulls, c.arm) - 1)  # noqa: E731
        state, pulls, arms, numbers = scan(policy, draw_from_tape(key, problem), report, key, every, carry)
        return jax.tree.map(lambda x: x[PAST - 1], (state, pulls)), arms, *drawn(key, problem, Pulled(arms, numbers))

    expected, arms, rewards, delays = whole(instance())
    seen = (np.asarray(every) + np.maximum(delays, 1) <= PAST + 1)[:PAST]
    settled = policy.observes is Feedback
    seen &= settled | (np.asarray(rewards)[:PAST] > 0)
    past = jb.History(arms[:PAST], np.where(seen, delays[:PAST], -1), rewards[:PAST], settled=settled)
    carry = start(instance(), policy, past, horizon=HORIZON - PAST)
    assert_equal((carry.state, carry.pulls), expected)


@each(POLICIES | BY_ARM, "policy", quick=OF_EACH_KIND)
def test_where_delays_are_fixed_the_run_goes_on_as_if_it_had_not_been_cut(policy):
    whole = jb.trace(0, FIXED, policy, horizon=HORIZON)
    history = past_of(whole, policy)
    rest = jb.trace(0, FIXED, policy, horizon=HORIZON - PAST, history=history)
    for name in ("arms", "pulls", "rewards", "delays"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name)[PAST:], err_msg=name)
    assert_equal(rest.diagnostics, {name: x[PAST:] for name, x in whole.diagnostics.items()})
    known = np.asarray(whole.known)[PAST:]
    np.testing.assert_array_equal(rest.known, np.where(known > 0, known - PAST, 0))


def test_a_run_counts_the_new_rounds_only():
    policy = POLICIES["PatientBandits"]
    every = range(1, HORIZON + 1)
    whole = jb.simulate(0, FIXED, policy, horizon=HORIZON, checkpoints=every, rewards=True)
    trace = jb.trace(0, FIXED, policy, horizon=HORIZON)
    history = past_of(trace, policy)
    rest = jb.simulate(
        0, FIXED, policy, horizon=HORIZON - PAST, checkpoints=every[: HORIZON - PAST], rewards=True, history=history
    )
    np.testing.assert_array_equal(rest.rounds, np.arange(1, HORIZON - PAST + 1))
    pulls = np.asarray(whole.pulls)
    np.testing.assert_array_equal(rest.pulls, pulls[PAST:] - pulls[PAST - 1])
    np.testing.assert_allclose(rest.regret, np.asarray(rest.pulls) @ np.asarray(FIXED.gaps), rtol=1e-6)
    assert rest.rewards is not None
    assert whole.rewards is not None
    known = np.arange(1, PAST + 1) + np.maximum(trace.delays[:PAST], 1) <= PAST + 1
    seen_before = int(np.asarray(trace.rewards)[:PAST][known].sum())
    np.testing.assert_array_equal(rest.rewards.seen, whole.rewards.seen[PAST:] - seen_before)
    np.testing.assert_array_equal(rest.rewards.pending, whole.rewards.pending[PAST:])
    np.testing.assert_array_equal(rest.rewards.lost, 0)


def test_rewards_that_are_not_0_or_1_go_on_too():
    problem = jb.Instance(REWARDS["TruncatedNormal"], FIXED.delay)
    for policy in (POLICIES["DelayedUCB1"], POLICIES["AdaptPatientBandits"]):
        whole = jb.trace(0, problem, policy, horizon=HORIZON)
        history = jb.History.from_trace(whole, PAST)
        rest = jb.trace(0, problem, policy, horizon=HORIZON - PAST, history=history)
        np.testing.assert_array_equal(rest.arms, whole.arms[PAST:])
        run = jb.simulate(0, problem, policy, horizon=HORIZON - PAST, rewards=True, history=history)
        assert run.rewards is not None
        out = np.arange(PAST) + 1 + np.maximum(np.asarray(whole.delays[:PAST]), 1) > PAST + 1
        total = float(np.asarray(whole.rewards)[:PAST][out].sum() + np.asarray(whole.rewards)[PAST:].sum())
        assert float(sum(x[-1] for x in run.rewards)) == pytest.approx(total, rel=1e-5)


def test_a_past_of_no_rounds_is_none():
    empty = jb.History([], [])
    assert len(empty) == 0
    run = partial(jb.simulate, 0, instance(), POLICIES["PatientBandits"], horizon=40, rewards=True)
    assert_equal(run(history=empty), run())


WAITING = {name: DELAYS[name] for name in ("Pareto", "Geometric", "LogNormal", "Lossy", "Empirical", "Mixture")}
WAITING["PerArm of Lossy"] = DELAYS["PerArm"]


def outcomes(settled: bool, delay: jb.DelayLaw, age: int, keys: int):
    """Rewards and further delays [keys, n, K] of pulls that have waited for ``age`` rounds, several of each arm."""
    problem = jb.Instance(jb.Bernoulli([0.2, 0.5, 0.9]), delay)
    n = 60
    arms = np.arange(n) % NUM_ARMS
    past = jb.History(arms, np.full(n, -1), settled=settled, ages=np.full(n, age))
    out = jax.jit(jax.vmap(lambda i: module.still_out(tape.seed_words(tape.words(3), i), problem, past)))(
        jnp.arange(keys, dtype=jnp.int32)
    )
    since = n - np.arange(n)
    further = np.where(np.asarray(out.delay) < jb.NEVER, np.asarray(out.delay) - since, jb.NEVER)
    by_arm = [x.reshape(keys, n // NUM_ARMS, NUM_ARMS).reshape(-1, NUM_ARMS) for x in (np.asarray(out.reward), further)]
    return problem, *by_arm


@pytest.mark.parametrize("settled", [False, True])
@each(WAITING, "delay")
def test_what_still_comes_has_its_conditional_law(settled, delay):
    """``p P(D > a) / (1 - p P(D <= a))`` convert, ``D - a`` later by ``P(D > a + m) / P(D > a)``: 5 standard errors."""
    age = 4
    problem, rewards, further = outcomes(settled, delay, age, keys=400)
    survival, mean = np.asarray(delay.survival(age)), np.asarray(problem.means)
    at_all = np.where(survival > 0, mean if settled else mean * survival / (1 - mean * (1 - survival)), 0)
    draws = len(rewards)
    for m in (0, 1, 3, 10, 100, 10_000):
        chance = at_all * np.asarray(delay.survival(age + m)) / np.where(survival > 0, survival, 1)
        found = ((rewards > 0) & (further > m)).mean(axis=0)
        error = np.sqrt(chance * (1 - chance) / draws)
        assert (np.abs(found - chance) <= 5 * error + 1e-6).all(), (m, found, chance)
    assert (further[rewards > 0] >= 1).all()


def test_the_pull_of_a_number_is_the_same_in_every_past():
    """Numbers of the tape are by arm and pull number: another order of the arms changes nothing of what comes."""
    past = jb.History([0, 1, 0, 2, 1, 0], [-1] * 6, ages=[9] * 6)
    other = jb.History([2, 0, 0, 1, 0, 1], [-1] * 6, ages=[9] * 6)
    outs = [module.still_out(tape.words(1), instance(), each) for each in (past, other)]
    by_pull = []
    for out in outs:
        numbers = module._numbers(out.arm)
        since = 6 - np.arange(6)
        later = np.where(np.asarray(out.delay) < jb.NEVER, np.asarray(out.delay) - since, jb.NEVER)
        by_pull.append(np.stack([out.arm, numbers, out.reward, later]))
    first, second = (rows[:, np.lexsort(rows[1::-1])] for rows in by_pull)
    np.testing.assert_array_equal(first, second)


def history(n: int = 30) -> jb.History:
    rng = np.random.default_rng(0)
    delays = rng.integers(1, 12, n)
    seen = (rng.random(n) < 0.4) & (np.arange(1, n + 1) + delays <= n + 1)
    return jb.History(rng.integers(0, NUM_ARMS, n), np.where(seen, delays, -1))


def test_batches_and_transformations_of_runs_with_a_past():
    run = partial(jb.simulate, policy=POLICIES["PatientBandits"], horizon=40, rewards=True)
    past = history()
    batch = jb.simulate_batch(
        0, instance(), POLICIES["PatientBandits"], horizon=40, seeds=5, rewards=True, history=past, chunk=2
    )
    alone = [run(jax.random.fold_in(jax.random.key(0), i), instance(), history=past) for i in range(5)]
    for i in range(5):
        assert_equal(jax.tree.map(lambda x, i=i: x[i], batch[1:]), alone[i][1:])
    keys = jax.random.key_data(jax.random.split(jax.random.key(1), 4))
    means = jnp.asarray([[0.1, 0.2, 0.3], [0.9, 0.5, 0.2], [0.5, 0.5, 0.5], [0.0, 1.0, 0.3]])

    def one(key, mean, past):
        return run(key, jb.Instance(jb.Bernoulli(mean), jb.Pareto(0.7)), history=past).pulls

    together = jax.jit(jax.vmap(one, (0, 0, None)))(keys, means, past)
    for i in range(4):
        np.testing.assert_array_equal(together[i], one(keys[i], means[i], past))
    pasts = jax.tree.map(lambda x: jnp.stack([x] * 4), past)
    np.testing.assert_array_equal(jax.vmap(one)(keys, means, pasts), together)
    spread = jax.shard_map(
        jax.vmap(lambda key, mean: one(key, mean, past)),
        mesh=jax.make_mesh((jax.device_count(),), ("runs",), axis_types=(jax.sharding.AxisType.Auto,)),
        in_specs=PartitionSpec("runs"),
        out_specs=PartitionSpec("runs"),
    )
    np.testing.assert_array_equal(jax.jit(spread)(keys, means), together)


def test_the_past_is_lived_through_once_however_many_keys():
    """No loop over the rounds of the past has an axis of keys."""
    past = history(31)
    rounds = plan(instance(), jb.UCB1(), 40, None, before=31)

    def many(keys, past):
        return jax.vmap(lambda key: rollout(key, instance(), jb.UCB1(), rounds, past, horizon=40))(keys)

    text = jax.jit(many).lower(jnp.zeros((7, 2), jnp.uint32), past).as_text()
    loops = [line for line in text.splitlines() if "stablehlo.while" in line or line.strip().startswith(": tensor")]
    assert any("tensor<73x3xui16>" in line and "tensor<7x" not in line for line in loops)
    assert not any("tensor<73x3xui16>" in line and "tensor<7x" in line for line in loops)
    assert any("tensor<7x73x3xui16>" in line for line in loops)


def test_a_traced_past_out_of_its_range_gives_nan():
    def regret(delay):
        past = jb.History(jnp.asarray([0, 1, 2]), jnp.stack([jnp.asarray(-1), delay, jnp.asarray(-1)]))
        return jb.simulate(0, instance(), jb.UCB1(), horizon=20, history=past).regret[-1]

    assert np.isfinite(jax.jit(regret)(2))
    assert np.isnan(jax.jit(regret)(3))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"arms": [0, 1], "delays": [1]}, ValueError, "must be lists of one length"),
        ({"arms": [0, -1], "delays": [1, 1]}, ValueError, "History: arms must be an integer from 0"),
        ({"arms": [0, 3], "delays": [1, 1], "num_arms": 3}, ValueError, "History: arms must be an integer from 0 to 2"),
        ({"arms": [0, 0.5], "delays": [1, 1]}, TypeError, "History: arms must be an integer"),
        ({"arms": [0, 1], "delays": [3, 1]}, ValueError, "History: delays has 3 for round 1 of 2"),
        ({"arms": [0, 1], "delays": [1, -2]}, ValueError, "History: delays must be an integer from -1"),
        ({"arms": [0, 1], "delays": [1, 1], "rewards": [1, 2]}, ValueError, r"History: rewards must be in \[0, 1\]"),
        ({"arms": [0, 1], "delays": [1, 1], "rewards": [1, 0]}, ValueError, "a 0 that was seen, in round 2"),
        ({"arms": [0, 1], "delays": [1, 1], "ages": [1, -1]}, ValueError, "History: ages must be an integer from 0"),
    ],
)
def test_what_is_no_past_is_refused(options, error, message):
    with refused(error, message):
        jb.History(**options)


@pytest.mark.parametrize(
    ("past", "policy", "reward", "error", "message"),
    [
        ([0, 1], jb.UCB1(), "Bernoulli", TypeError, "history must be a jaxbandit.History"),
        (jb.History([0, 3], [1, -1]), jb.UCB1(), "Bernoulli", ValueError, "history has 4 arms and instance 3"),
        (jb.History([0], [1], num_arms=2), jb.UCB1(), "Bernoulli", ValueError, "history has 2 arms and instance 3"),
        (jb.History([0], [1]), jb.DelayedUCB1(), "Bernoulli", ValueError, "observes Feedback"),
        (jb.History([0], [1]), jb.UCB1(), "TruncatedNormal", ValueError, "needs rewards that are 0 or 1 by their law"),
        (jb.History([0], [1], [0.5]), jb.UCB1(), "Bernoulli", ValueError, "rewards has 0.5 in round 1"),
    ],
)
def test_a_past_that_a_run_cannot_have_is_refused(past, policy, reward, error, message):
    problem = jb.Instance(REWARDS[reward], DELAYS["Pareto"])
    for run in (jb.simulate, jb.trace, partial(jb.simulate_batch, seeds=2)):
        with refused(error, message):
            run(0, problem, policy, horizon=5, history=past)
