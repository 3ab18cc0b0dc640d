"""The environment is the simulator, stepped from outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from jaxbandit.policies.choice import choose
from tests.examples import NUM_ARMS, OF_EACH_KIND, POLICIES, each, instance, refused

HORIZON = 60


def play(env, policy, key, problem):
    """Arms, observations, rewards and regret of a policy's run through the environment."""
    words = tape.words(key)
    _, state = env.reset(key, problem)
    learned = jax.tree.map(jnp.asarray, policy.init(env.num_arms, env.horizon))

    def one_round(carry, t):
        state, learned = carry
        arm = choose(policy.scores(learned, t, tape.policy_key(words, t)), state.pulls)
        obs, state, reward, _, truncated, info = env.step(key, state, arm, problem)
        learned = policy.update(learned, t, arm, info["observation"])
        return (state, learned), (arm, obs, reward, truncated, info["regret"])

    rounds = jnp.arange(1, env.horizon + 1, dtype=jnp.int32)
    return jax.lax.scan(one_round, (state, learned), rounds)[1]


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_a_policy_played_through_it_has_the_arms_and_the_regret_of_simulate(policy):
    env = jb.Environment(NUM_ARMS, HORIZON, observes=policy)
    arms, _, _, truncated, regret = jax.jit(lambda: play(env, policy, jax.random.key(3), instance()))()
    run = jb.simulate(jax.random.key(3), instance(), policy, horizon=HORIZON, checkpoints=range(1, HORIZON + 1))
    np.testing.assert_array_equal(np.cumsum(np.eye(NUM_ARMS, dtype=int)[arms], axis=0), run.pulls)
    np.testing.assert_array_equal(regret, run.regret)
    np.testing.assert_array_equal(truncated, np.arange(1, HORIZON + 1) == HORIZON)


@pytest.mark.parametrize("observes", [jb.Conversions, jb.Feedback, jb.Anonymous])
def test_the_observation_is_what_arrives_then_the_last_arm_then_the_time(observes):
    env = jb.Environment(2, 4, observes=observes)
    problem = jb.Instance(jb.Deterministic([1.0, 0.5]), jb.Constant([2, 1]))
    obs, state = env.reset(0, problem)
    seen = [np.asarray(obs)]
    for arm in (0, 1, 0, 1):
        obs, state, *_ = env.step(None, state, arm, problem)
        seen.append(np.asarray(obs))
    rewards = np.array([[0, 0], [0, 0], [1, 0.5], [0, 0], [1, 0.5]])
    settled = np.array([[0, 0], [0, 0], [1, 1], [0, 0], [1, 1]])
    arms = np.array([[0, 0], [1, 0], [0, 1], [1, 0], [0, 1]])
    first = {jb.Conversions: [rewards], jb.Feedback: [rewards, settled], jb.Anonymous: [rewards.sum(1, keepdims=True)]}
    np.testing.assert_array_equal(seen, np.hstack([*first[observes], arms, np.arange(5)[:, None] / 4]))


def test_the_reward_is_what_arrives_or_minus_the_gap():
    problem = jb.Instance(jb.Deterministic([1.0, 0.25]), jb.Constant([2, 1]))
    for kind, expected in (("arrivals", [0, 1.25, 0.25]), ("gap", [0, -0.75, -0.75])):
        env = jb.Environment(2, 5, reward=kind)
        _, state = env.reset(0, problem)
        rewards = []
        for arm in (0, 1, 1):
            _, state, reward, *_ = env.step(0, state, arm, problem)
            rewards.append(float(reward))
        assert rewards == expected


def test_after_the_horizon_and_for_an_arm_that_is_none_reward_and_regret_are_nan():
    env = jb.Environment(NUM_ARMS, 2)
    _, state = env.reset(0, instance())
    for _ in range(2):
        _, state, reward, *_ = env.step(0, state, 1, instance())
        assert np.isfinite(reward)
    _, _, reward, _, _, info = env.step(0, state, 1, instance())
    assert np.isnan(reward)
    assert np.isnan(info["regret"])
    _, state = env.reset(0, instance())
    _, _, reward, _, _, info = jax.jit(env.step)(0, state, jnp.int32(7), instance())
    assert np.isnan(reward)
    assert np.isnan(info["regret"])


def test_vmapped_over_instances_keys_and_arms_it_is_the_same_as_alone():
    env = jb.Environment(NUM_ARMS, 10)
    keys = jax.random.split(jax.random.key(0), 4)
    problems = jax.vmap(lambda key: jb.uniform_instance(key, NUM_ARMS))(keys)
    arms = jnp.array([0, 1, 2, 1], jnp.int32)

    def two(key, problem, arm):
        _, state = env.reset(key, problem)
        _, state, *_ = env.step(key, state, arm, problem)
        return env.step(key, state, arm, problem)

    together = jax.vmap(two)(keys, problems, arms)
    for i in range(4):
        alone = two(keys[i], jax.tree.map(lambda x, i=i: x[i], problems), arms[i])
        jax.tree.map(np.testing.assert_array_equal, alone, jax.tree.map(lambda x, i=i: x[i], together))


def test_it_works_inside_shard_map():
    mesh = jax.make_mesh((1,), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
    env, spec = jb.Environment(NUM_ARMS, 20), jax.sharding.PartitionSpec("runs")
    keys = jax.random.split(jax.random.key(0), 2)

    def run(key):
        def one_round(state, arm):
            _, state, reward, _, _, info = env.step(key, state, arm, instance())
            return state, (reward, info["regret"])

        return jax.lax.scan(one_round, env.reset(key, instance())[1], jnp.arange(20, dtype=jnp.int32) % NUM_ARMS)[1]

    runs = jax.vmap(run)
    sharded = jax.shard_map(runs, mesh=mesh, in_specs=spec, out_specs=spec)(keys)
    jax.tree.map(np.testing.assert_array_equal, sharded, runs(keys))


def test_what_is_not_one_is_refused():
    with refused(TypeError, "Environment: observes must be Conversions"):
        jb.Environment(2, 5, observes=jb.ConversionsByPull)
    with refused(ValueError, "Environment: reward must be"):
        jb.Environment(2, 5, reward="regret")  # pyright: ignore
    with refused(ValueError, "Environment: horizon must be"):
        jb.Environment(2, 0)
    env = jb.Environment(2, 5)
    with refused(ValueError, "instance has 3 arms, num_arms is 2"):
        env.reset(0, instance())
    with refused(TypeError, "instance must be a jaxbandit.Instance"):
        env.reset(0)
    env = jb.Environment(3, 5)
    _, state = env.reset(0, instance())
    with refused(ValueError, "Environment: arm must be an integer from 0 to 2, got 3"):
        env.step(0, state, 3, instance())
    with refused(TypeError, "cannot be differentiated"):
        jax.grad(lambda problem: env.step(0, state, 1, problem)[-1]["regret"], allow_int=True)(instance())


def test_the_helper_samples_uniform_means_and_delays():
    draws = jax.vmap(lambda key: jb.uniform_instance(key, 4, means=(0.2, 0.6), mean_delays=(5.0, 15.0)))(
        jax.random.split(jax.random.key(1), 500)
    )
    for values, low, high in ((draws.means, 0.2, 0.6), (draws.delay.mean, 5.0, 15.0)):
        assert low <= np.min(values) <= np.max(values) <= high
        error = (high - low) / np.sqrt(12 * 2000)
        assert abs(np.mean(values) - (low + high) / 2) < 5 * error
    with refused(ValueError, "means must be"):
        jb.uniform_instance(0, 2, means=(0.5, 1.5))


@pytest.mark.skipif(jax.config.jax_numpy_dtype_promotion == "strict", reason="gymnax mixes types")
def test_it_runs_under_the_wrappers_and_the_rollouts_of_gymnax():
    pytest.importorskip("gymnax")
    from gymnax.experimental.rollout import RolloutWrapper
    from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper, StickyActionWrapper

    env = jb.Environment(NUM_ARMS, 8, auto_reset=True, default_instance=instance())
    assert env.observation_space(env.default_params).shape == (7,)
    wrapped = LogWrapper(FlattenObservationWrapper(StickyActionWrapper(env, 0.25)))
    obs, state = wrapped.reset(jax.random.key(0), instance())
    for i in range(8):
        assert obs.shape == (7,)
        obs, state, _, _, truncated, info = wrapped.step(jax.random.key(i), state, 1, instance())
    assert bool(truncated)
    assert int(info["returned_episode_lengths"]) == 8
    assert float(info["final_observation"][-1]) == 1.0
    assert float(obs[-1]) == 0.0  # of the next run

    def model(params, obs, key):
        return jnp.argmax(obs[:NUM_ARMS] + params + jax.random.gumbel(key, (NUM_ARMS,))).astype(jnp.int32)

    rollout = RolloutWrapper(model, env=env, num_env_steps=20)
    keys = jax.random.split(jax.random.key(2), 5)
    obs, _, reward, _, done, total = rollout.batch_rollout(keys, jnp.zeros(NUM_ARMS))
    assert obs.shape == (5, 20, 7)
    np.testing.assert_array_equal(done, np.arange(1, 21)[None] % 8 == np.zeros((5, 1)))
    np.testing.assert_allclose(total[:, 0], reward[:, :8].sum(axis=1), rtol=1e-6)
