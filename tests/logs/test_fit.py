"""Fits of logs whose truth, and whose maximum of the likelihood, are known: LOGS 32 and 320 rounds long."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import jaxbandit as jb
from jaxbandit.logs.lifetable import grid
from tests.examples import refused

CASES = np.load(Path(__file__).parents[1] / "cases" / "logs.npz")


@cache
def fitted(name: str) -> jb.LogFit:
    delay, age = CASES[f"{name}_d"], CASES[f"{name}_a"]
    return jb.fit_log(jb.Log(("arm",), np.zeros(len(age), np.int32), age, delay, 1.0, "round"), dense=True)


def family(name: str, which: str):
    return next(fit for fit in fitted(name).arms[0].fits if fit.family.name == which)


VALUES = [
    ("lomax_320", "Lomax", -12774.074264, 0.103877, 0.003431, {"scale": 12.22576, "tail_index": 0.809393}),
    ("weibull_320", "Weibull", -2969.610888, 0.018465, 0.001086, {"scale": 31.25788, "shape": 0.656719}),
    ("lognormal_320", "LogNormal", -32820.564948, 0.299478, 0.003791, {"median": 15.79131, "sigma": 1.478001}),
    ("lognormal_32", "LogNormal", -14892.733416, 0.351045, 0.02683, {"median": 21.01060, "sigma": 1.597596}),
]


@pytest.mark.parametrize(("log", "which", "likelihood", "rate", "error", "parameters"), VALUES)
def test_maxima_are_those_of_two_independent_programs(log, which, likelihood, rate, error, parameters):
    fit = family(log, which)
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-4)
    assert fit.rate == pytest.approx(rate, rel=1e-3)
    assert fit.rate_error == pytest.approx(error, rel=1e-3)
    assert fit.parameters == pytest.approx(parameters, rel=1e-3)


@pytest.mark.parametrize(
    ("log", "values"),
    [
        (
            "lomax_320",
            {"Weibull": (-12808.053, 0.0954), "LogNormal": (-12779.499, 0.1011), "exponential": (-12977.092, 0.0941)},
        ),
        (
            "weibull_320",
            {"LogNormal": (-2977.166, 0.0223), "Lomax": (-2980.012, 0.0239), "exponential": (-3006.680, 0.0179)},
        ),
        (
            "lognormal_320",
            {"Weibull": (-32967.977, 0.2889), "Lomax": (-32851.008, 0.2994), "exponential": (-33159.901, 0.2869)},
        ),
        (
            "lomax_32",
            {
                "Lomax": (-6031.249, 0.0885),
                "Weibull": (-6031.420, 0.0736),
                "LogNormal": (-6033.528, 0.1219),
                "exponential": (-6033.264, 0.0697),
            },
        ),
    ],
)
def test_other_families_fit_as_two_independent_programs_say(log, values):
    for which, (likelihood, rate) in values.items():
        fit = family(log, which)
        assert fit.log_likelihood == pytest.approx(likelihood, abs=6e-4)
        assert fit.rate == pytest.approx(rate, abs=6e-5)


def test_burr_is_no_worse_than_the_laws_it_contains():
    for log in ("lomax_320", "weibull_320", "lognormal_320", "lomax_32", "weibull_32"):
        best = max(family(log, which).log_likelihood for which in ("Weibull", "Lomax", "exponential"))
        assert family(log, "Burr").log_likelihood > best - 1e-4


@pytest.mark.parametrize(
    ("log", "age", "values"),
    [
        ("lomax_320", 10, (0.04036, 0.03771, 0.04321)),
        ("lomax_320", 100, (0.08679, 0.08282, 0.09093)),
        ("lomax_320", 300, (0.09692, 0.09238, 0.10166)),
        ("weibull_320", 100, (0.01669, 0.01493, 0.01865)),
        ("weibull_320", 300, (0.01827, 0.01631, 0.02046)),
        ("lognormal_320", 300, (0.29207, 0.28509, 0.29919)),
        ("lomax_32", 31, (0.06559, 0.06099, 0.07052)),
        ("weibull_32", 31, (0.01198, 0.00994, 0.01444)),
    ],
)
def test_incidence_is_the_product_limit(log, age, values):
    curves = fitted(log).curves
    found = [curve[0, age] for curve in (curves.at, curves.low, curves.high)]
    np.testing.assert_allclose(found, values, atol=1e-5)


def test_a_log_too_short_to_tell_the_rate_says_so():
    fit = fitted("weibull_32")
    assert family("weibull_32", "Weibull").log_likelihood == pytest.approx(-1319.6505, abs=1e-4)
    assert np.isnan(family("weibull_32", "Weibull").rate_error)
    assert fit.arms[0].upper == 1
    assert fit.arms[0].lower < 0.02
    assert fit.arms[0].identified_until == 31
    said = str(fit)
    assert "The log is too short to tell the rate of arm: at least 0.012 [0.00994, 0.0144] have converted" in said
    assert "unknown [" in said


def test_families_that_fit_equally_well_are_weighted_and_their_quarrel_told():
    arm = fitted("lomax_32").arms[0]
    assert {fit.family.name for fit in arm.equally_good} >= {"Lomax", "Weibull"}
    assert sum(fit.weight for fit in arm.fits) == pytest.approx(1)
    first, second = arm.fits[:2]
    assert second.weight / first.weight == pytest.approx(np.exp(-(second.aic - first.aic) / 2))
    assert "families that fit equally well disagree about the rate" in str(fitted("lomax_32"))


@pytest.mark.parametrize(
    ("log", "which"),
    [("lomax_320", "Lomax"), ("lognormal_320", "LogNormal"), ("weibull_320", "Weibull"), ("lomax_320", "Burr")],
)
def test_the_law_of_a_fit_has_its_likelihood(log, which):
    """Summed over the rows with the law's own probabilities, in single precision but for the sum."""
    fit, delay, age = family(log, which), CASES[f"{log}_d"], CASES[f"{log}_a"]
    rounds = np.arange(1, age.max() + 1)
    probability = np.asarray(fit.law.log_prob(rounds), float)
    beyond = np.append(1.0, np.asarray(fit.law.survival(rounds), float))
    seen = delay > 0
    total = (np.log(fit.rate) + probability[delay[seen] - 1]).sum() + np.log(
        1 - fit.rate + fit.rate * beyond[age[~seen]]
    ).sum()
    assert total == pytest.approx(fit.log_likelihood, rel=2e-6)


def test_an_interval_ends_where_the_profile_has_fallen_by_1_92():
    """Against SciPy, on the exponential family's profile."""
    table = fitted("lomax_320").table
    fit = family("lomax_320", "exponential")
    m, converted, waiting = table.edges, table.conversions[0], table.waiting[0]

    def loss(log_scale, rate):
        tail = np.exp(-m / np.exp(log_scale[0]))
        return -(converted @ np.log(rate * (tail[:-1] - tail[1:])) + waiting @ np.log(1 - rate + rate * tail))

    for end in (fit.low, fit.high):
        profile = -minimize(loss, [3.0], args=(end,), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9}).fun
        assert fit.log_likelihood - profile == pytest.approx(1.920729, abs=2e-3)


@pytest.mark.parametrize(("log", "law"), [("weibull_320", "Weibull"), ("lognormal_320", "LogNormal")])
def test_an_independent_program_agrees(log, law):
    surpyval = pytest.importorskip("surpyval")
    delay, age = CASES[f"{log}_d"], CASES[f"{log}_a"]
    seen = delay > 0
    left = np.where(seen, delay - 1, age).astype(float)
    right = np.where(seen, delay, age).astype(float)
    kept = seen | (age > 0)
    x = np.stack([left, right], axis=1)[kept]
    with np.errstate(all="ignore"):
        found = getattr(surpyval, law).fit(x=x, c=np.where(seen, 2, 1)[kept], lfp=True)
    fit = family(log, law)
    assert -found.neg_ll() == pytest.approx(fit.log_likelihood, abs=1e-2)
    assert found.lfp_p == pytest.approx(fit.rate, rel=1e-3)


@pytest.mark.slow
def test_a_coarse_grid_changes_parameters_by_less_than_1_percent():
    random = np.random.default_rng(0)
    n = 20_000
    age = random.integers(1, 1500, n).astype(np.int32)
    delay = np.ceil(100 * np.exp(random.normal(size=n))).astype(np.int32)
    delay = np.where((random.random(n) < 0.3) & (delay <= age), delay, -1).astype(np.int32)
    log = jb.Log(("arm",), np.zeros(n, np.int32), age, delay, 1.0, "round")
    coarse, dense = (jb.fit_log(log, dense=dense) for dense in (False, True))
    assert len(coarse.table.edges) < 450
    for which in ("LogNormal", "Weibull"):
        one, other = (next(x for x in fit.arms[0].fits if x.family.name == which) for fit in (coarse, dense))
        assert one.rate == pytest.approx(other.rate, rel=0.01)
        assert one.parameters == pytest.approx(other.parameters, rel=0.01)


def test_the_grid_is_dense_and_then_grows_by_1_percent():
    np.testing.assert_array_equal(grid(300), np.arange(301))
    edges = grid(10**6)
    np.testing.assert_array_equal(edges[:129], np.arange(129))
    assert edges[-1] == 10**6
    assert (np.diff(edges)[128:] <= 0.01 * edges[128:-1] + 1).all()


def log_of(delays, age=50):
    delay = np.array(delays, np.int32)
    return jb.Log(("a",), np.zeros(len(delay), np.int32), np.full(len(delay), age, np.int32), delay, 1.0, "round")


def test_an_arm_without_conversions_has_an_upper_bound():
    fit = jb.fit_log(log_of([-1] * 100))
    assert fit.arms[0].incidence == pytest.approx((0, 0, 1 - 0.025**0.01))
    assert "has no conversion in 100 pulls: at most 0.0362 convert" in str(fit)
    with refused(ValueError, "no arm of the log has a conversion"):
        fit.instance()
    with refused(ValueError, "no arm of the log has a conversion"):
        fit.bootstrap(2, key=0)


@pytest.mark.parametrize("delays", [[3], [-1], [1, 2, 3, 4, 9] * 20])
def test_one_row_and_all_converted_are_no_error(delays):
    fit = jb.fit_log(log_of(delays))
    assert fit.arms[0].pulls == len(delays)
    at, low, high = fit.arms[0].incidence
    assert 0 <= low <= at <= high <= 1
    assert str(fit)


def test_what_is_not_a_log_is_refused():
    with refused(TypeError, "fit_log: log must be what read_log gives"):
        jb.fit_log([1, 2])
