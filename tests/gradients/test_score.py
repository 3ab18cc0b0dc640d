"""The score is unbiased: proved path by path, without sampling, against an enumeration of all that can happen."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from jaxbandit.gradients import score
from tests.gradients import enumeration
from tests.gradients.enumeration import Parameters

HARD = Parameters(np.array([0.4, 0.7]), np.array([1.0, 0.4]), 0.2, 0.5, 0.3, None)
SOFT = HARD._replace(temperature=0.3)
BASELINE = (0.3, -1.0, 0.2, 0.7, 0.05, -0.4, 2.0)  # any numbers will do


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def problem(p: Parameters, law=jb.Pareto) -> tuple[jb.Instance, jb.Policy]:
    patient = jb.PatientBandits(p.alpha, bonus_scale=p.bonus_scale, bias_scale=p.bias_scale)
    policy = jb.Softmax(patient, p.temperature) if p.temperature is not None else patient
    return jb.Instance(jb.Bernoulli(p.mean), law(p.tail)), policy


def differentiable(p: Parameters) -> Parameters:
    """Of a policy that plays the best score, only the instance."""
    last = None if p.temperature is not None else 2
    return p._replace(**{name: jnp.asarray(getattr(p, name), float) for name in p._fields[:last]})


def of_all_paths(p: Parameters, paths: enumeration.Paths, weights: np.ndarray, law=jb.Pareto) -> jax.Array:
    """The package's surrogate of every path, weighted by its probability."""
    instance, policy = problem(p, law)
    horizon = paths.arms.shape[1]
    runs = score.Trajectory(
        arms=jnp.asarray(paths.arms, jnp.int32),
        rewards=jnp.asarray(paths.ages > 0, float),
        delays=jnp.asarray(np.where(paths.ages > 0, paths.ages, jb.NEVER), jnp.int32),
    )
    of_path = partial(score.surrogate, instance, policy, baseline=jnp.array(BASELINE[:horizon]), key=tape.words(0))
    return jnp.sum(weights * jax.vmap(of_path)(runs))


def split(p: Parameters) -> tuple[list[str], list[jax.Array]]:
    names = [name for name in p._fields if isinstance(getattr(p, name), jax.Array)]
    return names, [getattr(p, name) for name in names]


def errors(horizon: int, p: Parameters, law=jb.Pareto, family="pareto", order=1) -> float:
    """The largest difference between a derivative of the surrogate and that of the enumerated regret."""
    paths = enumeration.follow(horizon, p)
    p = differentiable(p)
    names, values = split(p)

    def exact(values):
        return enumeration.expected_regret(paths, p._replace(**dict(zip(names, values, strict=True))), family)

    def ours(values, weights):
        return of_all_paths(p._replace(**dict(zip(names, values, strict=True))), paths, weights, law)

    @jax.jit
    def both(values):
        weights = jax.lax.stop_gradient(enumeration.probabilities(paths, p, family))
        derivative = jax.grad if order == 1 else jax.hessian
        first, second = (f(values) for f in (exact, partial(ours, weights=weights)))
        return weights, (first, derivative(exact)(values)), (second, derivative(ours)(values, weights))

    weights, expected, actual = both(values)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
    return max(float(np.abs(x - y).max()) for x, y in zip(*map(jax.tree.leaves, (expected, actual)), strict=True))


@pytest.mark.parametrize(
    ("p", "horizon"),
    [
        pytest.param(HARD, 6, id="hard-6"),
        pytest.param(HARD, 7, id="hard-7", marks=pytest.mark.slow),
        pytest.param(SOFT, 4, id="softmax-4"),
        pytest.param(SOFT, 6, id="softmax-6", marks=pytest.mark.slow),
    ],
)
def test_the_gradient_is_that_of_the_enumerated_regret(p, horizon):
    """For means, tail indexes and, of a softmax, both scales, alpha and the temperature."""
    assert errors(horizon, p) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("p", [HARD, SOFT], ids=["hard", "softmax"])
def test_the_hessian_is_that_of_the_enumerated_regret(p):
    assert errors(4, p, order=2) < 1e-9


@pytest.mark.slow
def test_the_gradient_is_exact_for_geometric_delays_too():
    """Which may be 0: then a reward is seen in the next round, like one of delay 1."""
    p = HARD._replace(tail=np.array([0.5, 3.0]))
    assert errors(5, p, jb.Geometric, "geometric") < 1e-10
    assert errors(4, p._replace(temperature=0.3), jb.Geometric, "geometric") < 1e-10


class OffByOne(jb.Pareto):
    """Survival and probabilities of the age before."""

    def cdf(self, x):
        return super().cdf(x + 1)

    def survival(self, x):
        return super().survival(x + 1)


class Continuous(jb.Pareto):
    """The density of the time before it is rounded up, in the place of the probability of a delay."""

    def log_prob(self, x):
        return jnp.log(self.tail_index) - (self.tail_index + 1) * jnp.log(jnp.asarray(x, float))


@pytest.mark.parametrize("mutant", [OffByOne, Continuous])
def test_the_proof_finds_a_wrong_probability(mutant):
    assert errors(5, HARD, mutant) > 1e-3


def test_the_proof_finds_a_wrong_choice_probability(monkeypatch):
    """One that forgets that all of them sum to one."""

    def log_prob(self, state, t, key, arm):
        score = self.policy.scores(state, t, key)[arm]
        return jnp.where(jnp.isfinite(score), score, 0) / self.temperature

    monkeypatch.setattr(jb.Softmax, "log_prob", log_prob)
    assert errors(3, SOFT) > 1e-3


# What is seen of a pull.


@pytest.mark.parametrize(
    "make",
    [lambda: jb.Pareto([0.3, 1.0]), lambda: jb.Geometric([0.0, 3.0]), lambda: jb.Lossy(jb.NoDelay(2), 0.3)],
    ids=["Pareto", "Geometric", "Lossy"],
)
def test_the_probabilities_of_what_can_be_seen_of_a_pull_sum_to_one(make):
    """Of the first pull of a run: its reward after 1..T - 1 rounds, or nothing."""
    horizon, delay = 8, make()
    instance = jb.Instance(jb.Bernoulli([0.4, 0.7]), delay)
    ages = jnp.arange(horizon, dtype=jnp.int32)

    def first(age, arm):
        delays = jnp.full(horizon, jb.NEVER, jnp.int32).at[0].set(jnp.where(age > 0, age, jb.NEVER))
        run = score.Trajectory(jnp.full(horizon, arm, jnp.int32), (delays < jb.NEVER).astype(float), delays)
        return score.log_likelihood(instance, jb.Conversions, run)[0]

    probability = jax.jit(jax.vmap(first, (0, None)))
    arrived = np.broadcast_to(jax.jit(jax.vmap(delay.cdf))(ages), (horizon, 2))
    for arm in range(2):
        values, cdf = np.exp(probability(ages, arm)), arrived[:, arm]
        possible = np.append([True, cdf[1] > 0], np.diff(cdf[1:]) > 0)
        assert values[possible].sum() == pytest.approx(1, abs=1e-12)


MEANS = (1e-6, 0.3, 1 - 1e-6)
TAIL_INDEXES = (0.02, 0.3, 1.0, 5.0)
AGES = (2, 3, 30, 3000, 10**6)


@pytest.mark.parametrize("function", [score.log_arrival, partial(score.log_silence, feedback=False)])
def test_scores_in_single_precision_are_those_of_long_doubles(function):
    """For means next to 0 and 1, heavy and light tails, great ages; derivatives by hand in NumPy."""
    grid = np.stack(np.meshgrid(MEANS, TAIL_INDEXES, AGES, indexing="ij"), axis=-1).reshape(-1, 3)

    def log_prob(mean, tail_index, age):
        return function(jb.Instance(jb.Bernoulli(mean[None]), jb.Pareto(tail_index[None])), age)[0]

    with jax.enable_x64(False):
        numbers = jnp.asarray(grid[:, 0], jnp.float32), jnp.asarray(grid[:, 1], jnp.float32)
        rough = jax.jit(jax.vmap(jax.grad(log_prob, argnums=(0, 1))))(*numbers, jnp.asarray(grid[:, 2], jnp.int32))
    p, a = (np.asarray(x, np.longdouble) for x in numbers)
    m = grid[:, 2].astype(np.longdouble)
    if function is score.log_arrival:
        step = -np.log1p(-1 / m)
        exact = np.zeros_like(p), -np.log(m - 1) + step / np.expm1(a * step)
    else:
        tail = np.exp(-a * np.log(m))
        rest = (1 - p) + p * tail
        exact = np.expm1(-a * np.log(m)) / rest, -p * tail * np.log(m) / rest
    for ours, reference in zip(rough, exact, strict=True):
        np.testing.assert_allclose(np.asarray(ours, float), reference.astype(float), rtol=1e-4, atol=1e-12)
