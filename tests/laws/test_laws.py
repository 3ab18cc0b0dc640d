"""What holds for every public law, found from ``__all__``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from tests.examples import DELAYS, NUM_ARMS, REWARDS, each, public, refused

DRAWS = 40_000
POINTS = (0, 1, 2, 3, 5, 10, 40, 200, 3000, 10**6)


def draws(law, arm: int, count: int = DRAWS) -> np.ndarray:
    """Draws for one arm at a fixed key, as the simulator makes them."""
    sample = law.sampler()

    def draw(n):
        return sample(tape.uniforms(tape.words(7), jnp.int32(arm), n)[1], jnp.int32(arm))

    return np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(count, dtype=jnp.int32)))


def arms(values, arm: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(values, float), (NUM_ARMS,))[arm]


def at(function, points) -> np.ndarray:
    """``function`` at each of the points, in double precision: [points, arms]."""
    values = np.asarray(jax.vmap(function)(jnp.asarray(points)), float)
    return np.broadcast_to(values.reshape(len(points), -1), (len(points), NUM_ARMS))


def by_arm(law, x) -> np.ndarray:
    """``P(D > x)`` with one x an arm."""
    values = np.asarray(law.survival(x), float)
    return np.diagonal(values) if law.batch_shape else values


def cast(law, dtype):
    """``law`` with its floats in another precision."""
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, law)


def test_every_public_law_has_an_example():
    assert public(jb.RewardLaw) == set(REWARDS)
    assert public(jb.DelayLaw) == set(DELAYS)


def within_5_sigma(hits: np.ndarray, probability: float) -> bool:
    """Whether the share of hits is that of a coin, by its own standard error (at least that of one hit)."""
    n = len(hits)
    error = np.sqrt(max(probability * (1 - probability), 1 / n) / n)
    return abs(hits.mean() - probability) <= 5 * error


@each(DELAYS, "law")
@pytest.mark.parametrize("arm", range(NUM_ARMS))
def test_delays_are_drawn_from_their_survival_function(law, arm):
    sample = draws(law, arm)
    assert sample.dtype == np.int32
    assert sample.min() >= 0
    for m in POINTS:
        assert within_5_sigma(sample > m, float(arms(law.survival(m), arm))), m


@each(REWARDS, "law")
@pytest.mark.parametrize("arm", range(NUM_ARMS))
def test_rewards_are_drawn_from_their_survival_function(law, arm):
    sample = draws(law, arm)
    assert sample.min() >= 0
    assert sample.max() <= 1
    for x in np.linspace(0, 0.99, 12, dtype=np.float32):
        assert within_5_sigma(sample > x, float(arms(law.survival(x), arm))), x
    mean, error = sample.mean(dtype=float), max(sample.std(dtype=float), 1e-6) / np.sqrt(DRAWS)
    assert abs(mean - arms(law.mean, arm)) <= 5 * error


@each(DELAYS, "law")
def test_the_inverse_survival_function_inverts(law):
    """``isf(u)`` is the least m with P(D > m) < u, down to u = 10^-9, but for the rounding of the floats."""
    for u in (1.0, 0.9, 0.37, 1e-2, 1e-4, 1e-7, 1e-9):
        m = np.broadcast_to(np.asarray(law.isf(jnp.asarray(u))), (NUM_ARMS,))
        finite = m < jb.NEVER
        at = np.broadcast_to(by_arm(law, m), (NUM_ARMS,))
        before = np.broadcast_to(by_arm(law, np.maximum(m - 1, 0)), (NUM_ARMS,))
        assert (at[finite] <= u * (1 + 1e-4)).all()
        assert ((before >= u * (1 - 1e-4)) | (m == 0))[finite].all()


@pytest.mark.slow
@each(DELAYS, "law")
@pytest.mark.parametrize("arm", range(NUM_ARMS))
def test_tails_down_to_1e_7_are_resolved(law, arm):
    """P(D > m) is the share of the simulator's words whose delay exceeds m, for m deep in the tail."""
    words = np.unique(np.geomspace(1, 2**32 - 1, 4001).astype(np.uint64)).astype(np.uint32)
    u = tape.to_uniform(jnp.asarray(words))
    delay = np.asarray(jax.vmap(law.sampler(), in_axes=(0, None))(u, jnp.int32(arm)))
    part = law.laws[arm] if isinstance(law, jb.PerArm) else law
    lost = float(arms(part.loss, arm)) if isinstance(part, jb.Lossy) else 0.0
    delay = np.where(np.asarray(u, float) > 1 - lost, -1, delay)  # Lossy draws its losses from large words
    for m in (10, 100, 1000, 10**4, 10**5, 10**6):
        tail = float(arms(law.survival(m), arm)) - lost
        if tail > 1e-7:
            beyond = u[delay > m]
            share = float(beyond.max()) if len(beyond) else 0.0
            assert share == pytest.approx(tail, rel=0.03), m  # the words are 0.6 % apart


@each(REWARDS | DELAYS, "law")
@pytest.mark.parametrize("arm", range(NUM_ARMS))
def test_draws_are_the_inverse_survival_function(law, arm):
    """``sampler`` is ``isf`` computed for one arm, but for Lossy, which keeps its precision for what arrives."""
    if isinstance(law.laws[arm] if isinstance(law, jb.PerArm) else law, jb.Lossy):
        pytest.skip("draws losses from the other end")
    u = jnp.linspace(1e-6, 1, 997)
    drawn = jax.vmap(law.sampler(), in_axes=(0, None))(u, jnp.int32(arm))
    direct = jax.vmap(lambda u: jnp.broadcast_to(law.isf(u), (NUM_ARMS,))[arm])(u)
    np.testing.assert_array_equal(drawn, direct)


@each(DELAYS, "law")
def test_probabilities_of_delays_are_differences_of_the_survival_function(law):
    with jax.enable_x64(True):
        law = cast(law, float)
        for m in (0, 1, 2, 3, 7, 30, 500):
            at, before = law.survival(m), law.survival(m - 1)
            direct = np.broadcast_to(np.asarray(before - at), (NUM_ARMS,))
            np.testing.assert_allclose(np.exp(np.broadcast_to(law.log_prob(m), (NUM_ARMS,))), direct, atol=1e-12)


@each(DELAYS, "law")
def test_probabilities_of_delays_sum_to_one(law):
    total = np.exp(at(law.log_prob, np.arange(5000))).sum(axis=0)
    np.testing.assert_allclose(total + np.broadcast_to(np.asarray(law.survival(4999)), (NUM_ARMS,)), 1, atol=3e-5)
    assert np.isneginf(np.broadcast_to(law.log_prob(-1), (NUM_ARMS,))).all()


@pytest.mark.slow
@each(DELAYS, "law")
def test_log_probabilities_are_stable_up_to_age_1e6(law):
    """In float32, against the same formulas in double precision."""
    ages = np.array([2, 3, 17, 300, 5000, 10**5, 10**6])
    with jax.enable_x64(False):
        single = cast(law, jnp.float32)
        rough = at(single.log_prob, ages)
    with jax.enable_x64(True):
        double = cast(single, float)
        exact = at(double.log_prob, ages)
    np.testing.assert_allclose(rough, exact, rtol=2e-5, atol=1e-4)


@pytest.mark.slow
@each(DELAYS, "law")
def test_the_mean_delay_is_the_sum_of_the_survival_function(law):
    with jax.enable_x64(True):
        law = cast(law, float)
        total = at(law.survival, np.arange(200_000)).sum(axis=0)
        tail = np.broadcast_to(np.asarray(law.survival(200_000)), (NUM_ARMS,))
        mean = np.broadcast_to(np.asarray(law.mean), (NUM_ARMS,))
    closed = tail < 1e-9
    np.testing.assert_allclose(total[closed], mean[closed], rtol=1e-6, atol=1e-9)
    assert (mean[~closed] > total[~closed]).all()


@pytest.mark.slow
@each(REWARDS, "law")
@pytest.mark.parametrize("arm", range(NUM_ARMS))
def test_log_densities_of_rewards_integrate_to_the_law(law, arm):
    part = law.laws[arm] if isinstance(law, jb.PerArm) else law
    if isinstance(part, jb.TruncatedNormal):
        points, width = (np.arange(20_000) + 0.5) / 20_000, 1 / 20_000
    else:
        points, width = np.unique(draws(law, arm)), 1
    masses = np.exp(at(law.log_prob, points))[:, arm] * width
    assert masses.sum() == pytest.approx(1, abs=1e-4)
    assert (points * masses).sum() == pytest.approx(float(arms(law.mean, arm)), abs=1e-4)


@each(REWARDS | DELAYS, "law")
def test_a_law_is_a_pytree_of_arrays(law):
    leaves, structure = jax.tree.flatten(law)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    again = jax.tree.unflatten(structure, leaves)
    np.testing.assert_array_equal(again.isf(jnp.asarray(0.3)), law.isf(jnp.asarray(0.3)))


LIGHT = {  # tails that underflow, and probabilities of 0 and 1
    "Pareto light": jb.Pareto([5.0, 9.0, 30.0]),
    "Lomax light": jb.Lomax([1.0, 20.0, 1e4], [40.0, 9.0, 5.0]),
    "Burr light": jb.Burr([1.0, 20.0, 5.0], [30.0, 10.0, 0.5], [90.0, 9.0, 20.0]),
    "Geometric light": jb.Geometric([0.0, 0.1, 3.0]),
    "LogNormal light": jb.LogNormal([20.0, 2.0, 1e4], [1.0, 0.1, 0.05]),
    "Weibull light": jb.Weibull([2.0, 20.0, 5.0], [10.0, 3.0, 1.0]),
    "Bernoulli sure": jb.Bernoulli([0.0, 1.0, 0.5]),
}


@each(REWARDS | DELAYS | LIGHT, "law")
@pytest.mark.parametrize("method", ["survival", "log_survival", "cdf", "log_prob"])
def test_gradients_are_finite(law, method):
    """No NaN from a branch that was not taken, wherever the function itself is finite."""

    def total(law):
        values = [getattr(law, method)(m) for m in (0, 1, 5, 1000, 10**6)]
        return sum(jnp.sum(jnp.where(jnp.isfinite(v), v, 0)) for v in values)

    floats = jax.tree.leaves(jax.grad(total, allow_int=True)(law))
    assert all(np.isfinite(g).all() for g in floats if jnp.issubdtype(g.dtype, jnp.floating))


@pytest.mark.slow
@each(REWARDS | DELAYS | LIGHT, "law")
def test_the_distribution_function_keeps_its_precision_near_zero(law):
    """D-UCB divides by it: in float32, relative to the same formula in double precision."""
    points = np.array([0, 1, 2, 3, 5, 40, 10**4], np.int32)
    with jax.enable_x64(False):
        single = cast(law, jnp.float32)
        rough = at(single.cdf, points)
    with jax.enable_x64(True):
        double = cast(single, float)
        exact = at(double.cdf, points)
        np.testing.assert_allclose(exact, 1 - at(double.survival, points), atol=1e-12)
    tiny = 1e-30  # below, single precision underflows
    kept = exact > tiny if isinstance(law, jb.DelayLaw) and not isinstance(law, jb.RewardLaw) else exact > 1e-3
    np.testing.assert_allclose(rough[kept], exact[kept], rtol=2e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.Bernoulli([0.5, 1.2]), r"Bernoulli: mean must be in \[0, 1\], got 1.2 at index \[1\]; rescale"),
        (lambda: jb.Bernoulli([0.5, float("nan")]), r"Bernoulli: mean must be in \[0, 1\], got nan"),
        (lambda: jb.Bernoulli([]), "Bernoulli: mean is empty"),
        (lambda: jb.Bernoulli([[0.5], [0.5, 0.2]]), "Bernoulli: mean is not a rectangular array"),
        (lambda: jb.Deterministic(-0.1), "Deterministic: mean"),
        (lambda: jb.Discrete([0, 2], [0.5, 0.5]), r"Discrete: values must be in \[0, 1\]"),
        (lambda: jb.Discrete([0, 1], [0.5, 0.4]), "Discrete: probabilities must sum to 1"),
        (lambda: jb.Discrete([1, 0], [0.5, 0.5]), "Discrete: values must increase"),
        (lambda: jb.Discrete([0, 1], [0.5, 0.25, 0.25]), "Discrete: probabilities must have shape"),
        (lambda: jb.TruncatedNormal(0.5, 0), r"TruncatedNormal: scale must be in \(0, 10\]"),
        (lambda: jb.TruncatedNormal(0.5, 1e4), r"TruncatedNormal: scale must be in \(0, 10\]"),
        (lambda: jb.TruncatedNormal(9, 1e-3), "TruncatedNormal: loc must lie within 8 scales"),
        (lambda: jb.Pareto([1.0, 0.0]), "Pareto: tail_index must be finite and > 0, got 0.0"),
        (lambda: jb.Pareto(float("inf")), "Pareto: tail_index"),
        (lambda: jb.Geometric(float("inf")), "Geometric: mean must be finite"),
        (lambda: jb.Constant(-1), "Constant: delay must be an integer from 0"),
        (lambda: jb.Geometric(-1.0), "Geometric: mean"),
        (lambda: jb.DiscreteUniform(5, 2), "DiscreteUniform: high must be >= low"),
        (lambda: jb.LogNormal(0.0, 1.0), "LogNormal: median"),
        (lambda: jb.LogNormal([1.0, 2.0], [1.0, 2.0, 3.0]), "LogNormal: the parameters have shapes"),
        (lambda: jb.Weibull(1.0, -1.0), "Weibull: shape"),
        (lambda: jb.Lomax(0.0, 1.0), "Lomax: scale must be finite and > 0"),
        (lambda: jb.Lomax(1.0, [1.0, -1.0]), r"Lomax: tail_index must be finite and > 0, got -1.0 at index \[1\]"),
        (lambda: jb.Burr(1.0, 0.0, 1.0), "Burr: shape"),
        (lambda: jb.Burr(1.0, 1.0, float("nan")), "Burr: tail_index"),
        (lambda: jb.Empirical([0, 3], [0.5, 0.6]), "Empirical: probabilities must sum to 1"),
        (lambda: jb.Lossy(jb.NoDelay(), 1.5), r"Lossy: loss must be in \[0, 1\]"),
        (lambda: jb.Mixture([jb.NoDelay()], [0.5, 0.5]), "Mixture: weights must end in one number for each of 1"),
        (lambda: jb.Mixture([jb.NoDelay(), jb.Pareto(1.0)], [0.5, 0.4]), "Mixture: weights must sum to 1"),
        (lambda: jb.PerArm([]), "PerArm: laws is empty"),
        (lambda: jb.PerArm([jb.Pareto([1.0, 2.0])]), r"PerArm: laws\[0\] is for 2 arms"),
        (lambda: jb.NoDelay(0), "NoDelay: num_arms must be an integer from 1"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with refused(ValueError, message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.Bernoulli("half"), "Bernoulli: mean must be numbers"),
        (lambda: jb.Bernoulli(None), "Bernoulli: mean must be numbers"),
        (lambda: jb.Constant(1.5), "Constant: delay must be an integer"),
        (lambda: jb.Empirical([0.5], [1.0]), "Empirical: delays must be an integer"),
        (lambda: jb.Lossy(0.3, 0.1), "Lossy: delay must be a delay law"),
        (lambda: jb.Lossy(jb.PerArm([jb.Bernoulli(0.5)]), 0.1), "Lossy: delay must be a delay law"),
        (lambda: jb.Mixture([jb.Bernoulli(0.5)], [1.0]), "Mixture: laws must be a list of delay laws"),
        (lambda: jb.Mixture(jb.Pareto(1.0), [1.0]), "Mixture: laws must be a list of delay laws"),
        (lambda: jb.PerArm([jb.Bernoulli(0.5), jb.Pareto(1.0)]), "PerArm: laws must be all reward laws or all delay"),
        (lambda: jb.PerArm(jb.Pareto([1.0, 2.0])), "PerArm: laws must be a list"),
    ],
)
def test_what_is_not_a_number_or_a_law_is_refused(make, message):
    with refused(TypeError, message):
        make()


@each(REWARDS | DELAYS | {"one": jb.Pareto(0.5), "one row": jb.Empirical([0, 3], [0.2, 0.8])}, "law")
@pytest.mark.parametrize("method", ["survival", "cdf", "log_survival", "log_prob"])
def test_every_arm_is_evaluated_at_every_x(law, method):
    """x of shape [...] gives [..., K], also where there are K of them."""
    function = jax.jit(lambda x: getattr(law, method)(x))
    for x in (np.arange(5), np.arange(NUM_ARMS), np.arange(10).reshape(2, 5), np.zeros((0,), int)):
        values = function(x)
        assert values.shape == (*x.shape, *law.batch_shape)
        apart = [function(point) for point in x.ravel().tolist()]
        if apart:
            flat = np.reshape(values, (len(apart), -1))  # a vector unit may round otherwise
            np.testing.assert_allclose(flat, np.reshape(apart, (len(apart), -1)), rtol=1e-5, atol=1e-6)


class Nested(jb.Pareto):
    """A law of one's own, whose formula asks another law."""

    def survival(self, x):
        return super().survival(x + 1)


def test_a_law_of_ones_own_obeys_the_rule_also_within_others():
    law = Nested([0.3, 1.0])
    assert law.survival(jnp.arange(7)).shape == (7, 2)
    np.testing.assert_array_equal(law.survival(jnp.arange(7)), jb.Pareto([0.3, 1.0]).survival(jnp.arange(1, 8)))
    mixture = jb.Mixture([law, jb.Constant(3)], [0.5, 0.5])
    u = jnp.asarray(0.4)
    for m, i in zip(mixture.isf(u).tolist(), range(2), strict=True):
        assert mixture.survival(m)[i] < u <= mixture.survival(m - 1)[i]


@each(REWARDS | DELAYS | {"one": jb.Pareto(0.5)}, "law")
def test_samples_follow_the_law(law):
    """Within 5 standard errors, at every point and for every arm."""
    sample = np.asarray(law.sample(7, (100, 100)))
    assert sample.shape == (100, 100, *law.batch_shape)
    assert sample.dtype == law.isf(jnp.asarray(0.5)).dtype
    sample = sample.reshape(10_000, -1)
    for x in (0, 1, 3, 10, 200) if sample.dtype == np.int32 else (0.0, 0.25, 0.45, 0.7):
        expected = np.broadcast_to(np.asarray(law.survival(x), float), sample.shape[1:])
        for arm, probability in enumerate(expected):
            assert within_5_sigma(sample[:, arm] > x, probability), (x, arm)
    assert law.sample(7).shape == law.batch_shape
    np.testing.assert_array_equal(law.sample(7, 4), law.sample(jax.random.key(7), (4,)))
