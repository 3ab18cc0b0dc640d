"""Choices drawn with probabilities that the scores give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from tests.examples import refused

SCORES = (0.3, 0.1, 0.55, -np.inf)
TEMPERATURE = 0.2


class Fixed(jb.Policy):
    """The same scores in every round."""

    values: jax.Array

    def init(self, num_arms, horizon):
        return jnp.zeros(())

    def scores(self, state, t, key):
        return self.values

    def update(self, state, t, arm, observation):
        return state


def fixed(values=SCORES, temperature=TEMPERATURE) -> jb.Softmax:
    return jb.Softmax(Fixed(jnp.asarray(values, float)), temperature)


def log_prob(policy: jb.Softmax, arm: int, state=None) -> jax.Array:
    key = tape.policy_key(tape.words(0), jnp.int32(1))
    return policy.log_prob(jnp.zeros(()) if state is None else state, jnp.int32(9), key, jnp.int32(arm))


def probabilities() -> np.ndarray:
    weights = np.exp(np.array(SCORES) / TEMPERATURE)
    return weights / weights.sum()


def test_arms_are_pulled_as_often_as_their_probabilities_say():
    instance = jb.Instance(jb.Bernoulli([0.5] * len(SCORES)), jb.NoDelay())
    rounds, seeds = 50, 400
    pulls = np.asarray(jb.simulate_batch(0, instance, fixed(), horizon=rounds, seeds=seeds).pulls[:, -1], float)
    expected = probabilities()
    error = np.sqrt(expected * (1 - expected) / (rounds * seeds))
    assert (np.abs(pulls.mean(axis=0) / rounds - expected) <= 5 * error).all()


def test_log_probabilities_are_those_of_the_softmax():
    for arm, probability in enumerate(probabilities()[:3]):
        assert float(log_prob(fixed(), arm)) == pytest.approx(np.log(probability), abs=1e-5)


def test_a_warm_up_leaves_no_choice():
    policy = fixed((0.1, np.inf, 0.2))
    assert float(log_prob(policy, 1)) == 0
    instance = jb.Instance(jb.Bernoulli([0.5] * 3), jb.NoDelay())
    pulls = jb.simulate_batch(0, instance, jb.Softmax(jb.UCB1(), 5.0), horizon=3, seeds=20).pulls
    assert (np.asarray(pulls[:, -1]) == 1).all()


def test_gradients_of_log_probabilities_are_finite_beside_infinite_scores():
    """And those of a softmax: at temperature τ, d log π_a / dτ = -(U_a - E U) / τ^2."""

    def at(scores, temperature):
        return log_prob(fixed(scores, temperature), 0)

    for first in (np.inf, -np.inf, 0.3):
        gradients = jax.grad(at, argnums=(0, 1))(jnp.array([first, *SCORES[1:]]), jnp.asarray(TEMPERATURE))
        assert all(np.isfinite(g).all() for g in gradients)
    mean = (probabilities()[:3] * SCORES[:3]).sum()
    assert float(gradients[1]) == pytest.approx(-(SCORES[0] - mean) / TEMPERATURE**2, rel=1e-4)


def test_a_low_temperature_plays_the_best_arm():
    instance = jb.Instance(jb.Bernoulli([0.5] * len(SCORES)), jb.NoDelay())
    pulls = jb.simulate(0, instance, fixed(temperature=1e-4), horizon=50).pulls[-1]
    np.testing.assert_array_equal(pulls, [0, 0, 50, 0])


def test_it_observes_what_its_policy_observes():
    assert jb.Softmax(jb.DelayedUCB1(), 1.0).observes is jb.Feedback
    assert jb.Softmax(jb.UCB1(), 1.0).observes is jb.Conversions


def test_numbers_and_policies_of_another_kind_are_refused():
    for temperature in (0, -1.0, np.inf, np.nan):
        with refused(ValueError, "Softmax: temperature must be finite and > 0"):
            jb.Softmax(jb.UCB1(), temperature)
    with refused(TypeError, r"Softmax: policy must be a jaxbandit.Policy"):
        jb.Softmax(0.3, 0.1)
    with refused(ValueError, "Softmax: temperature must be a single number"):
        jb.simulate(0, jb.Instance(jb.Bernoulli([0.5]), jb.NoDelay()), jb.Softmax(jb.UCB1(), [1.0, 2.0]), horizon=5)
