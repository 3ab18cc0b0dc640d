"""A run round by round is the run that ``simulate`` sums up."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import jaxbandit as jb
from jaxbandit.engine import tape
from jaxbandit.policies.observations import Feedback
from tests.examples import AT_RANDOM, NUM_ARMS, OF_EACH_KIND, POLICIES, REWARDS, each, instance, refused

HORIZON = 90


def trace_of(policy=None, key=0, **options) -> jb.Trace:
    options = {"horizon": HORIZON} | options
    return jb.trace(key, instance(), jb.UCB1() if policy is None else policy, **options)


def every_round(key, of: jb.Instance, policy: jb.Policy) -> jb.Run:
    return jb.simulate(key, of, policy, horizon=HORIZON, checkpoints=range(1, HORIZON + 1))


def assert_same_run(trace: jb.Trace, run: jb.Run) -> None:
    """Pulls and diagnostics of every round, bit for bit."""
    pulled = np.asarray(trace.arms)[:, None] == np.arange(NUM_ARMS)
    np.testing.assert_array_equal(np.cumsum(pulled, axis=0), run.pulls)
    np.testing.assert_array_equal(trace.pulls, np.asarray(run.pulls)[np.arange(HORIZON), trace.arms])
    jax.tree.map(np.testing.assert_array_equal, trace.diagnostics, run.diagnostics)


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_a_trace_is_the_run_of_simulate_for_every_policy(policy):
    assert_same_run(trace_of(policy, key=5, scores=True), every_round(5, instance(), policy))


@pytest.mark.parametrize("policy", [jb.PatientBandits(0.3), jb.DelayedUCB1()], ids=["patient", "delayed"])
def test_a_trace_without_scores_is_the_same(policy):
    jax.tree.map(np.testing.assert_array_equal, trace_of(policy), trace_of(policy, scores=True)._replace(scores=None))


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_the_scores_are_those_that_were_played(policy):
    trace = trace_of(policy, scores=True)
    assert trace.scores is not None
    scores, pulls = np.asarray(trace.scores), np.zeros(NUM_ARMS, int)
    for row, arm in zip(scores, np.asarray(trace.arms), strict=True):
        best = min(range(NUM_ARMS), key=lambda i: (-row[i], pulls[i], i))
        assert arm == best
        pulls[arm] += 1


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_known_is_the_round_from_which_the_policy_is_told(policy):
    trace = jax.device_get(trace_of(policy, scores=True))
    for t in range(1, HORIZON + 1):
        delay, reward = int(trace.delays[t - 1]), float(trace.rewards[t - 1])
        due = t + max(1, delay, int(policy.wait(jnp.int32(delay))))
        told = due <= HORIZON and (reward > 0 or policy.observes is Feedback)
        assert trace.known[t - 1] == (due if told else 0)


@each(REWARDS, "reward")
def test_rewards_and_delays_are_those_of_the_tape(reward):
    of = jb.Instance(reward, jb.Lossy(jb.Pareto([0.3, 1.0, 2.5]), 0.2))
    trace = jb.trace(3, of, jb.Uniform(), horizon=HORIZON)
    draw_reward, draw_delay = of.reward.sampler(), of.delay.sampler()
    u, v = jax.vmap(lambda arm, n: tape.uniforms(tape.words(3), arm, n))(trace.arms, trace.pulls - 1)
    np.testing.assert_allclose(trace.rewards, jax.vmap(draw_reward)(u, trace.arms), rtol=1e-5)
    np.testing.assert_array_equal(trace.delays, jax.vmap(draw_delay)(v, trace.arms))
    assert (np.asarray(trace.delays) == jb.NEVER).any()


@each({name: policy for name, policy in POLICIES.items() if name not in AT_RANDOM}, "policy")
def test_replaying_what_a_trace_has_drawn_gives_the_trace(policy):
    """The table holds what was pulled, and anything elsewhere. It has no key for choices that are drawn."""
    trace = trace_of(policy, key=2, scores=True)
    rewards, delays = np.full((HORIZON, NUM_ARMS), 0.7), np.full((HORIZON, NUM_ARMS), 4)
    places = (np.arange(HORIZON), np.asarray(trace.arms))
    rewards[places], delays[places] = trace.rewards, trace.delays
    again = jb.replay(rewards, delays, policy)
    for name in ("arms", "pulls", "rewards", "delays", "known"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trace, name))


def test_the_trace_of_seed_i_is_run_i_of_a_batch():
    batch = jb.simulate_batch(7, instance(), jb.PatientBandits(0.3), horizon=HORIZON, seeds=4)
    trace = trace_of(jb.PatientBandits(0.3), jax.random.fold_in(jax.random.key(7), 3))
    np.testing.assert_array_equal(np.bincount(trace.arms, minlength=NUM_ARMS), batch.pulls[3, -1])
    np.testing.assert_array_equal(trace.pulls[-1], batch.pulls[3, -1, trace.arms[-1]])


def test_the_head_of_a_trace_is_what_is_known_by_then():
    trace = jb.trace(3, instance(), jb.DUCB(20, jb.Pareto(0.5)), horizon=HORIZON, scores=True)
    head = trace.head(10)
    for name in ("arms", "pulls", "rewards", "delays", "scores"):
        np.testing.assert_array_equal(getattr(head, name), getattr(trace, name)[:10])
    known = np.asarray(trace.known[:10])
    np.testing.assert_array_equal(head.known, np.where(known <= 10, known, 0))
    assert (known > 10).any()
    assert head.diagnostics.keys() == trace.diagnostics.keys()
    jax.tree.map(np.testing.assert_array_equal, trace.head(HORIZON), trace)
    many = jax.vmap(lambda key: jb.trace(key, instance(), jb.UCB1(), horizon=HORIZON))(jnp.arange(3)).head(7)
    assert many.arms.shape == (3, 7)
    for rounds, error in ((0, ValueError), (HORIZON + 1, ValueError), (2.5, TypeError)):
        with refused(error, "Trace.head: rounds must be an integer"):
            trace.head(rounds)


def test_traces_work_under_jit_vmap_and_shard_map():
    keys = jax.random.key_data(jax.random.split(jax.random.key(1), jax.device_count()))
    alone = [trace_of(jb.DelayedUCB1(), key) for key in keys]
    mesh = jax.make_mesh((jax.device_count(),), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
    together = jax.vmap(lambda key: trace_of(jb.DelayedUCB1(), key))
    split = PartitionSpec("runs")
    for mapped in (jax.jit(together), jax.jit(jax.shard_map(together, mesh=mesh, in_specs=split, out_specs=split))):
        stacked = jax.tree.map(lambda *x: np.stack(x), *alone)
        jax.tree.map(np.testing.assert_array_equal, mapped(keys), stacked)


def test_a_trace_has_no_derivative():
    with refused(TypeError, "cannot be differentiated"):
        jax.grad(lambda alpha: trace_of(jb.PatientBandits(alpha)).rewards.sum())(0.3)


def test_a_score_that_is_nan_is_refused():
    class Broken(jb.UCB1):
        def scores(self, state, t, key):
            return jnp.where(t > 5, jnp.nan, super().scores(state, t, key))

    with refused(ValueError, "Broken gave a score that is NaN"):
        trace_of(Broken())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "horizon must be an integer from 1"),
        ({"key": -1}, ValueError, "key must be an integer from 0"),
        ({"policy": "UCB1"}, TypeError, "policy"),
    ],
)
def test_arguments_that_are_none_are_refused(options, error, message):
    with refused(error, message):
        trace_of(**options)


def test_a_table_of_a_trace_has_a_row_a_round():
    policy = jb.AdaptPatientBandits(c=0.8, alpha_min=0.4, mean_min=0.1)
    trace = trace_of(policy, scores=True)
    table = trace.to_dataframe()
    scores = [f"score_{i}" for i in range(NUM_ARMS)]
    assert list(table.columns) == ["arm", "pull", "reward", "delay", "known", "alpha_bar", "alpha_hat", *scores]
    assert table.index.tolist() == list(range(1, HORIZON + 1))
    np.testing.assert_array_equal(table["known"], trace.known)
    np.testing.assert_array_equal(table["score_2"], np.asarray(trace.scores)[:, 2])
    assert (table.groupby("arm")["pull"].max() == table["arm"].value_counts().sort_index()).all()


def test_a_table_of_several_traces_is_refused():
    both = jax.tree.map(lambda x: np.stack([x, x]), jax.device_get(trace_of()))
    with refused(ValueError, "trace must be of one run"):
        both.to_dataframe()


def test_without_pandas_a_table_says_what_is_missing():
    code = """
import sys
sys.modules["pandas"] = None
import jaxbandit as jb
trace = jb.trace(0, jb.Instance(jb.Bernoulli([0.5, 0.6]), jb.NoDelay()), jb.UCB1(), horizon=3)
try:
    trace.to_dataframe()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "Trace.to_dataframe needs pandas: pip install" in done.stdout
