"""The calendar of rewards in flight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine.pending import Pending
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback, Pull


def arrivals(observes, binary: bool, rewards, delays, arms, horizon: int):
    """What is observed at the start of rounds 2..T+1."""
    pending = Pending.empty(observes, horizon, 3, binary)

    def step(pending, pull_t):
        t, pull = pull_t
        pending = pending.add(t, pull, pull.delay)
        return pending, pending.arriving(observes, t + 1, pull)

    t = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    pulls = Pull(jnp.asarray(arms, jnp.int32), jnp.asarray(rewards, float), jnp.asarray(delays, jnp.int32))
    return jax.lax.scan(step, pending, (t, pulls))[1]


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("observes", [Anonymous, Conversions, ConversionsByPull, Feedback])
def test_every_reward_that_arrives_by_the_horizon_is_seen_once_and_on_time(observes, binary):
    horizon, rng = 300, np.random.default_rng(1)
    arms = rng.integers(0, 3, horizon)
    rewards = rng.integers(0, 2, horizon) * (1.0 if binary else rng.uniform(size=horizon))
    delays = np.minimum(np.floor(rng.uniform(size=horizon) ** (-1 / 0.3)), jb.NEVER).astype(np.int64)
    seen = arrivals(observes, binary, rewards, delays, arms, horizon)
    per_arm, settled = np.zeros((horizon + 2, 3)), np.zeros((horizon + 2, 3), int)
    for s in range(1, horizon + 1):
        due = s + max(delays[s - 1], 1)
        if due <= horizon + 1:
            per_arm[due, arms[s - 1]] += rewards[s - 1]
            settled[due, arms[s - 1]] += 1
    if observes is Anonymous:
        np.testing.assert_allclose(seen.reward, per_arm[2:].sum(axis=1), rtol=1e-6)
    else:
        np.testing.assert_allclose(seen.rewards, per_arm[2:], rtol=1e-6)
    if observes is Feedback:
        np.testing.assert_array_equal(seen.settled, settled[2:])


@pytest.mark.parametrize(("delay", "expected"), [(299, 2), (300, 1), (301, 0), (10**6, 0), (jb.NEVER, 0)])
def test_a_reward_due_after_the_horizon_does_not_come_back_elsewhere(delay, expected):
    """Rows are kept up to that of round T + 1, which no choice is made from."""
    seen = arrivals(Conversions, True, np.ones(300), np.full(300, delay), np.zeros(300, int), 300)
    assert np.asarray(seen.rewards).sum() == expected


def test_delays_0_and_1_are_the_same():
    for delay in (0, 1):
        seen = arrivals(Conversions, True, np.ones(5), np.full(5, delay), np.zeros(5, int), 5)
        np.testing.assert_array_equal(seen.rewards[:, 0], np.ones(5))


def test_counts_are_kept_in_the_smallest_integers_that_hold_them():
    assert Pending.empty(Conversions, 65_535, 2, True).rewards.dtype == jnp.uint16
    assert jax.eval_shape(lambda: Pending.empty(Conversions, 65_536, 2, True)).rewards.dtype == jnp.uint32
    assert Pending.empty(Conversions, 10, 2, False).rewards.dtype == jnp.result_type(float)


def test_as_many_rewards_as_rounds_may_arrive_at_once():
    horizon = 65_535
    delays = horizon + 1 - np.arange(1, horizon + 1)
    seen = arrivals(Conversions, True, np.ones(horizon), delays, np.zeros(horizon, int), horizon)
    assert seen.rewards[-1, 0] == horizon
