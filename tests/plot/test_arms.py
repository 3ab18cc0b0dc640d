"""Survival curves and shares of the arms."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.plot import pulls, survival
from tests.examples import DELAYS, each, instance, refused


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@each(DELAYS, "law")
@pytest.mark.parametrize("log", [True, False])
def test_a_survival_curve_is_the_laws(ax, law, log):
    assert survival(law, horizon=300, log=log, names=["a", "b", "c"], ax=ax) is ax
    assert [line.get_label() for line in ax.lines] == ["a", "b", "c"]
    for arm, line in enumerate(ax.lines):
        m, values = line.get_data()
        assert (m[0], m[-1]) == (1 if log else 0, 300)
        for at in (0, 3, len(m) - 1):
            exact = np.broadcast_to(law.survival(np.int32(m[at])), 3)[arm]
            np.testing.assert_allclose(values[at], exact, rtol=1e-5, atol=1e-7)
    assert ax.get_xscale() == ax.get_yscale() == ("log" if log else "linear")


def test_a_thin_tail_does_not_hide_a_heavy_one(ax):
    survival(jb.PerArm([jb.Geometric(3.0), jb.Pareto(0.3)]), horizon=1000, ax=ax)
    assert ax.get_ylim()[0] >= 1e-5


def test_a_law_for_any_arm_has_one_curve_without_a_name(ax):
    survival(jb.Pareto(0.5), ax=ax)
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


def test_areas_are_mean_shares_of_pulls(ax):
    runs = jb.simulate_batch(0, instance(), jb.UCB1(), horizon=50, seeds=4, checkpoints=[10, 50])
    assert pulls(runs, names=["a", "b", "c"], ax=ax) is ax
    share = np.asarray(runs.pulls).mean(axis=0) / np.array([[10], [50]])
    tops = np.cumsum(share, axis=1)
    for arm, area in enumerate(ax.collections):
        corners = area.get_paths()[0].vertices
        for t, top, bottom in zip((10, 50), tops[:, arm], tops[:, arm] - share[:, arm], strict=True):
            at = corners[corners[:, 0] == t][:, 1]
            np.testing.assert_allclose([at.min(), at.max()], [bottom, top], rtol=1e-6, atol=1e-12)


def test_shares_of_a_single_run_and_of_a_sweep(ax):
    data = jb.sweep(lambda: (instance(), jb.UCB1()), {}, horizon=40, seeds=3, key=0, progress=False)
    pulls(data.sel(policy="UCB1"), ax=ax)
    pulls(jb.simulate(0, instance(), jb.UCB1(), horizon=40), ax=ax)
    assert len(ax.collections) == 6
    with refused(ValueError, "pulls: runs must be of one cell and policy, got {'policy': 1}"):
        pulls(data, ax=ax)


def test_what_cannot_be_drawn_is_refused(ax):
    for call, error, message in (
        (lambda: survival(instance(), ax=ax), TypeError, "survival: law must be a delay law"),
        (lambda: survival(jb.Pareto([[0.5, 1.0]]), ax=ax), ValueError, "survival: law must be of a single problem"),
        (lambda: survival(jb.Pareto([0.5, 1.0]), names=["a"], ax=ax), ValueError, "names must have one entry an arm"),
        (lambda: pulls({"UCB1": 3}, ax=ax), TypeError, "pulls: runs must be a Run"),
    ):
        with refused(error, message):
            call()
