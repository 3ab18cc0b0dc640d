"""Mean regrets of SPEC's literal formulas on the paper's instances, from an independent implementation.

Both sides are means of some 400 runs: they may differ by 5 standard errors of their difference.
"""

import numpy as np
import pytest

import jaxbandit as jb

BELIEVED = jb.Pareto(0.7)
FIG2 = jb.Instance(jb.Bernoulli([0.5, 0.55]), jb.Pareto([1.0, 0.3]))
FIG4 = jb.Instance(jb.Bernoulli([0.6, 0.8]), jb.Pareto([0.7, 0.7]))
FIG5 = jb.Instance(jb.Bernoulli([0.6, 0.8]), jb.Pareto([1.0, 0.3]))


def ducb(window: int) -> jb.Policy:
    return jb.DUCB(window, BELIEVED, warmup="window")


def final_regret(instance: jb.Instance, policy: jb.Policy, horizon: int, seeds: int = 400) -> np.ndarray:
    runs = jb.simulate_batch(2026, instance, policy, horizon=horizon, seeds=seeds, checkpoints=[horizon])
    return np.asarray(runs.regret[:, -1], float)


def check(instance: jb.Instance, policy: jb.Policy, horizon: int, expected: float) -> None:
    regret = final_regret(instance, policy, horizon)
    error = np.sqrt(2) * regret.std(ddof=1) / np.sqrt(len(regret))
    rounding = 0.5 * 10.0 ** -(len(str(expected).partition(".")[2]))
    assert abs(regret.mean() - expected) < 5 * error + rounding, (regret.mean(), error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.02, 81.1), (0.05, 79.8), (0.1, 79.1), (0.2, 79.1), (0.3, 79.7), (0.4, 80.7), (0.5, 81.4)]
)
def test_figure_2(alpha, expected):
    """Here both sides have 4000 runs, and the expected values standard errors of 0.06 to 0.09."""
    regret = final_regret(FIG2, jb.PatientBandits(alpha), 3000, seeds=4000)
    assert abs(regret.mean() - expected) < 5 * np.sqrt(2) * regret.std(ddof=1) / np.sqrt(4000) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "gap", "expected"),
    [(0.2, 0.4, 321), (0.3, 0.3, 209), (0.4, 0.25, 154), (0.5, 0.25, 126), (0.8, 0.25, 115)],
)
def test_figure_3_at_its_peaks(alpha, gap, expected):
    instance = jb.Instance(jb.Bernoulli([0.4, 0.4 + gap]), jb.Pareto([1.0, alpha]))
    check(instance, jb.PatientBandits(alpha), 3000, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (jb.PatientBandits(0.5), 115.9),
        (jb.PatientBandits(0.1), 161),
        (ducb(10), 20.9),
        (ducb(50), 16.7),
        (ducb(100), 16.7),
        (ducb(200), 21.7),
        (jb.UCB1(), 44),
    ],
)
def test_figure_4(policy, expected):
    check(FIG4, policy, 3000, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (jb.PatientBandits(0.5), 189),
        (jb.PatientBandits(0.1), 227),
        (ducb(10), 572),
        (ducb(50), 462),
        (ducb(100), 286),
        (ducb(200), 138),
        (jb.UCB1(), 108),
    ],
)
def test_figure_5(policy, expected):
    check(FIG5, policy, 3000, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instance", "policy", "expected"),
    [
        (FIG4, jb.PatientBandits(0.5), 207.5),
        (FIG4, jb.PatientBandits(0.1), 414),
        (FIG5, ducb(10), 1964),
        (FIG5, ducb(50), 1731),
        (FIG5, ducb(100), 848),
        (FIG5, ducb(200), 241),
    ],
)
def test_ten_thousand_rounds(instance, policy, expected):
    check(instance, policy, 10_000, expected)


def test_uniform_play_on_figure_2():
    np.testing.assert_allclose(final_regret(FIG2, jb.Uniform(), 3000, seeds=2), 75, rtol=1e-6)
