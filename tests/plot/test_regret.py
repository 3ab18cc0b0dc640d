"""Curves of regret: their lines and bands are the numbers they say they are."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.plot import regret_curves
from jaxbandit.plot.style import COLOURS
from tests.examples import instance, refused

POLICIES = {"UCB1": jb.UCB1(), "Uniform": jb.Uniform()}
COMMON = {"horizon": 50, "seeds": 9}


def build(gap):
    return jb.Instance(jb.Bernoulli([0.3, 0.3 + gap]), jb.Pareto([1.0, 0.5])), POLICIES


@pytest.fixture(scope="module")
def runs():
    return {name: jb.simulate_batch(0, build(0.4)[0], policy, **COMMON) for name, policy in POLICIES.items()}


@pytest.fixture(scope="module")
def data():
    return jb.sweep(build, {"gap": [0.2, 0.4]}, key=0, progress=False, **COMMON)


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def ends(ax, i: int, rounds) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of the i-th band at every round."""
    corners = ax.collections[i].get_paths()[0].vertices
    at = [corners[corners[:, 0] == t][:, 1] for t in np.asarray(rounds)]
    return np.array([y.min() for y in at]), np.array([y.max() for y in at])


def test_a_curve_is_the_mean_and_its_band_the_middle_of_the_runs(ax, runs):
    assert regret_curves(runs, ax=ax) is ax
    regret = np.asarray(runs["UCB1"].regret)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), regret.mean(axis=0), rtol=1e-5)
    for found, q in zip(ends(ax, 0, runs["UCB1"].rounds), (0.05, 0.95), strict=True):
        np.testing.assert_allclose(found, np.quantile(regret, q, axis=0), rtol=1e-5, atol=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["UCB1", "Uniform"]
    assert ax.get_legend().get_title().get_text() == "mean of 9 runs\nband: 90 % of the runs"
    assert [line.get_color() for line in ax.lines] == list(COLOURS[:2])


def test_a_band_of_the_mean_is_its_interval(ax, runs):
    regret_curves(runs, ax=ax, band="mean", level=0.8)
    interval = jb.mean_ci(runs["UCB1"].regret, level=0.8)
    for found, expected in zip(ends(ax, 0, runs["UCB1"].rounds), (interval.low, interval.high), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert "80 % interval of the mean" in ax.get_legend().get_title().get_text()


@pytest.mark.parametrize("options", [{}, {"band": "mean"}])
def test_a_cell_of_a_sweep_is_drawn_like_the_same_runs(runs, data, options):
    figure, (left, right) = plt.subplots(1, 2)
    regret_curves(runs, ax=left, **options)
    regret_curves(data.sel(gap=0.4), ax=right, **options)
    for mine, other in zip(left.lines, right.lines, strict=True):
        np.testing.assert_allclose(mine.get_xydata(), other.get_xydata(), rtol=1e-5, atol=1e-6)
    for i in range(2):
        np.testing.assert_allclose(ends(left, i, data["round"]), ends(right, i, data["round"]), rtol=1e-4, atol=1e-4)
    assert left.get_legend().get_title().get_text() == right.get_legend().get_title().get_text()
    plt.close(figure)


def test_other_quantiles_come_from_curves_that_were_kept(ax, runs):
    kept = jb.sweep(build, {"gap": [0.4]}, key=0, progress=False, curves=9, **COMMON).isel(gap=0)
    regret_curves(kept, ax=ax, level=0.5)
    low, high = np.quantile(np.asarray(runs["UCB1"].regret), [0.25, 0.75], axis=0)
    np.testing.assert_allclose(ends(ax, 0, kept["round"]), (low, high), rtol=1e-5, atol=1e-6)


def test_a_band_of_fewer_runs_than_the_mean_says_so(ax):
    few = jb.sweep(build, {"gap": [0.4]}, key=0, progress=False, curves=3, **COMMON).isel(gap=0)
    regret_curves(few, ax=ax)
    seeds = COMMON["seeds"]
    assert ax.get_legend().get_title().get_text() == f"mean of {seeds} runs\nband: 90 % of the first 3 runs"


def test_theory_and_logarithmic_axes_on_request(ax, runs):
    slope = float(jb.lai_robbins_slope(build(0.4)[0]))
    regret_curves(runs, ax=ax, log="xy", theory={"Lai–Robbins": lambda t: slope * np.log(t), "T": lambda t: 50.0})
    np.testing.assert_allclose(ax.lines[2].get_ydata(), slope * np.log(np.arange(1.0, 51)))
    assert (ax.lines[3].get_ydata() == 50).all()
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_legend().get_texts()[2].get_text() == "Lai–Robbins"


def test_without_axes_there_are_new_ones_with_room_for_a_legend(runs):
    plt.close("all")
    ax = regret_curves(runs)
    assert ax is plt.gca()
    assert ax.figure.get_constrained_layout()
    plt.close("all")


def test_what_has_no_curve_is_refused(ax, runs, data):
    single = jb.simulate(0, instance(), jb.UCB1(), horizon=50)
    for call, error, message in (
        (lambda: regret_curves({"one": single}, ax=ax), ValueError, "run 'one' must be a batch of seeds"),
        (lambda: regret_curves(single, ax=ax), TypeError, "runs is a Run; pass results of simulate_batch by name"),
        (lambda: regret_curves({}, ax=ax), TypeError, "runs is empty; pass"),
        (lambda: regret_curves({"one": single.regret}, ax=ax), TypeError, "runs: 'one' is a .*, not a Run; pass"),
        (lambda: regret_curves(runs, ax=plt.gcf()), TypeError, "ax must be matplotlib axes, got Figure"),
        (lambda: regret_curves(data, ax=ax), ValueError, "runs must be of a single cell.*'gap': 2"),
        (lambda: regret_curves(data.isel(gap=0), ax=ax, level=0.42), ValueError, "have not kept the quantiles"),
        (lambda: regret_curves(runs, ax=ax, band="both"), ValueError, "band must be 'runs' or 'mean'"),
        (lambda: regret_curves(runs, ax=ax, log="z"), ValueError, "log must be"),
        (lambda: regret_curves(runs, ax=ax, level=90), ValueError, "level must lie between 0 and 1"),
    ):
        with refused(error, message):
            call()
