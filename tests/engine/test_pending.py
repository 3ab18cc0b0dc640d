"""The calendar of rewards in flight."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._arms import one_hot
from jaxbandit.engine.pending import Pending
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback, Pull


class Looking(jb.Policy):
    """Sees what it is told to; looks back over 7 rounds, half its pulls, and one more than a tenth of them."""

    observes: type = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]

    def init(self, num_arms, horizon):
        return jnp.zeros(num_arms)

    def scores(self, state, t, key):
        return state

    def update(self, state, t, arm, observation):
        return state

    def windows(self, pulls):
        return jnp.stack([jnp.full_like(pulls, 7), jnp.maximum(pulls // 2, 1), 1 + pulls // 10])


def arrivals(observes, binary: bool, rewards, delays, arms, horizon: int, policy=None):
    """What is observed at the start of rounds 2..T+1."""
    policy = policy or Looking(observes)
    pending = Pending.empty(policy, horizon, 3, binary)

    def step(carry, pull_t):
        pending, pulls = carry
        t, pull = pull_t
        pulls = pulls + one_hot(pull.arm, 3)
        pending = pending.add(policy, t, pull, pulls)
        return (pending, pulls), pending.arriving(observes, t + 1)

    t = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    pulls = Pull(jnp.asarray(arms, jnp.int32), jnp.asarray(rewards, float), jnp.asarray(delays, jnp.int32))
    return jax.lax.scan(step, (pending, jnp.zeros(3, jnp.int32)), (t, pulls))[1]


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


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("tail_index", [0.3, 1.0, np.inf])
def test_the_sums_over_old_pulls_are_the_literal_ones_in_every_round(binary, tail_index):
    horizon, rng = 200, np.random.default_rng(2)
    arms = rng.integers(0, 3, horizon)
    rewards = rng.integers(0, 2, horizon) * (1.0 if binary else rng.uniform(size=horizon))
    delays = np.minimum(np.floor(rng.uniform(size=horizon) ** (-1 / tail_index)) - 1, jb.NEVER).astype(np.int64)
    old = arrivals(ConversionsByPull, binary, rewards, delays, arms, horizon).old
    s = np.arange(1, horizon + 1)
    for t in range(2, horizon + 2):
        for arm in range(3):
            mine = arms == arm
            pulls = np.sum(mine[: t - 1])
            for i, w in enumerate((7, max(pulls // 2, 1), 1 + pulls // 10)):
                ripe = mine & (s <= t - w)
                assert old.pulls[t - 2, i, arm] == ripe.sum()
                expected = (rewards * (delays <= w))[ripe].sum()
                np.testing.assert_allclose(old.rewards[t - 2, i, arm], expected, rtol=1e-6)


class Leaping(Looking):
    """Its windows shrink, grow by two, or are longer than half the horizon."""

    how: str = eqx.field(static=True)

    def windows(self, pulls):
        return {"shrinks": 9 - pulls, "leaps": 1 + 2 * pulls, "long": jnp.full_like(pulls, 12)}[self.how][None]


@pytest.mark.parametrize("how", ["shrinks", "leaps", "long"])
def test_windows_that_cannot_be_looked_back_over_give_nan(how):
    policy = Leaping(ConversionsByPull, how)
    seen = arrivals(ConversionsByPull, True, np.ones(20), np.zeros(20, int), np.zeros(20, int), 20, policy)
    assert np.isnan(np.asarray(seen.old.rewards)[5:, 0, 0]).all()


def test_counts_are_kept_in_the_smallest_integers_that_hold_them():
    assert Pending.empty(jb.UCB1(), 65_535, 2, True).rewards.dtype == jnp.uint16
    assert jax.eval_shape(lambda: Pending.empty(jb.UCB1(), 65_536, 2, True)).rewards.dtype == jnp.uint32
    assert Pending.empty(jb.UCB1(), 10, 2, False).rewards.dtype == jnp.result_type(float)


def test_as_many_rewards_as_rounds_may_arrive_at_once():
    horizon = 65_535
    delays = horizon + 1 - np.arange(1, horizon + 1)
    seen = arrivals(Conversions, True, np.ones(horizon), delays, np.zeros(horizon, int), horizon)
    assert seen.rewards[-1, 0] == horizon
