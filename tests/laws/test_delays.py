"""What is particular to single delay laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from tests.examples import MEASURED_DELAYS


def test_pareto_is_rounded_up():
    law = jb.Pareto(0.5)
    np.testing.assert_allclose(law.survival(np.array([0, 1, 4, 100])), [1, 1, 0.5, 0.1], rtol=1e-6)
    assert int(law.isf(jnp.asarray(0.3))) == np.ceil(0.3**-2.0)


def test_a_delay_beyond_2_to_30_is_never_and_does_not_wrap():
    u = jnp.asarray(2.0**-32)
    for tail_index in (0.02, 0.3, 0.7):
        assert jb.Pareto(tail_index).isf(u) == jb.NEVER
    assert jb.LogNormal(1e6, 4.0).isf(u) == jb.NEVER
    assert jb.Pareto(0.02).isf(jnp.asarray(0.65)) == jb.NEVER
    assert jb.Pareto(0.02).isf(jnp.asarray(0.99)) == 2


def test_nothing_arrives_from_a_delay_of_never():
    law = jb.Constant([0, jb.NEVER])
    np.testing.assert_array_equal(law.survival(10**6), [0, 1])
    assert np.isinf(law.mean[1])


def test_a_mixture_is_between_its_laws():
    law = jb.Mixture([jb.Constant(3), jb.Constant(50)], [0.25, 0.75])
    np.testing.assert_array_equal(law.isf(jnp.asarray([1.0, 0.76, 0.75, 0.1])), [3, 3, 50, 50])
    assert law.mean == pytest.approx(0.25 * 3 + 0.75 * 50)


def test_a_mixture_with_no_weight_on_an_infinite_mean_has_the_other_mean():
    assert jb.Mixture([jb.Pareto(0.3), jb.Constant(2)], [0.0, 1.0]).mean == 2


def test_the_tail_of_what_arrives_from_a_lossy_law_keeps_its_precision():
    sample = jb.Lossy(jb.Pareto(1.0), 0.3).sampler()
    delay = sample(jnp.asarray(0.7e-7), jnp.int32(0))
    assert delay == pytest.approx(1e7, rel=1e-4)


@pytest.mark.parametrize(
    ("median", "sigma", "m", "expected"), [(1000, 0.4, 3, -109.06), (1e4, 0.5, 10, -99.04), (500, 0.01, 430, -117.40)]
)
def test_the_left_tail_of_a_log_normal_delay_does_not_underflow(median, sigma, m, expected):
    assert float(jb.LogNormal(median, sigma).log_prob(m)) == pytest.approx(expected, abs=0.02)


def test_a_table_that_sums_to_one_but_for_rounding_is_made_to():
    law = jb.Empirical([0, 1000], [0.33335, 0.6666])
    assert float(law.survival(-1)) == pytest.approx(1, abs=1e-6)
    assert float(jb.Mixture([jb.Constant(1), jb.Constant(2)], [0.33335, 0.6666]).survival(0)) == pytest.approx(
        1, abs=1e-6
    )


def test_whole_numbers_may_be_traced_in_a_list():
    def survival(delay):
        return jb.Constant([0, delay]).survival(1)

    np.testing.assert_array_equal(jax.vmap(survival)(jnp.array([1, 2], jnp.int32)), [[0, 0], [0, 1]])


def test_weibull_keeps_the_name_of_its_shape():
    law = jb.Weibull(scale=[3.0, 4.0], shape=0.5)
    assert law.shape == 0.5
    assert law.batch_shape == (2,)


def test_a_law_may_have_leading_axes_for_vmap():
    laws = jb.Pareto(np.array([[0.3, 1.0], [0.5, 2.0], [0.7, 3.0]]))
    assert laws.batch_shape == (3, 2)
    np.testing.assert_allclose(
        jax.vmap(lambda law: law.survival(4.0))(laws), 4.0 ** -np.asarray(laws.tail_index), rtol=1e-6
    )


def test_measured_delays_can_be_used():
    if not MEASURED_DELAYS.exists():
        pytest.skip("the measured delays are not distributed with the project")
    seconds, probability = np.loadtxt(MEASURED_DELAYS, delimiter=",", skiprows=1, unpack=True)
    hours, index = np.unique((seconds / 3600).astype(int), return_inverse=True)
    law = jb.Empirical(hours, np.bincount(index, probability) / probability.sum())
    mean = (hours[index] * probability).sum() / probability.sum()
    assert float(law.mean) == pytest.approx(mean, rel=1e-4)
    instance = jb.Instance(jb.Bernoulli([0.4, 0.5]), law)
    run = jb.simulate(0, instance, jb.PatientBandits(0.3), horizon=300)
    assert int(run.pulls[-1].sum()) == 300


def test_burr_with_shape_1_is_lomax():
    ages = np.array([0, 1, 2, 10, 10**4])
    lomax, burr = jb.Lomax(12.0, 0.8), jb.Burr(12.0, 1.0, 0.8)
    for method in ("log_survival", "log_prob", "cdf"):
        of_burr, of_lomax = (np.asarray(getattr(law, method)(ages)) for law in (burr, lomax))
        np.testing.assert_allclose(of_burr, of_lomax, rtol=1e-5)
    assert float(jb.Burr(12.0, 1.0, 1.8).mean) == pytest.approx(float(jb.Lomax(12.0, 1.8).mean), rel=1e-5)
    assert np.isinf(float(lomax.mean))


def test_burr_with_a_light_tail_is_weibull():
    shape, scale, tail_index = 0.6, 30.0, 1e4
    burr = jb.Burr(scale * (tail_index / shape) ** (1 / shape), shape, tail_index)
    ages = np.array([1, 2, 10, 100])
    np.testing.assert_allclose(burr.survival(ages), jb.Weibull(scale, shape).survival(ages), rtol=1e-3)


def test_a_steep_burr_keeps_its_tail():
    """(m / scale)^shape is far beyond what a float can hold, (m / scale)^-tail_index is not."""
    law = jb.Burr(1.0, 60.0, 0.5)
    np.testing.assert_allclose(law.survival(10**4), 1e-2, rtol=1e-5)
    assert int(law.isf(jnp.asarray(1e-3))) == pytest.approx(10**6, rel=1e-4)
    assert float(law.log_prob(10**4)) == pytest.approx(np.log(0.5 * 1e4**-1.5), abs=1e-3)
