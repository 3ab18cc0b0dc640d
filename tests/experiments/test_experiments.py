"""The experiments, as a user runs them."""

import csv
import json

import jax
import numpy as np
import pytest
import xarray as xr
import zarr

import jaxbandit as jb
from experiments import __main__ as command
from experiments.benchmark import benchmark, gradient_cost, peers
from experiments.gradients import adversary, ascent, learned_index, sensitivity, tune_alpha
from experiments.paper import adaptive, comparison, corollary1, coverage, fig2, fig3, fig4, fig5, lower_bound, rates
from experiments.report import Claim, Options, Progress
from tests.examples import public


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in command.NAMES if name not in command.ROOMS["benchmark"]])
def test_an_experiment_leaves_a_picture_its_numbers_and_its_verdicts(name, tmp_path, capsys):
    horizon = {"lower_bound": 90}.get(name, 250)  # a single one, with eight policies to compile
    arguments = [name, "--quick", "--seeds", "3", "--horizon", str(horizon), "--out", str(tmp_path)]
    in_store = ["--store", str(tmp_path / "store")] if name in command.FIGURES else []
    assert command.main([*arguments, *in_store]) == 0
    for ending in ("png", "pdf"):
        assert (tmp_path / f"{name}.{ending}").stat().st_size > 5000
    with (tmp_path / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    if "regret" in rows[0]:
        assert all(float(row["low"]) <= float(row["regret"]) <= float(row["high"]) for row in rows)
    assert {row["seeds"] for row in rows} == {"3"}
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["experiment"] == name
    assert record["settings"]["seeds"] == 3
    assert record["versions"]["jax"]
    assert record["devices"]
    assert record["wall_time_s"] > 0
    printed = capsys.readouterr()
    for claim in record["claims"]:
        assert claim["measured"]
        assert f"{'holds' if claim['holds'] else 'does not hold'}: {claim['text'][:40]}" in printed.out
    if not in_store:
        return
    (written,) = tmp_path.glob(f"{name}*.nc")
    with xr.open_dataset(written) as data:
        assert data.sizes["seed"] == 3
    (store,) = (tmp_path / "store").iterdir()
    done = zarr.open_group(store)["done"]
    assert isinstance(done, zarr.Array)
    assert np.asarray(done[:]).all()


def test_the_list_and_the_help_say_what_each_experiment_does(capsys):
    assert command.main(["list"]) == 0
    listed = capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    helped = capsys.readouterr().out
    for name in command.NAMES:
        assert command.describe(name) in listed
        assert command.describe(name) in helped


def test_a_folder_that_cannot_be_written_is_found_out_before_the_runs(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    for out in (file, file / "below"):
        assert command.main(["fig2", "--out", str(out)]) == 2
        printed = capsys.readouterr()
        assert "cannot be written" in printed.err
        assert "runs" not in printed.err.replace("cannot", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig9"], "invalid choice: 'fig9'"),
        (["fig2", "--seeds", "1"], "--seeds must be at least 2, got 1"),
        (["fig2", "--horizon", "0"], "--horizon must be at least 10, got 0"),
        (["fig2", "--seed", "4294967296"], "--seed must be from 0 to 2^32 - 1"),
        (["fig2", "--seeds", "many"], "invalid int value: 'many'"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_the_grids_are_as_fine_as_the_paper_s():
    assert len(fig2.ALPHAS) >= 25
    assert fig2.ALPHAS[[0, -1]].tolist() == [0.02, 0.5]
    assert fig2.SEEDS == 400
    assert len(fig3.GAPS) >= 20
    assert fig3.GAPS[[0, -1]].tolist() == [0.02, 0.6]
    assert fig3.SEEDS == 300
    assert comparison.SEEDS == 400


def test_ducb_ranks_the_arms_of_figure_5_rightly_from_m_92_on():
    assert [fig5.ranks_rightly(m) for m in (10, 50, 91, 92, 100, 200)] == [False, False, False, True, True, True]


def test_the_verdict_on_figure_2_follows_the_numbers():
    """A curve with its minimum at 0.3 bears the paper out; one that falls all the way does not."""
    alphas = np.linspace(0.02, 0.5, 25)
    noise = np.random.default_rng(0).normal(0, 0.01, (50, 25))
    vee = 80 + 10 * np.abs(alphas - 0.3) + noise
    assert [claim.holds for claim in fig2.claims(alphas, vee, 100.0)] == [True, True, True]
    falling = 80 - 10 * alphas + noise
    assert [claim.holds for claim in fig2.claims(alphas, falling, 70.0)][::2] == [False, False]


def test_every_public_policy_is_put_to_theorem_4():
    assert {type(policy).__name__ for policy in lower_bound.policies(0.3).values()} == public(jb.Policy)


def test_the_verdicts_on_theorem_4_follow_the_numbers():
    """Regrets that add up to q T bear it out; halves of them do not, nor does a feedback policy that is bound."""
    keys = [(a, 1000, label) for a in lower_bound.TAIL_INDEXES for label in lower_bound.policies(a)]
    rng = np.random.default_rng(0)
    regrets = {}
    for tail_index, horizon, label in keys:
        total = float(jb.theorem4_gap(horizon, tail_index)) * horizon
        on_a = total * (0.6 + 0.1 * rng.normal(size=20))
        scale = 1.0 if lower_bound.bound_by_theorem(label) else 0.1
        regrets[tail_index, horizon, label] = scale * np.stack([on_a, total - on_a], axis=1)
    assert [claim.holds for claim in lower_bound.claims(regrets)] == [True, True, True]
    halved = {key: regret / 2.5 for key, regret in regrets.items()}
    assert [claim.holds for claim in lower_bound.claims(halved)] == [False, False, True]
    alike = {key: regrets[key[0], key[1], "UCB1"] for key in regrets}
    assert [claim.holds for claim in lower_bound.claims(alike)] == [True, True, False]


def test_the_bias_that_coverage_reports_is_that_of_the_estimates():
    """Uniform play, α = 0.5: the mean error over 400 runs is minus the bias, within 5 standard errors."""
    found = coverage.estimates(jb.Uniform(), 0.5, horizon=200, seeds=400, seed=0)
    error = coverage.errors(found)[:, 20::30] + found.bias[:, 20::30]
    assert (np.abs(error.mean(axis=0)) < 5 * error.std(axis=0, ddof=1) / np.sqrt(400)).all()
    np.testing.assert_array_equal(found.pulls[0, :4], [[1, 1], [2, 1], [2, 2], [3, 2]])
    ages = np.arange(
        1, 200, 2.0
    )  # arm 1 in rounds 2, 4, ... 200: at the start of round 200 its pulls are 2, 4, ... old
    np.testing.assert_allclose(found.bias[0, -1, 1], 0.8 * np.mean((ages[:-1] + 1) ** -0.5), rtol=1e-6)
    assert (found.bias <= coverage.worst_bias(found.pulls, 0.5) * (1 + 1e-9)).all()


def test_coverage_counts_what_lies_outside():
    """Estimates of arm 0 that are off by ``errors`` after 100 pulls, those of arm 1 exact; α = 0.5, δ = 1."""
    n, mean = np.full((1, 4, 2), 100.0), np.array([0.6, 0.8])
    width, last = np.sqrt(np.log(2) / 200), np.mean(np.arange(1, 101) ** -0.5)
    errors = np.array([width + 0.01, -width - mean[0] * last - 0.01, -2 * width - 0.01, -2 * width - 0.21])
    found = coverage.Estimates(pulls=n, mean=mean + np.stack([errors, 0 * errors], axis=1)[None], bias=0 * n)
    missed = coverage.misses(found, 0.5, 1.0)
    assert [where[0, :, 0].tolist() for where in missed.values()] == [
        [False, False, False, True],
        [False, True, True, True],
        [True, True, False, -2 * width - 0.21 < -width - mean[0] * last],
    ]
    assert not any(where[..., 1].any() for where in missed.values())


def test_an_exponent_is_fitted_to_the_worst_gap():
    curve = {t: np.tile([t**0.7, 0.3 * t**0.9], (3, 1)) for t in (1, 10, 100)}
    np.testing.assert_allclose(rates.worst(curve), [1, 10**0.7, 100**0.7])
    assert rates.exponent(curve) == pytest.approx(0.7)
    assert rates.slopes(curve, rates.worst(curve)) == pytest.approx([0.7, 0.7])


def test_ducb_is_called_linear_where_it_is():
    """Regrets that are linear exactly where the limits are wrong, and then everywhere."""
    gaps = (0.04, 0.9)
    label = f"D-UCB m={rates.WINDOW}"
    wrong = [int(jb.ducb_consistent_window(rates.instance(gap, 0.3))) > rates.WINDOW for gap in gaps]
    assert wrong == [True, False]

    def curves(powers):
        return {
            (a, label): {t: np.tile(float(t) ** np.array(powers), (2, 1)) for t in (100, 1000)} for a in (0.2, 0.3, 0.5)
        }

    assert rates.where_ducb_is_linear(curves([1.0, 0.2]), gaps).holds
    assert not rates.where_ducb_is_linear(curves([1.0, 1.0]), gaps).holds


def test_the_conditions_of_corollary_1_need_more_rounds_than_there_are():
    assert not corollary1.conditions(10**6).holds
    assert corollary1.conditions(10**18).holds


def test_when_adaptation_begins_is_found():
    rounds, bar = np.array([1, 2, 3]), np.array([[0.0, 0.0, 0.1], [0.0, 0.2, 0.1], [0.0, 0.0, 0.3]])
    run = jb.Run(rounds, np.zeros((3, 3, 2)), np.zeros((3, 3)), {"alpha_bar": bar})
    assert adaptive.first_correction(run) == 3
    assert adaptive.first_correction(run._replace(diagnostics={"alpha_bar": 0 * bar})) == 0
    # The 26 000 pulls of which AdaptPatientBandits speaks: T = 3000, α̂ = 1/2.
    assert adaptive.pulls_until_positive(0.5, 3000) == pytest.approx(26_000, rel=0.01)


def test_the_claim_about_round_200_is_not_made_where_it_cannot_be(tmp_path):
    options = Options(seeds=3, horizon=50, out=tmp_path)
    runs = comparison.compare("fig4", fig4.TAIL_INDEXES, options)[50]
    assert not any("m + K" in claim.text for claim in fig4.claims(50, runs))


@pytest.mark.slow
def test_the_peers_of_the_benchmark_do_the_same_job():
    """Mean final regret of each and of the engine: within 5 standard errors of their difference."""
    horizon, runs, num_arms = 500, 400, 3
    law = benchmark.instance(num_arms)
    means, tails = np.asarray(law.means), np.linspace(1.0, 0.3, num_arms)
    ours = jb.simulate_batch(0, law, jb.PatientBandits(0.3), horizon=horizon, seeds=runs).pulls[:, -1]
    programs = {
        "obvious": peers.obvious_jax(jax.random.key(1), means, tails, 0.3, horizon, runs),
        "numpy": peers.numpy_vectorised(np.random.default_rng(1), means, tails, 0.3, horizon, runs),
        "numba": peers.numba_loop(1, means, tails, 0.3, horizon, runs),
    }
    expected = np.asarray(ours) @ np.asarray(law.gaps)
    for name, pulls in programs.items():
        regret = np.asarray(pulls) @ np.asarray(law.gaps)
        assert (np.asarray(pulls).sum(axis=1) == horizon).all()
        error = np.hypot(regret.std(ddof=1), expected.std(ddof=1)) / np.sqrt(runs)
        assert abs(regret.mean() - expected.mean()) < 5 * error, name


def test_the_benchmark_compares_what_it_has_measured():
    ns = {"engine, K = 2": 10.0, "Numba loop, K = 2": 20.0, "obvious jit(vmap(scan)), K = 2": 30.0}
    assert [claim.holds for claim in benchmark.ratios(ns, {})] == [True, False]
    assert benchmark.ratios(ns, {})[0].measured == "0.50: 10 against 20"


def test_the_gradients_are_compared_with_the_simulation_alone():
    ns = {gradient_cost.PLAIN: 10.0, gradient_cost.SCORE: 50.0, gradient_cost.DIFFERENCES: 100.0}
    assert [claim.holds for claim in benchmark.ratios(ns, {})] == [True, False]


@pytest.mark.skipif(jax.config.jax_numpy_dtype_promotion == "strict", reason="optax's schedules mix types")
def test_gradient_steps_find_a_minimum():
    """Of ``(x - 1)^2 + (y + 2)^2``, with noise that has mean 0."""

    def loss(x, key):
        return jax.numpy.sum((x - jax.numpy.array([1.0, -2.0]) + 0.1 * jax.random.normal(key, (2,))) ** 2)

    with Progress("steps", 200) as progress:
        path = ascent.minimise(loss, [0.0, 0.0], seed=0, steps=200, rate=0.1, progress=progress, runs=1)
    np.testing.assert_allclose(path.parameters[-1], [1, -2], atol=0.05)
    assert path.parameters.shape == (201, 2)
    assert path.value.shape == (200,)


@pytest.mark.parametrize("y", [0.03, 0.25, 0.48])
def test_a_bounded_parameter_is_its_own_inverse(y):
    assert float(ascent.between(0.02, 0.5, ascent.unbounded(0.02, 0.5, y))) == pytest.approx(y, rel=1e-5)


def test_learning_starts_from_the_paper_s_constants():
    np.testing.assert_allclose(
        [float(x) for x in learned_index.constants(learned_index.start())], [1, 2, 0.3], rtol=1e-5
    )


def test_the_verdict_on_tuning_follows_the_numbers():
    grid = np.linspace(0.02, 0.5, 25)
    noise = np.random.default_rng(0).normal(0, 0.01, (50, 1))
    curve = 80 + 10 * np.abs(grid - 0.15) + noise
    ends = {0.03: curve[:, 6] + 0.1, 0.48: curve[:, 6] + 1}
    assert [claim.holds for claim in tune_alpha.claims(grid, curve, {0.03: 0.15, 0.48: 0.3}, ends)] == [
        True,
        False,
        False,
    ]


def test_the_verdict_on_the_worst_case_follows_the_numbers():
    gaps = np.linspace(0.1, 0.5, 5)
    noise = np.random.default_rng(0).normal(0, 0.1, (50, 1))
    grid = 100 - 10 * np.abs(gaps - 0.3) + noise
    found = adversary.Worst(gap=0.3, tail_index=0.31, regret=grid[:, 2], grid=grid)
    missed = adversary.Worst(gap=0.1, tail_index=0.6, regret=grid[:, 2] - 90, grid=grid)
    assert [claim.holds for claim in adversary.claims("", gaps, found, 1000)] == [True, True, True]
    assert [claim.holds for claim in adversary.claims("", gaps, missed, 1000)] == [False, False, False]


def test_derivatives_that_do_not_fit_the_curve_are_found_out():
    """R(Δ) = 100 Δ^2, with its derivative and with twice its derivative."""

    def rows(factor):
        return [
            {"gap": gap, "regret": 100 * gap**2, "low": 100 * gap**2 - 0.01, "high": 100 * gap**2 + 0.01}
            | {"d_mean_2": factor * 200 * gap, "d_mean_2_error": 0.01}
            for gap in np.linspace(0.1, 0.6, 6)
        ]

    assert max(np.abs(sensitivity.misfits(rows(1)))) < 1
    assert min(np.abs(sensitivity.misfits(rows(2)))) > 4


def test_a_claim_reads_as_a_sentence():
    assert str(Claim("it rains", True, "3 mm")) == "holds: it rains [3 mm]"
    assert str(Claim("it snows", False, "0 cm")) == "does not hold: it snows [0 cm]"
