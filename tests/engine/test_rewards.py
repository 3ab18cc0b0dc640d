"""What a run earns: seen, still to come, lost."""

import math
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import run as run_module
from jaxbandit.engine.ledger import PLACES, Ledger, rewards_of
from jaxbandit.policies.observations import Pull
from tests.examples import REWARDS, each, instance

HORIZON = 70
DELAY = jb.Lossy(jb.Pareto([0.3, 1.0, 2.5]), [0.3, 0.0, 0.1])


def by_hand(trace: jb.Trace, t: int) -> tuple[Fraction, Fraction, Fraction]:
    """Straight from the definitions, in exact arithmetic; every reward rounded down to a multiple of 2^-31."""
    seen = pending = lost = Fraction(0)
    for s, (reward, delay) in enumerate(zip(trace.rewards.tolist(), trace.delays.tolist(), strict=True), start=1):
        reward = Fraction(math.floor(Fraction(reward) * 2**31), 2**31)
        if s <= t:
            if delay >= jb.NEVER:
                lost += reward
            elif s + max(delay, 1) <= t:
                seen += reward
            else:
                pending += reward
    return seen, pending, lost


@each(REWARDS, "reward")
def test_rewards_are_seen_pending_or_lost(reward):
    of, rounds = jb.Instance(reward, DELAY), [1, 2, 13, 69, 70]
    run = jb.simulate(4, of, jb.UCB1(), horizon=HORIZON, checkpoints=rounds, rewards=True)
    trace = jax.device_get(jb.trace(4, of, jb.UCB1(), horizon=HORIZON))
    assert run.rewards is not None
    for c, t in enumerate(rounds):
        for found, expected in zip(run.rewards, by_hand(trace, t), strict=True):
            if of.reward.binary:
                assert found.dtype == jnp.int32
                assert int(found[c]) == expected
            else:
                assert found.dtype == jnp.result_type(float)
                np.testing.assert_allclose(float(found[c]), float(expected), rtol=4 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("policy", [jb.DUCB(20, jb.Pareto(0.7)), jb.DelayedUCB1()], ids=["ducb", "delayed"])
def test_asking_for_rewards_changes_nothing_else(policy):
    options = {"horizon": HORIZON, "seeds": 3}
    plain = jb.simulate_batch(1, instance(), policy, **options)
    asked = jb.simulate_batch(1, instance(), policy, rewards=True, **options)
    assert plain.rewards is None
    jax.tree.map(np.testing.assert_array_equal, plain, asked._replace(rewards=None))


def test_what_a_policy_censors_is_earned_all_the_same():
    of = jb.Instance(jb.Deterministic([1.0, 1.0]), jb.Constant([30, 30]))
    run = jb.simulate(0, of, jb.Discarding(window=5), horizon=50, checkpoints=[50], rewards=True)
    assert run.rewards == jb.Rewards(seen=20.0, pending=30.0, lost=0.0)


def test_run_i_of_a_batch_earns_what_it_earns_alone():
    batch = jb.simulate_batch(3, instance(), jb.UCB1(), horizon=HORIZON, seeds=5, rewards=True, chunk=2)
    alone = jb.simulate(jax.random.fold_in(jax.random.key(3), 4), instance(), jb.UCB1(), horizon=HORIZON, rewards=True)
    assert batch.rewards is not None
    assert batch.rewards.seen.shape == batch.regret.shape
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[4], y), batch.rewards, alone.rewards)


def test_rewards_work_under_jit_and_vmap():
    def earned(key):
        return jb.simulate(key, instance(), jb.UCB1(), horizon=HORIZON, rewards=True).rewards

    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.jit(jax.vmap(earned))(keys)
    for i in range(3):
        jax.tree.map(lambda x, y, i=i: np.testing.assert_array_equal(x[i], y), together, earned(keys[i]))


def test_digits_add_up_where_a_float32_does_not():
    """A million rewards of 0.9 that arrive at once: a plain float32 sum of them is off by almost 1 %."""
    horizon = 10**6
    delays = horizon - jnp.arange(1, horizon + 1, dtype=jnp.int32)

    def step(ledger, now):
        t, delay = now
        return ledger.add(t, Pull(jnp.int32(0), jnp.asarray(0.9, jnp.float32), delay)), None

    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    ledger, _ = jax.lax.scan(step, Ledger.empty(horizon, binary=False), (rounds, delays))
    seen, pending, lost = rewards_of(tuple(x[None] for x in ledger.sums()), binary=False)
    np.testing.assert_allclose(seen[0], (horizon - 1) * float(np.float32(0.9)), rtol=1e-7)
    np.testing.assert_allclose(pending[0], 0.9, rtol=1e-6)  # the last is pulled in the round in which the others come
    assert lost[0] == 0


def test_the_digits_of_the_longest_run_fit_32_bits():
    steps = np.diff([0, *PLACES])
    assert 2**24 * 2 ** int(steps[0]) < 2**32  # a reward of 1
    assert all(2**24 * (2 ** int(step) - 1) < 2**32 for step in steps[1:])


@pytest.mark.parametrize("reward", ["Bernoulli", "TruncatedNormal"])
def test_no_round_copies_the_ledger(reward):
    horizon, lanes = 10_000, 8
    of, rounds = jb.Instance(REWARDS[reward], DELAY), jnp.array([100, horizon], jnp.int32)

    def batch(keys):
        return jax.vmap(lambda key: run_module.rollout(key, of, jb.UCB1(), rounds, horizon=horizon, rewards=True))(keys)

    text = jax.jit(batch).lower(jnp.zeros((lanes, 2), jnp.uint32)).compile().as_text()
    assert re.search(rf"u32\[{lanes},{horizon + 2}[,\]]", text)
    loops = [part for part in text.split("\n\n") if "ENTRY" not in part]
    copied = [shape.split(",") for part in loops for shape in re.findall(r"= \w+\[([\d,]+)\]\S* copy\(", part)]
    assert all(math.prod(map(int, shape)) < lanes * horizon for shape in copied)
