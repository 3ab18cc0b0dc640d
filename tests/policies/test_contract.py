"""A policy that is stepped by hand says what it was given wrongly, and a traced step does not pay for that."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine.pending import Pending
from tests.examples import BY_ARM, NUM_ARMS, POLICIES, each, refused

HORIZON = 40
ALL = POLICIES | BY_ARM
ROUND, ARM = jnp.int32(1), jnp.int32(0)


def nothing_seen(policy):
    return Pending.empty(policy, HORIZON, NUM_ARMS, False).arriving(policy.observes, ROUND)


@each(ALL, "policy")
def test_what_is_not_of_the_contract_gets_one_error_that_names_it(policy):
    name = type(policy).__name__
    state, key, seen = policy.init(NUM_ARMS, HORIZON), jax.random.key(0), nothing_seen(policy)
    for t in (1, 1.0, jnp.float32(1), jnp.ones(2, jnp.int32), None):
        with refused(TypeError, rf"^{name}\.scores: t must be an int32 scalar, got .*; use jnp.int32\(t\)"):
            policy.scores(state, t, key)
        with refused(TypeError, rf"^{name}\.update: t must be"):
            policy.update(state, t, ARM, seen)
        with refused(TypeError, rf"^{name}\.update: arm must be .*; use jnp.int32\(arm\)"):
            policy.update(state, ROUND, t, seen)
    with refused(TypeError, rf"^{name}\.wait: delay must be an int32 scalar, got 3 \(int\)"):
        policy.wait(3)
    with refused(TypeError, rf"^{name}\.init: num_arms must be an integer, got 2.5"):
        policy.init(2.5, HORIZON)
    with refused(ValueError, rf"^{name}\.init: horizon must be an integer from 1 to .*, got 0"):
        policy.init(NUM_ARMS, 0)


@each(ALL, "policy")
def test_an_observation_is_of_the_kind_that_the_policy_observes_and_holds_arrays(policy):
    name, kind = type(policy).__name__, policy.observes.__name__
    state, seen = policy.init(NUM_ARMS, HORIZON), nothing_seen(policy)
    other = jb.Feedback if policy.observes is jb.Anonymous else jb.Anonymous
    for wrong in ([0.0] * NUM_ARMS, jnp.zeros(NUM_ARMS), None, other(*[jnp.zeros(())] * len(other._fields))):
        with refused(TypeError, rf"^{name}\.update: observation must be a jaxbandit\.{kind}\("):
            policy.update(state, ROUND, ARM, wrong)
    field = seen._fields[0]
    for wrong in ([0.0] * NUM_ARMS, 0.0, jnp.zeros((2, NUM_ARMS)), np.array(["a"])):
        with refused(TypeError, rf"^{name}\.update: observation\.{field} must be an array .*use jnp.asarray"):
            policy.update(state, ROUND, ARM, seen._replace(**{field: wrong}))


@pytest.mark.skipif(jax.config.jax_numpy_dtype_promotion == "strict", reason="annotations name JAX's arrays alone")
@each({name: POLICIES[name] for name in ("UCB1", "Softmax", "ODAAF")}, "policy")
def test_numbers_of_numpy_are_arrays_too(policy):
    state, seen = policy.init(NUM_ARMS, HORIZON), jax.tree.map(np.asarray, nothing_seen(policy))
    after = policy.update(state, np.int32(1), np.int32(0), seen)
    expected = policy.update(state, ROUND, ARM, nothing_seen(policy))
    jax.tree.map(np.testing.assert_array_equal, after, expected)


def test_a_policy_of_one_s_own_is_checked_too_and_its_traced_step_holds_no_check():
    class Own(jb.Policy):
        def init(self, num_arms, horizon):
            return jnp.zeros(num_arms)

        def scores(self, state, t, key):
            return state

        def update(self, state, t, arm, observation):
            return state + observation.rewards

    state = Own().init(NUM_ARMS, HORIZON)
    with pytest.raises(TypeError, match=r"Own\.update: arm must be an int32 scalar, got 1 \(int\)"):
        Own().update(state, ROUND, 1, jb.Conversions(state))
    step = jax.make_jaxpr(lambda state, t, arm: Own().update(state, t, arm, jb.Conversions(state)))(state, ROUND, ARM)
    assert [equation.primitive.name for equation in step.jaxpr.eqns] == ["add"]
