"""The network that learns, and the program that teaches it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from experiments.learning import learned_policy, ppo, problems
from experiments.learning.network import Recurrent
from experiments.report import Progress

HORIZON = 20


@pytest.fixture(scope="module")
def agent():
    return ppo.ActorCritic(4, jax.random.key(0))


@pytest.fixture(scope="module")
def run(agent):
    return jax.jit(ppo.play, static_argnames="horizon")(agent.actor, jax.random.key(1), horizon=HORIZON)


def test_the_network_cannot_tell_the_arms_apart_and_plays_any_number_of_them():
    """The same rewards for other arms, and the scores are those of the other arms."""
    policy, order = Recurrent(4, jax.random.key(0)), np.array([2, 0, 3, 1])
    place = np.argsort(order)
    first, second = policy.init(4, HORIZON), policy.init(4, HORIZON)
    rewards = jax.random.uniform(jax.random.key(1), (3, 4))
    for t, arm in enumerate([1, 3, 3]):
        now = jnp.int32(t + 1)
        first = policy.update(first, now, jnp.int32(arm), jb.Conversions(rewards[t]))
        second = policy.update(second, now, jnp.int32(place[arm]), jb.Conversions(rewards[t][order]))
    scores = policy.scores(first, jnp.int32(4), jax.random.key(0))
    assert len(set(np.asarray(scores).tolist())) == 4
    np.testing.assert_allclose(scores[order], policy.scores(second, jnp.int32(4), jax.random.key(0)), rtol=1e-5)


def test_what_is_paid_is_minus_the_regret(agent, run):
    for_instance, *_ = jax.random.split(jax.random.key(1), 3)
    gaps = np.asarray(problems.prior(for_instance).gaps)
    np.testing.assert_array_equal(run.rewards, -gaps[np.asarray(run.arms)])


def test_a_run_is_judged_by_the_probabilities_it_was_played_with(agent, run):
    judged = jax.jit(ppo.judge)(agent, run)
    policy, state = jb.Softmax(agent.actor, 1.0), agent.actor.init(problems.NUM_ARMS, HORIZON)
    for t in range(3):
        now, arm = jnp.int32(t + 1), run.arms[t]
        log_prob = policy.log_prob(state, now, jax.random.key(0), arm)
        np.testing.assert_allclose(judged.log_prob[t], log_prob, rtol=1e-5)
        state = policy.update(state, now, arm, jax.tree.map(lambda x, t=t: x[t], run.observations))
    np.testing.assert_allclose(judged.log_prob[0], -np.log(problems.NUM_ARMS), rtol=1e-5)  # nothing is known yet


def test_advantages_are_the_sums_of_their_definition():
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 7))
    errors = rewards + ppo.DISCOUNT * np.append(values[1:], 0) - values
    decay = ppo.DISCOUNT * ppo.TRACE
    expected = [sum(decay ** (s - t) * errors[s] for s in range(t, 7)) for t in range(7)]
    np.testing.assert_allclose(ppo.advantages(jnp.asarray(rewards), jnp.asarray(values)), expected, rtol=1e-4)


def test_the_gradient_of_the_actor_is_at_first_that_of_the_policy(agent, run):
    """Where nothing has moved yet, no ratio is clipped: the score of each choice times its scaled advantage."""
    runs = jax.tree.map(lambda x: x[None], run)
    before = jax.tree.map(lambda x: x[None], jax.jit(ppo.judge)(agent, run))
    gains = jax.random.normal(jax.random.key(2), before.value.shape)
    scaled = (gains - gains.mean()) / gains.std()

    def plain(actor):
        judged = ppo.judge(eqx.tree_at(lambda x: x.actor, agent, actor), run)
        return -jnp.mean(judged.log_prob * scaled[0])

    found = jax.jit(jax.grad(ppo.loss))(agent, runs, before, gains).actor
    expected = jax.jit(jax.grad(plain))(agent.actor)
    assert jnp.abs(expected.readout.weight).max() > 1e-4
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6), found, expected)


@pytest.mark.slow
@pytest.mark.skipif(jax.config.jax_numpy_dtype_promotion == "strict", reason="optax's schedules mix types")
def test_both_ways_of_learning_beat_play_at_random():
    """After fifteen steps of each, on instances that were not trained on, by 5 standard errors."""

    with Progress("learning", 2) as progress:
        learned = (
            learned_policy.by_score(0, 16, 15, HORIZON, progress),
            learned_policy.by_ppo(0, 64, 15, HORIZON, progress),
        )
    before = problems.regrets(lambda _: jb.Uniform(), jax.random.key(9), 1000, HORIZON)
    for found in learned:
        after = problems.regrets(learned_policy.softmax_of(found.network), jax.random.key(9), 1000, HORIZON)
        less = before - after
        assert less.mean() > 5 * less.std() / np.sqrt(len(less))
        assert len(found.curve) == 15


def test_the_constants_found_for_patient_bandits_are_of_the_grid():
    alpha, bonus, bias = problems.tuned_constants(jax.random.key(0), 20, HORIZON)
    assert any(np.isclose(alpha, x) for x in problems.ALPHAS)
    assert any(np.isclose(bonus, x) for x in problems.BONUS_SCALES)
    assert any(np.isclose(bias, x) for x in problems.BIAS_SCALES)


def test_the_verdicts_follow_the_numbers():
    noise = np.random.default_rng(0).normal(0, 0.1, 50)
    nothing = {"UCB1": 9 + noise, "Thompson": 8 - noise}
    told = {"D-UCB": 7 + noise, "corrected": 6 - noise}

    def verdicts(score, by_ppo):
        learned = {learned_policy.SCORE: score - noise / 2, learned_policy.PPO: by_ppo + noise}
        groups = (learned_policy.LEARNED, learned_policy.TOLD_NOTHING, learned_policy.TOLD_LAWS)
        return [
            claim.holds for claim in learned_policy.claims(dict(zip(groups, (learned, nothing, told), strict=True)))
        ]

    assert verdicts(5.0, 7.5) == [True, True, True, False]
    assert verdicts(8.5, 6.0) == [False, True, False, False]
