"""The map of best policies."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import Rectangle

import jaxbandit as jb
from jaxbandit.plot import ranking
from jaxbandit.plot.grid import ranks
from tests.examples import refused


def build(delta, alpha):
    instance = jb.Instance(jb.Bernoulli([0.4, 0.4 + delta]), jb.Pareto([1.0, alpha]))
    return instance, {"UCB1": jb.UCB1(), "Patient": jb.PatientBandits(alpha), "Uniform": jb.Uniform()}


@pytest.fixture(scope="module")
def data():
    axes = {"delta": [0.02, 0.2, 0.5], "alpha": [0.3, 0.8]}
    return jb.sweep(build, axes, horizon=150, seeds=10, key=1, progress=False)


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.mark.parametrize(("x", "y"), [(None, None), ("delta", None), (None, "alpha")])
def test_a_cell_has_the_colour_and_regret_of_its_best_policy_and_is_hatched_in_doubt(ax, data, x, y):
    assert ranking(data, x=x, y=y, ax=ax) is ax
    rows, columns = ("delta", "alpha") if (x, y) == (None, None) else ("alpha", "delta")
    assert (ax.get_ylabel(), ax.get_xlabel()) == (rows, columns)
    mean = data.final_regret.mean("seed").transpose(rows, columns, "policy").to_numpy()
    colours = np.asarray(ax.collections[0].get_array()).reshape(mean.shape[:2])
    np.testing.assert_array_equal(colours, mean.argmin(axis=-1))
    written = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert written == {at: f"{mean[at].min():.3g}" for at in np.ndindex(mean.shape[:2])}
    hatched = {(p.get_y() + 0.5, p.get_x() + 0.5) for p in ax.patches if isinstance(p, Rectangle)}
    for at in np.ndindex(mean.shape[:2]):
        cell = {rows: data[rows][at[0]].item(), columns: data[columns][at[1]].item()}
        regret = data.final_regret.sel(cell).transpose("policy", "seed").to_numpy().astype(float)
        assert (at in hatched) == ranks(regret[None], 0.95).ties.any()


def test_policies_that_are_best_nowhere_are_named_too_and_numbers_are_written_out(ax, data):
    regret = data.final_regret + 1000 + 5000 * (data.policy != "UCB1")
    large = data.assign(final_regret=regret).assign_coords(delta=[1000.0, 20_000.0, 0.5])
    ranking(large, y="delta", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["UCB1", "nowhere: Patient,\nUniform"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1000", "20000", "0.5"]
    assert all(text.get_text().isdigit() for text in ax.texts)


def test_ties_are_what_paired_tests_do_not_tell_apart():
    rng = np.random.default_rng(0)
    luck = rng.normal(size=30)
    same = luck + 0.01 * rng.normal(size=30)
    regret = np.stack([luck, same, luck + 1 + 0.01 * rng.normal(size=30)])[None]
    found = ranks(regret, 0.95)
    assert found.best[0] in (0, 1)
    np.testing.assert_array_equal(found.ties[0], np.arange(3) == 1 - found.best[0])
    np.testing.assert_allclose(found.mean[0], regret[0].mean(axis=1))


def test_what_makes_no_map_is_refused(ax, data):
    missing = data.assign(final_regret=data.final_regret.where(data.seed > 0))
    for call, error, message in (
        (lambda: ranking(data.isel(delta=0), ax=ax), ValueError, r"data must have two axes, got \['alpha'\]"),
        (lambda: ranking(data.sel(policy=["UCB1"]), ax=ax), ValueError, "at least two policies"),
        (lambda: ranking(data, x="policy", ax=ax), ValueError, "x and y must be the axes"),
        (lambda: ranking({}, ax=ax), TypeError, "data must be the dataset of sweep"),
        (lambda: ranking(missing, ax=ax), ValueError, "runs that are still missing"),
    ):
        with refused(error, message):
            call()
