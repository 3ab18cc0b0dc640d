"""Every public function is a program for GPU and TPU too: it lowers for them on a machine that has neither."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxbandit as jb
from tests.examples import DELAYS, POLICIES, REWARDS, each, instance

PLATFORMS = ("cuda", "tpu")
HORIZON = 12


def lowers(function, *arguments):
    """Fails unless ``function``, jitted and vmapped over two keys, is a program for the other platforms."""
    keys = jax.random.split(jax.random.key(0), 2)
    vmapped = jax.vmap(function, in_axes=(0, *(None for _ in arguments)))
    assert export.export(jax.jit(vmapped), platforms=PLATFORMS)(keys, *arguments).platforms == PLATFORMS


@each(POLICIES, "policy")
def test_a_run_of_every_policy(policy):
    def regret(key, problem, policy):
        return jb.simulate(key, problem, policy, horizon=HORIZON, checkpoints=[3, HORIZON]).regret

    lowers(regret, instance(), policy)


@each({policy.observes.__name__: policy for policy in POLICIES.values()}, "policy")
def test_a_trace_in_every_model_of_what_is_observed(policy):
    def arms(key, problem, policy):
        return jb.trace(key, problem, policy, horizon=HORIZON, scores=True)

    lowers(arms, instance(), policy)


def test_a_replay():
    def arms(key, policy):
        rewards = jax.random.uniform(key, (HORIZON, 3))
        return jb.replay(rewards, (4 * rewards).astype(jnp.int32), policy)

    lowers(arms, jb.DelayedUCB1())


@pytest.mark.parametrize("estimator", ["score", "crn", "relaxed"])
def test_every_estimator_of_a_gradient(estimator):
    def gradient(key, problem, policy):
        def regret(problem):
            return jb.expected_regret(problem, policy, key, horizon=HORIZON, seeds=2, estimator=estimator)

        def of_mean(mean):
            return regret(jb.Instance(jb.Bernoulli(mean), problem.delay))

        return jax.value_and_grad(of_mean)(problem.reward.mean)

    lowers(gradient, instance(), jb.Softmax(jb.PatientBandits(0.3), temperature=0.1))


def test_a_gradient_with_its_standard_errors():
    def gradient(key, problem, policy):
        found = jb.regret_and_gradient(
            problem, policy, key, horizon=HORIZON, seeds=2, estimator="score", wrt=lambda i, p: i.reward.mean
        )
        return found[:-1]

    lowers(gradient, instance(), jb.UCB1())


def test_a_batch_with_its_rewards_and_what_is_said_of_it():
    def said(key, problem, policy):
        runs = jb.simulate_batch(key, problem, policy, horizon=HORIZON, seeds=4, checkpoints=[HORIZON], rewards=True)
        return runs, jb.mean_ci(runs.regret), jb.quantiles(runs.regret, [0.1, 0.9])

    lowers(said, instance(), jb.DelayedUCB1())


def test_draws_and_formulas_of_every_law():
    def draws(key, laws):
        return [(law.sample(key, 3), law.survival(2), law.cdf(2), law.log_prob(1), law.mean) for law in laws]

    lowers(draws, [*REWARDS.values(), *DELAYS.values()])


def test_the_steps_of_an_environment():
    environment = jb.Environment(3, HORIZON, default_instance=instance())

    def step(key):
        _, state = environment.reset(key)
        return environment.step(key, state, jnp.int32(1))

    lowers(step)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of the hint for CPUs")
def test_a_batch_for_a_cpu_is_exported_once_its_hint_to_the_compiler_is_allowed():
    """JAX does not promise that programs with ``LayoutConstraint`` load in its other versions, and so asks."""

    def regret(key):
        return jb.simulate(key, instance(), jb.UCB1(), horizon=HORIZON).regret

    runs, keys = jax.jit(jax.vmap(regret)), jax.random.split(jax.random.key(0), 2)
    with pytest.raises(ValueError, match="LayoutConstraint"):
        export.export(runs)(keys)
    allowed = export.DisabledSafetyCheck.custom_call("LayoutConstraint")
    exported = export.export(runs, disabled_checks=[allowed])(keys)
    np.testing.assert_array_equal(exported.call(keys), runs(keys))
