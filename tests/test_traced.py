"""A traced value that would be refused before tracing ends in NaN: never in a number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

SLOW = pytest.mark.slow
REWARD, DELAY, POLICY = jb.Bernoulli([0.4, 0.7]), jb.Pareto([1.0, 0.4]), jb.PatientBandits(0.3)


def of_reward(make):
    return lambda x: (jb.Instance(make(x), DELAY), POLICY)


def of_delay(make):
    return lambda x: (jb.Instance(REWARD, make(x)), POLICY)


def of_policy(make):
    return lambda x: (jb.Instance(REWARD, DELAY), make(x))


FLOATS = {
    "Bernoulli": (of_reward(lambda x: jb.Bernoulli([0.4, x])), 0.7, 1.7),
    "Deterministic": (of_reward(lambda x: jb.Deterministic([0.4, x])), 0.7, -0.1),
    "Discrete values": (of_reward(lambda x: jb.Discrete([0.0, x], [[0.5, 0.5], [0.2, 0.8]])), 0.9, 1.2),
    "Discrete order": (of_reward(lambda x: jb.Discrete([0.5, x], [[0.5, 0.5], [0.2, 0.8]])), 0.9, 0.1),
    "Discrete sum": (of_reward(lambda x: jb.Discrete([0.5, 0.7], [[0.5, 0.5], [0.2, x]])), 0.8, 0.7),
    "TruncatedNormal": (of_reward(lambda x: jb.TruncatedNormal([0.4, 0.7], x)), 0.5, -0.5),
    "TruncatedNormal far": (of_reward(lambda x: jb.TruncatedNormal([0.4, x], 0.1)), 0.5, 3.0),
    "Pareto": (of_delay(lambda x: jb.Pareto([1.0, x])), 0.4, -0.4),
    "Pareto NaN": (of_delay(lambda x: jb.Pareto([1.0, x])), 0.4, np.nan),
    "Geometric": (of_delay(lambda x: jb.Geometric([1.0, x])), 4.0, -4.0),
    "LogNormal": (of_delay(lambda x: jb.LogNormal([1.0, x], 1.0)), 3.0, -3.0),
    "Weibull": (of_delay(lambda x: jb.Weibull([1.0, 2.0], x)), 0.5, 0.0),
    "Empirical": (of_delay(lambda x: jb.Empirical([0, 9], [[0.5, 0.5], [0.2, x]])), 0.8, 0.9),
    "Lossy": (of_delay(lambda x: jb.Lossy(DELAY, x)), 0.2, 1.1),
    "Mixture": (of_delay(lambda x: jb.Mixture([DELAY, jb.NoDelay()], [0.2, x])), 0.8, 0.9),
    "PerArm": (of_delay(lambda x: jb.PerArm([jb.NoDelay(), jb.Pareto(x)])), 0.4, 0.0),
    "PatientBandits": (of_policy(lambda x: jb.PatientBandits(0.3, bonus_scale=x)), 0.5, -0.5),
    "AdaptPatientBandits": (of_policy(lambda x: jb.AdaptPatientBandits(x, 0.4, 0.1)), 0.5, 1.5),
    "DUCB": (of_policy(lambda x: jb.DUCB(5, jb.Pareto(x))), 0.5, -0.5),
    "Softmax": (of_policy(lambda x: jb.Softmax(POLICY, x)), 0.5, 0.0),
}
INTEGERS = {
    "Constant": (of_delay(lambda x: jb.Constant(jnp.stack([0 * x, x]))), 4, -4),
    "DiscreteUniform": (of_delay(lambda x: jb.DiscreteUniform(x, 9)), 4, -4),
    "DiscreteUniform order": (of_delay(lambda x: jb.DiscreteUniform(4, x)), 9, 2),
    "Empirical delays": (of_delay(lambda x: jb.Empirical([0, x], [0.5, 0.5])), 4, -4),
    "DUCB window": (of_policy(lambda x: jb.DUCB(x, jb.Pareto(0.5))), 4, 0),
    "Discarding": (of_policy(jb.Discarding), 4, -1),
}

QUICK = {
    *("Bernoulli", "Discrete sum", "TruncatedNormal", "Pareto", "Pareto NaN", "Lossy", "PerArm"),
    *("PatientBandits", "DUCB", "Softmax", "Constant", "DUCB window"),
}
"""One of each kind of check and of each kind of place; each case is a program of its own to compile."""


def cases() -> list:
    found = FLOATS | INTEGERS
    assert found.keys() >= QUICK
    return [pytest.param(found[name], id=name, marks=[] if name in QUICK else SLOW) for name in found]


@pytest.mark.parametrize("case", cases())
def test_the_regret_is_nan_where_a_traced_value_is_out_of_its_range(case):
    build, good, bad = case

    def regret(x):
        return jb.simulate(0, *build(x), horizon=20, checkpoints=[1, 20]).regret

    together = np.asarray(jax.jit(jax.vmap(regret))(jnp.asarray([good, bad, good])))
    np.testing.assert_array_equal(np.isnan(together), [[False] * 2, [True] * 2, [False] * 2])
    np.testing.assert_array_equal(together[0], regret(good))
    if not np.isnan(bad):
        with pytest.raises(ValueError, match="must"):
            build(bad)


@pytest.mark.parametrize(
    "name", ["Bernoulli", "PatientBandits", *(pytest.param(x, marks=SLOW) for x in ("Pareto", "Softmax"))]
)
def test_a_derivative_is_nan_where_a_traced_value_is_out_of_its_range(name):
    build, good, bad = FLOATS[name]

    def regret(x):
        return jb.expected_regret(*build(x), 0, horizon=10, seeds=4)

    both = jax.jit(jax.value_and_grad(regret))
    assert np.isfinite(both(good)).all()
    assert np.isnan(both(bad)).all()


@pytest.mark.parametrize("estimator", ["score", pytest.param("crn", marks=SLOW), "relaxed"])
def test_no_estimator_hides_a_bad_value(estimator):
    def regret(mean):
        instance = jb.Instance(jb.Bernoulli(jnp.stack([jnp.asarray(0.4), mean])), DELAY)
        policy = jb.Softmax(POLICY, 0.3)
        return jb.expected_regret(instance, policy, 0, horizon=10, seeds=4, estimator=estimator)

    both = jax.jit(jax.value_and_grad(regret))
    assert np.isfinite(both(0.7)).all()
    assert np.isnan(both(1.7)).all()


def test_a_table_with_a_bad_traced_number_pulls_no_arm():
    def arms(reward, delay):
        rewards, delays = jnp.full((5, 2), 0.5).at[0, 1].set(reward), jnp.zeros((5, 2), jnp.int32).at[1, 0].set(delay)
        return jb.replay(rewards, delays, jb.UCB1()).arms

    for reward, delay, good in ((0.3, 2, True), (1.3, 2, False), (0.3, -2, False)):
        assert (np.asarray(jax.jit(arms)(reward, delay)) < 2).all() == good


def test_a_law_made_under_vmap_from_a_bad_number_is_named_when_it_is_used():
    delay = jax.tree.map(lambda x: x[0], jax.vmap(jb.Pareto)(jnp.array([[1.0, -0.4]])))
    for call in (jb.simulate, lambda *args, **options: jb.simulate_batch(*args, seeds=3, **options)):
        with pytest.raises(ValueError, match=r"instance\.delay\.tail_index is NaN, or was made under jit or vmap"):
            call(0, jb.Instance(REWARD, delay), POLICY, horizon=10)


class Own(jb.Bernoulli):
    """A law of one's own, whose means nothing has checked."""

    def __init__(self, mean):
        self.mean = jnp.asarray(mean)


def test_means_outside_0_to_1_of_a_law_of_ones_own_are_refused():
    with pytest.raises(ValueError, match=r"Instance: the means of reward must lie in \[0, 1\]"):
        jb.Instance(Own([-1.0, 5.0]), DELAY)

    def regret(mean):
        instance = jb.Instance(Own(jnp.stack([jnp.asarray(0.4), mean])), DELAY)
        return jb.simulate(0, instance, POLICY, horizon=20).regret

    assert np.isfinite(jax.jit(regret)(0.7)).all()
    assert np.isnan(jax.jit(regret)(1.7)).all()
