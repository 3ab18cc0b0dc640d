"""Figures from results."""

import matplotlib.pyplot as plt
import numpy as np

import jaxbandit as jb
from jaxbandit.plot import regret_curves
from tests.examples import instance, refused


def test_a_curve_is_the_mean_and_its_band_the_interval():
    runs = jb.simulate_batch(0, instance(), jb.UCB1(), horizon=50, seeds=5)
    figure, ax = plt.subplots()
    assert regret_curves({"UCB1": runs}, ax=ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.asarray(runs.regret).mean(axis=0), rtol=1e-5)
    assert ax.get_legend().get_texts()[0].get_text() == "UCB1"
    assert len(ax.collections) == 1
    plt.close(figure)


def test_a_single_run_has_no_mean_to_draw():
    run = jb.simulate(0, instance(), jb.UCB1(), horizon=50)
    with refused(ValueError, "regret_curves: run 'one' must be a batch of seeds"):
        regret_curves({"one": run})
