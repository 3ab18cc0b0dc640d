"""One run, and how it embeds in larger programs."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import jaxbandit as jb
from jaxbandit.engine import protocol
from jaxbandit.engine import run as run_module
from tests.examples import DELAYS, POLICIES, REWARDS, each, refused

HORIZON = 60


def two_arms(gap=0.2, tail_index=0.5) -> jb.Instance:
    return jb.Instance(jb.Bernoulli(jnp.stack([jnp.asarray(0.4), 0.4 + gap])), jb.Pareto([1.0, tail_index]))


def run(key=0, gap=0.2, alpha=0.3, **options) -> jb.Run:
    return jb.simulate(key, two_arms(gap), jb.PatientBandits(alpha), horizon=HORIZON, **options)


def assert_equal(first, second) -> None:
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_a_run_reports_the_checkpoints_it_is_asked_for():
    result = run(checkpoints=[1, 7, 60])
    np.testing.assert_array_equal(result.rounds, [1, 7, 60])
    np.testing.assert_array_equal(result.pulls.sum(axis=1), [1, 7, 60])
    every = run(checkpoints=range(1, HORIZON + 1))
    np.testing.assert_array_equal(result.pulls, every.pulls[np.array([0, 6, 59])])
    assert (np.diff(every.pulls, axis=0).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("horizon", "count"), [(1, 1), (2, 2), (199, 199), (200, 200), (3000, 200), (1234, 200)])
def test_by_default_some_200_even_checkpoints_end_at_the_horizon(horizon, count):
    rounds = protocol.plan(two_arms(), jb.Uniform(), horizon, None)
    assert len(rounds) == count
    assert rounds[-1] == horizon
    gaps = np.diff(rounds)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_regret_is_pull_counts_times_gaps():
    result = run()
    np.testing.assert_allclose(result.regret, np.asarray(result.pulls, float) @ [0.2, 0.0], rtol=1e-6)


def test_a_horizon_shorter_than_the_number_of_arms_pulls_the_first_arms_once():
    instance = jb.Instance(jb.Bernoulli([0.1, 0.2, 0.3, 0.4]), jb.NoDelay())
    np.testing.assert_array_equal(jb.simulate(0, instance, jb.UCB1(), horizon=3).pulls[-1], [1, 1, 1, 0])


def test_one_arm_is_pulled_in_every_round():
    instance = jb.Instance(jb.Bernoulli([0.3]), jb.Pareto([0.3]))
    assert jb.simulate(0, instance, jb.PatientBandits(0.3), horizon=20).pulls[-1] == 20


def test_a_law_with_one_number_serves_all_arms():
    one = jb.simulate(0, jb.Instance(jb.Bernoulli([0.2, 0.8]), jb.Pareto(0.6)), jb.UCB1(), horizon=HORIZON)
    two = jb.simulate(0, jb.Instance(jb.Bernoulli([0.2, 0.8]), jb.Pareto([0.6, 0.6])), jb.UCB1(), horizon=HORIZON)
    assert_equal(one, two)


@each({name: law for name, law in DELAYS.items() if name != "Pareto"}, "delay")
def test_every_delay_law_runs(delay):
    result = jb.simulate(0, jb.Instance(REWARDS["Bernoulli"], delay), jb.DelayedUCB1(), horizon=HORIZON)
    assert int(result.pulls[-1].sum()) == HORIZON


@each(REWARDS, "reward")
def test_every_reward_law_runs(reward):
    result = jb.simulate(0, jb.Instance(reward, DELAYS["Geometric"]), jb.UCB1(), horizon=HORIZON)
    assert int(result.pulls[-1].sum()) == HORIZON


def test_keys_of_every_kind_give_the_same_run():
    for key in (jax.random.key(3), jax.random.PRNGKey(3), np.int64(3)):
        assert_equal(run(3), run(key))


def test_vmap_over_keys_instances_and_hyperparameters_together():
    keys = jax.random.split(jax.random.key(1), 4)
    gaps, alphas = jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.array([0.1, 0.2, 0.3, 0.5])
    together = jax.vmap(run)(keys, gaps, alphas)
    for i in range(4):
        assert_equal(jax.tree.map(lambda x, i=i: x[i], together), run(keys[i], gaps[i], alphas[i]))
    grid = jax.vmap(jax.vmap(run, (None, None, 0)), (None, 0, None))(keys[0], gaps, alphas)
    assert_equal(jax.tree.map(lambda x: x[2, 1], grid), run(keys[0], gaps[2], alphas[1]))


@pytest.mark.parametrize("kind", [jb.DUCB, jb.DKLUCB])
def test_windows_can_be_vmapped(kind):
    windows = jnp.array([3, 20, 45], jnp.int32)

    def one(window):
        return jb.simulate(2, two_arms(), kind(window, jb.Pareto(0.7), warmup="window"), horizon=100)

    together = jax.vmap(one)(windows)
    for i in range(3):
        assert_equal(jax.tree.map(lambda x, i=i: x[i], together), one(windows[i]))


def test_a_batched_instance_can_be_vmapped_and_is_refused_otherwise():
    batch = jb.Instance(jb.Bernoulli([[0.2, 0.8], [0.5, 0.6]]), jb.Pareto([[0.5, 1.0], [0.3, 1.0]]))
    results = jax.vmap(lambda instance: jb.simulate(0, instance, jb.UCB1(), horizon=HORIZON))(batch)
    assert results.pulls.shape == (2, HORIZON, 2)
    assert batch.gaps.shape == (2, 2)
    with refused(ValueError, r"instance must be a single problem.*use jax.vmap"):
        jb.simulate(0, batch, jb.UCB1(), horizon=HORIZON)


def test_a_run_may_stand_in_a_callers_scan():
    def body(total, key):
        return total + run(key).regret[-1], run(key).pulls[-1]

    keys = jax.random.split(jax.random.key(5), 3)
    total, pulls = jax.lax.scan(body, jnp.zeros(()), keys)
    apart = [run(key) for key in keys]
    np.testing.assert_allclose(total, sum(r.regret[-1] for r in apart), rtol=1e-5)
    np.testing.assert_array_equal(pulls, jnp.stack([r.pulls[-1] for r in apart]))


@pytest.mark.parametrize("policy", [jb.PatientBandits(0.3), jb.DUCB(10, jb.Pareto(0.7))], ids=["patient", "ducb"])
@pytest.mark.parametrize("over", ["keys", "gaps"])
def test_runs_may_be_spread_by_shard_map(over, policy):
    """Also with the checks of what varies over the mesh that are its default."""
    count = 2 * jax.device_count()
    mesh = jax.make_mesh((jax.device_count(),), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
    keys = jax.random.key_data(jax.random.split(jax.random.key(5), count))
    gaps = jnp.linspace(0.1, 0.5, count)

    def one(key, gap):
        return jb.simulate(key, two_arms(gap), policy, horizon=HORIZON)[1:]

    split, whole = PartitionSpec("runs"), PartitionSpec()
    if over == "keys":
        arguments, axes, specs = (keys, gaps[0]), (0, None), (split, whole)
    else:
        arguments, axes, specs = (keys[0], gaps), (None, 0), (whole, split)
    mapped = jax.vmap(one, axes)
    spread = jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=specs, out_specs=split))(*arguments)
    assert_equal(spread, mapped(*arguments))


def test_new_numbers_compile_nothing_and_a_new_shape_does():
    policies = [jb.PatientBandits(a, b) for a, b in ((0.1, 1.0), (0.2, 0.5), (0.5, 2.0))]
    jb.simulate(0, two_arms(), policies[0], horizon=57)
    compiled = run_module._simulate._cache_size()
    for seed, policy in enumerate(policies):
        jb.simulate(seed, two_arms(0.1 * seed, 0.3 + seed), policy, horizon=57, checkpoints=range(1, 58))
    assert run_module._simulate._cache_size() == compiled
    jb.simulate(0, two_arms(), policies[0], horizon=58)
    assert run_module._simulate._cache_size() == compiled + 1


@pytest.mark.parametrize("num_arms", [pytest.param(2, marks=pytest.mark.slow), 5])
@each(POLICIES, "policy")
def test_no_round_copies_a_buffer(policy, num_arms):
    """Outside of its entry the compiled program copies no array with an element for each run and round."""
    horizon, lanes = 10_000, 8
    instance = jb.Instance(jb.Bernoulli(jnp.linspace(0.2, 0.8, num_arms)), jb.Pareto(0.5))
    rounds = jnp.array([100, 2000, horizon], jnp.int32)

    def batch(keys):
        return jax.vmap(lambda key: run_module.rollout(key, instance, policy, rounds, horizon=horizon))(keys)

    text = jax.jit(batch).lower(jnp.zeros((lanes, 2), jnp.uint32)).compile().as_text()
    assert f"u16[{lanes},{horizon + 2},{num_arms}]" in text
    loops = [part for part in text.split("\n\n") if "ENTRY" not in part]
    copied = [shape.split(",") for part in loops for shape in re.findall(r"= \w+\[([\d,]+)\]\S* copy\(", part)]
    assert all(math.prod(map(int, shape)) < lanes * horizon for shape in copied)


def test_a_run_of_a_million_rounds_is_exact():
    """Every reward comes back after a fixed long delay: what has been paid is known in every round."""
    horizon, delay = 10**6, 400_000
    instance = jb.Instance(jb.Deterministic([1.0]), jb.Constant([delay]))

    class Paid(jb.UCB1):
        def diagnostics(self, state, t):
            return {"paid": state.rewards[0]}

    rounds = [delay, delay + 1, delay + 2, 700_000, horizon]
    result = jb.simulate(0, instance, Paid(), horizon=horizon, checkpoints=rounds)
    np.testing.assert_array_equal(result.diagnostics["paid"], [0, 1, 2, 300_000, 600_000])


@pytest.mark.parametrize("wrt", ["gap", "alpha"])
def test_differentiating_a_run_is_refused(wrt):
    def final(x):
        return run(**{wrt: x}).regret[-1]

    for derivative in (jax.grad(final), jax.jit(jax.grad(final)), jax.jacfwd(final), jax.hessian(final)):
        with refused(TypeError, "cannot be differentiated"):
            derivative(0.25)


def test_a_run_beside_what_is_differentiated_is_left_alone():
    """As the message advises: ``stop_gradient`` around the arguments."""
    value = jax.grad(lambda x: x**2 * run(gap=jax.lax.stop_gradient(x)).regret[-1])(0.2)
    assert value == pytest.approx(0.4 * float(run(gap=0.2).regret[-1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be an integer from 1"),
        ({"horizon": 10, "checkpoints": [3, 2]}, r"checkpoints must increase and lie in 1..10"),
        ({"horizon": 10, "checkpoints": [0, 2]}, r"checkpoints must increase and lie in 1..10"),
        ({"horizon": 10, "checkpoints": [2, 11]}, r"checkpoints must increase and lie in 1..10"),
        ({"horizon": 10, "checkpoints": [2, 2]}, r"checkpoints must increase and lie in 1..10"),
        ({"horizon": 10, "key": 2**32}, "key must be an integer from 0 to 4294967295"),
        ({"horizon": 2**24 + 1}, "horizon must be an integer from 1 to 16777216"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    options = {"key": 0, "instance": two_arms(), "policy": jb.PatientBandits(0.3)} | options
    with refused(ValueError, message):
        jb.simulate(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 10.0}, "horizon must be an integer"),
        ({"horizon": True}, "horizon must be an integer"),
        ({"checkpoints": [1.5]}, "checkpoints must be a list of whole numbers"),
        ({"checkpoints": []}, "checkpoints must be a list of whole numbers"),
        ({"key": "0"}, "key must be an integer"),
        ({"instance": jb.Bernoulli([0.5])}, "instance"),
        ({"policy": jb.UCB1}, "policy"),
    ],
)
def test_arguments_of_another_kind_are_refused(options, message):
    options = {"key": 0, "instance": two_arms(), "policy": jb.UCB1(), "horizon": 10} | options
    with refused(TypeError, message):
        jb.simulate(**options)


def test_a_traced_horizon_is_refused():
    with refused(TypeError, "horizon sets an array's size and cannot be traced"):
        jax.jit(lambda t: jb.simulate(0, two_arms(), jb.UCB1(), horizon=t))(10)


@pytest.mark.parametrize(
    ("reward", "delay", "error", "message"),
    [
        (jb.Bernoulli([0.1, 0.2]), jb.Pareto([1.0, 1.0, 1.0]), ValueError, "reward has 2 arms and delay has 3"),
        (jb.Bernoulli(0.1), jb.Pareto(1.0), ValueError, "one unnamed arm"),
        (jb.Pareto([1.0]), jb.Pareto([1.0]), TypeError, "reward"),
        (jb.Bernoulli([0.5]), jb.Bernoulli([0.5]), TypeError, "delay"),
        (jb.PerArm([jb.Pareto(1.0)]), jb.Pareto([1.0]), TypeError, "reward must be a reward law"),
    ],
)
def test_laws_that_do_not_make_an_instance_are_refused(reward, delay, error, message):
    with refused(error, message):
        jb.Instance(reward, delay)


def test_a_table_of_pulls_that_int32_cannot_index_is_refused():
    instance = jb.Instance(jb.Bernoulli(jnp.full(200, 0.5)), jb.NoDelay())
    with refused(ValueError, "horizon times the number of arms must be below 2\\^31 - 1, got 16000000 x 200"):
        jb.simulate(0, instance, jb.UCB1(), horizon=16_000_000)


@pytest.mark.parametrize("num_arms", [1, 2, 31, 32, 33, 65, 100])
def test_the_best_arm_is_pulled_and_of_several_that_with_the_fewest_pulls(num_arms):
    rng = np.random.default_rng(num_arms)
    for _ in range(20):
        scores, pulls = rng.integers(0, 3, num_arms), rng.integers(0, 4, num_arms)
        expected = min(range(num_arms), key=lambda i: (-scores[i], pulls[i], i))
        assert jb.choose(jnp.asarray(scores, float), jnp.asarray(pulls, jnp.int32)) == expected
    nan = jnp.zeros(num_arms).at[num_arms // 2].set(jnp.nan)
    assert jb.choose(nan, jnp.zeros(num_arms, jnp.int32)) == num_arms


@pytest.mark.parametrize("num_arms", [1, 2, 3, 10, 32, 33, 100, 1000])
def test_a_nan_score_is_found_however_many_runs_lie_side_by_side(num_arms):
    """A maximum would lose it, from some hundred runs on."""
    rng = np.random.default_rng(num_arms)
    for runs in (1, 7, 64, 256, 1024):
        scores = rng.choice([0.0, 1.0, np.inf, -np.inf], (runs, num_arms))
        pulls = jnp.asarray(rng.integers(0, 9, (runs, num_arms)), jnp.int32)
        bad = np.arange(runs) % 3 > 0
        scores[bad, rng.integers(0, num_arms, runs)[bad]] = np.nan
        arms = np.asarray(jax.jit(jax.vmap(jb.choose))(jnp.asarray(scores, float), pulls))
        np.testing.assert_array_equal(arms == num_arms, bad)


class NaNFromRound9(jb.UCB1):
    """A score of NaN for the last arm, from round 9 on."""

    def scores(self, state, t, key):
        scores = super().scores(state, t, key)
        return scores.at[-1].set(jnp.where(t < 9, scores[-1], jnp.nan))


@pytest.mark.parametrize("num_arms", [2, 10, 32, 100])
def test_a_nan_score_makes_the_regret_of_every_run_nan(num_arms):
    instance = jb.Instance(jb.Bernoulli(jnp.linspace(0.2, 0.8, num_arms)), jb.Pareto(0.5))

    def regret(key):
        return jb.simulate(key, instance, NaNFromRound9(), horizon=12, checkpoints=[8, 12]).regret

    keys = jax.random.split(jax.random.key(0), 2048)
    regrets = np.asarray(jax.jit(jax.vmap(regret))(keys))
    np.testing.assert_array_equal(np.isnan(regrets), np.broadcast_to([False, True], (2048, 2)))
    with pytest.raises(ValueError, match="NaNFromRound9 gave a score that is NaN"):
        jb.simulate_batch(0, instance, NaNFromRound9(), horizon=12, seeds=2048)
