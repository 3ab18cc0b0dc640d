"""Where the runs of a batch lie in memory."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit._layout import FEWEST_ARMS, MOST_ARMS
from jaxbandit.engine.run import rollout
from tests.examples import OF_EACH_KIND, POLICIES, each


def instance(num_arms: int) -> jb.Instance:
    return jb.Instance(jb.Bernoulli(jnp.linspace(0.2, 0.8, num_arms)), jb.Pareto(0.5))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the hint is for CPUs")
@pytest.mark.parametrize("num_arms", [FEWEST_ARMS - 1, FEWEST_ARMS, 10, MOST_ARMS, MOST_ARMS + 1])
def test_between_the_bounds_the_pulls_of_a_batch_are_carried_arm_by_arm(num_arms):
    rounds = jnp.array([20, 40], jnp.int32)

    def batch(keys):
        return jax.vmap(lambda key: rollout(key, instance(num_arms), jb.UCB1(), rounds, horizon=40))(keys)

    text = jax.jit(batch).lower(jnp.zeros((8, 2), jnp.uint32)).compile().as_text()
    loops = re.findall(r"= \(([^()]*)\) while\(", text)
    arm_by_arm, run_by_run = (f"s32[8,{num_arms}]{order}" for order in ("{0,1}", "{1,0}"))
    expected = arm_by_arm if FEWEST_ARMS <= num_arms <= MOST_ARMS else run_by_run
    assert any(expected in carried for carried in loops)


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_the_hint_changes_no_number(policy):
    keys = jax.random.split(jax.random.key(3), 3)

    def run(key):
        return jb.simulate(key, instance(7), policy, horizon=50)

    together = jax.vmap(run)(keys)
    for i in range(3):
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], together), run(keys[i]))


def test_nor_in_a_grid_of_runs():
    keys = jax.random.split(jax.random.key(3), 3)

    def run(key):
        return jb.simulate(key, instance(7), jb.Thompson(), horizon=50)

    np.testing.assert_array_equal(jax.vmap(jax.vmap(run))(keys[None]).pulls[0], jax.vmap(run)(keys).pulls)
