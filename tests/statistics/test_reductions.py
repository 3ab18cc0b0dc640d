"""Reductions over seeds."""

import jax
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import jaxbandit as jb
from tests.examples import refused

VALUES = np.random.default_rng(0).normal(3, 2, (25, 4)).astype(np.float32)


def test_the_interval_is_students():
    interval = jb.mean_ci(VALUES, level=0.9)
    error = stats.sem(VALUES.astype(float), axis=0)
    low, high = stats.t.interval(0.9, 24, VALUES.mean(axis=0), error)
    np.testing.assert_allclose(interval.mean, VALUES.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(interval.standard_error, error, rtol=1e-5)
    np.testing.assert_allclose(interval.low, low, rtol=1e-5)
    np.testing.assert_allclose(interval.high, high, rtol=1e-5)


def test_the_interval_covers_as_often_as_it_says():
    """4000 batches of 8: the share that covers the mean is within 5 standard errors of 0.8."""
    batches = np.random.default_rng(1).normal(0, 1, (8, 4000)).astype(np.float32)
    interval = jb.mean_ci(batches, level=0.8)
    covered = np.mean((np.asarray(interval.low) < 0) & (np.asarray(interval.high) > 0))
    assert abs(covered - 0.8) < 5 * np.sqrt(0.8 * 0.2 / 4000)


def test_statistics_work_under_jit():
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), jax.jit(jb.mean_ci)(VALUES), jb.mean_ci(VALUES)
    )


def test_integer_counts_have_a_mean_that_is_not_whole():
    assert jb.mean_ci(np.array([0, 1, 1, 1])).mean == 0.75


def test_quantiles_are_numpys():
    np.testing.assert_allclose(jb.quantiles(VALUES, [0.1, 0.5]), np.quantile(VALUES, [0.1, 0.5], axis=0), rtol=1e-5)
    assert jb.quantiles(VALUES, 0.5).shape == (1, 4)


def test_a_paired_difference_is_the_interval_of_the_difference():
    other = VALUES + np.float32(0.5)
    difference = jb.paired_difference(other, VALUES)
    np.testing.assert_allclose(difference.mean, 0.5, atol=1e-5)
    assert (np.asarray(difference.standard_error) < 1e-5).all()


def test_the_shared_tape_makes_differences_precise():
    instance = jb.Instance(jb.Bernoulli([0.5, 0.55]), jb.Pareto([1.0, 0.3]))
    first, second = (
        jb.simulate_batch(0, instance, jb.PatientBandits(a), horizon=1000, seeds=60, checkpoints=[1000]).regret
        for a in (0.3, 0.32)
    )
    paired = jb.paired_difference(first, second).standard_error
    unpaired = np.hypot(jb.mean_ci(first).standard_error, jb.mean_ci(second).standard_error)
    assert (np.asarray(paired) < 0.3 * unpaired).all()


def test_a_run_in_place_of_its_regret_is_refused():
    runs = jb.simulate_batch(0, jb.Instance(jb.Bernoulli([0.5, 0.6]), jb.NoDelay()), jb.UCB1(), horizon=10, seeds=3)
    for call in (lambda: jb.mean_ci(runs), lambda: jb.paired_difference(runs, runs)):
        with refused(TypeError, r"values must be an array, got a Run; pass its .regret"):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.mean_ci(VALUES[:1]), "mean_ci: values need at least 2"),
        (lambda: jb.mean_ci(np.float32(3)), "mean_ci: values need at least 2"),
        (lambda: jb.mean_ci(VALUES, level=95), "mean_ci: level must lie between 0 and 1"),
        (lambda: jb.quantiles(VALUES, [50.0]), r"quantiles: q must be in \[0, 1\]"),
        (lambda: jb.quantiles(VALUES[:0], [0.5]), "quantiles: values need at least 1"),
        (lambda: jb.paired_difference(VALUES, VALUES[:5]), "both batches need the same shape"),
    ],
)
def test_values_that_make_no_statistic_are_refused(call, message):
    with refused(ValueError, message):
        call()


def test_labels_stay_but_for_the_seeds():
    values = xr.DataArray(VALUES.T, {"alpha": [0.1, 0.2, 0.3, 0.4]}, ("alpha", "seed"), name="final_regret")
    plain = jb.mean_ci(VALUES)
    for found, expected in zip(jb.mean_ci(values), plain, strict=True):
        assert found.dims == ("alpha",)
        np.testing.assert_array_equal(found.alpha, values.alpha)
        np.testing.assert_array_equal(found, expected)
    rows = jb.quantiles(values, [0.1, 0.5])
    assert rows.dims == ("quantile", "alpha")
    np.testing.assert_array_equal(rows.sel(quantile=0.5, method="nearest"), jb.quantiles(VALUES, 0.5)[0])
    difference = jb.paired_difference(values + 1, values)
    np.testing.assert_allclose(difference.mean.sel(alpha=0.2), 1, rtol=1e-5)
    assert difference.standard_error.dims == ("alpha",)
