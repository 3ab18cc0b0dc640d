"""Tables on many runs, against pandas and SciPy by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import jaxbandit as jb
from jaxbandit.statistics.reports import holm, p_values
from tests.examples import refused

POLICIES = {"UCB1": jb.UCB1(), "Patient": jb.PatientBandits(0.3), "Uniform": jb.Uniform()}
COMMON = {"horizon": 60, "seeds": 12}


def build(delta, alpha):
    instance = jb.Instance(jb.Bernoulli([0.4, 0.4 + delta]), jb.Pareto([1.0, alpha]))
    return instance, POLICIES


@pytest.fixture(scope="module")
def data():
    return jb.sweep(build, {"delta": [0.1, 0.4], "alpha": [0.3, 0.8]}, key=5, progress=False, **COMMON)


@pytest.fixture(scope="module")
def runs():
    instance, policies = build(0.4, 0.3)
    return {name: jb.simulate_batch(5, instance, policy, **COMMON) for name, policy in policies.items()}


def test_a_summary_of_a_sweep_is_pandas_by_hand(data):
    table = jb.summary(data, level=0.9)
    long = data.final_regret.to_dataframe()["final_regret"].astype(float)
    by_cell = long.groupby(["delta", "alpha", "policy"], sort=False)
    assert table.index.names == ["delta", "alpha", "policy"]
    expected = by_cell.agg(["mean", "median", "sem", "size"])
    pd.testing.assert_index_equal(table.index, expected.index)
    for column, of in (("mean", "mean"), ("median", "median"), ("standard_error", "sem"), ("seeds", "size")):
        np.testing.assert_allclose(table[column], expected[of], rtol=1e-12, atol=1e-12)
    half = scipy.stats.t.ppf(0.95, 11) * expected["sem"]
    np.testing.assert_allclose(table["low"], expected["mean"] - half, atol=1e-12)
    np.testing.assert_allclose(table["high"], expected["mean"] + half, atol=1e-12)
    share = data.pulls_mean.isel(round=-1, arm=1) / 60
    for at, row in table.iterrows():
        cell = dict(zip(table.index.names, at, strict=True))
        assert row["best_arm"] == pytest.approx(float(share.sel(cell)))


def test_runs_by_name_give_the_numbers_of_the_sweep(data, runs):
    for of_runs, of_sweep in (
        (jb.summary(runs, instance=build(0.4, 0.3)[0]), jb.summary(data)),
        (jb.pairwise(runs), jb.pairwise(data)),
    ):
        pd.testing.assert_frame_equal(of_runs, of_sweep.xs((0.4, 0.3)), rtol=1e-6)
    assert "best_arm" not in jb.summary(runs)


def test_pairs_are_paired_tests_by_hand(data):
    table = jb.pairwise(data, level=0.9)
    assert table.index.names == ["delta", "alpha", "first", "second"]
    assert len(table) == 4 * 3
    for (delta, alpha, first, second), row in table.iterrows():
        x, y = (
            data.final_regret.sel(delta=delta, alpha=alpha, policy=p).to_numpy().astype(float) for p in (first, second)
        )
        test = scipy.stats.ttest_rel(x, y)
        assert row["difference"] == pytest.approx((x - y).mean())
        assert row["p_value"] == pytest.approx(test.pvalue)
        np.testing.assert_allclose(row[["low", "high"]].tolist(), test.confidence_interval(0.9))
    for _, cell in table.groupby(["delta", "alpha"]):
        np.testing.assert_allclose(cell["p_adjusted"], holm_by_hand(cell["p_value"].tolist()))


def holm_by_hand(p: list[float]) -> list[float]:
    """The least level at which Holm's procedure, step by step, rejects the hypothesis: by its definition."""

    def rejected(level: float) -> set[int]:
        found: set[int] = set()
        for k, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
            if p[i] > level / (len(p) - k):
                break
            found.add(i)
        return found

    levels = sorted({min(1.0, m * x) for m in range(1, len(p) + 1) for x in p} | {1.0})
    return [next((level for level in levels if i in rejected(level * (1 + 1e-12))), 1.0) for i in range(len(p))]


def test_holm_is_his_procedure():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.uniform(size=rng.integers(1, 8)) ** 3
        np.testing.assert_allclose(holm(p), holm_by_hand(p.tolist()))
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])


def test_differences_without_spread_are_sure():
    np.testing.assert_array_equal(p_values(np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])), [1, 0])


def test_families_of_true_hypotheses_are_refused_no_more_often_than_they_may():
    """Under equal means, any adjusted p-value of 6 pairs is below 0.05 in at most 5 % of 2000 families."""
    values = np.random.default_rng(3).normal(size=(2000, 4, 20))
    pairs = np.array(list(itertools.combinations(range(4), 2))).T
    adjusted = holm(p_values(values[:, pairs[0]] - values[:, pairs[1]]))
    false = (adjusted < 0.05).any(axis=1).mean()
    assert false < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 2000)
    assert false > 0


def test_axes_that_go_together_and_a_selection_keep_their_names():
    data = jb.sweep(build, {("delta", "alpha"): [(0.1, 0.3), (0.4, 0.8)]}, key=5, progress=False, **COMMON)
    assert jb.summary(data).index.names == ["delta", "alpha", "policy"]
    one = jb.summary(data.isel(delta_alpha=1).sel(policy="UCB1"))
    assert one.index.tolist() == ["UCB1"]
    assert one["mean"].iloc[0] == pytest.approx(jb.summary(data).loc[(0.4, 0.8, "UCB1"), "mean"])


def test_what_cannot_be_reported_is_refused(runs):
    single = jb.simulate(5, build(0.4, 0.3)[0], jb.UCB1(), horizon=60)
    fewer = jb.simulate_batch(5, build(0.4, 0.3)[0], jb.UCB1(), horizon=60, seeds=5)
    for call, error, message in (
        (lambda: jb.summary({"one": single}), ValueError, "summary: run 'one' must be a batch"),
        (lambda: jb.pairwise(runs | {"fewer": fewer}), ValueError, "all runs need the same seeds.*'fewer'"),
        (lambda: jb.pairwise({"one": fewer}), ValueError, "at least two policies"),
        (lambda: jb.summary(fewer), TypeError, "summary: data is a Run; pass results of simulate_batch by name"),
        (lambda: jb.summary({}), TypeError, "summary: data is empty"),
        (lambda: jb.pairwise({"a": fewer.regret}), TypeError, "pairwise: data: 'a' is a .*, not a Run"),
        (lambda: jb.summary(runs, level=95), ValueError, "summary: level must lie between 0 and 1"),
    ):
        with refused(error, message):
            call()
