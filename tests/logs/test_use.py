"""From a fit to instances, text, pictures and files: on the log that ships with the package."""

import csv
from functools import cache

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import __main__ as command
from jaxbandit.logs.tails import assumption1, assumption2
from tests.examples import refused

COLUMNS = {"arm": "campaign", "pulled": "click", "converted": "sale", "until": "2026-11-15"}


@cache
def example() -> jb.LogFit:
    return jb.fit_log(jb.read_log(jb.example_log(), **COLUMNS))


def test_truth_is_within_what_is_said_of_the_example():
    for arm, rate in zip(example().arms, (0.06, 0.09, 0.11), strict=True):
        assert arm.lower <= rate <= arm.upper


def test_an_instance_has_the_rates_and_laws_of_the_fit():
    fit = example()
    instance = fit.instance()
    assert instance.num_arms == 3
    rates = [arm.incidence[0] if arm.law_free else arm.best.rate for arm in fit.arms]
    np.testing.assert_allclose(instance.means, rates, rtol=1e-5)
    run = jb.simulate(0, instance, jb.DUCB(window=50, cdf=jb.Pareto(0.7)), horizon=100)
    assert int(run.pulls[-1].sum()) == 100


def test_instances_of_the_bootstrap_can_be_stacked():
    instances = example().bootstrap(6, key=0)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *instances)
    assert stacked.reward.mean.shape == (6, 3)
    tails = jax.vmap(lambda instance: instance.delay.survival(500))(stacked)
    assert tails.shape == (6, 3)
    again = example().bootstrap(6, key=0)
    np.testing.assert_array_equal(stacked.reward.mean, [instance.reward.mean for instance in again])
    keyed = example().bootstrap(1, key=jax.random.key(1))
    assert not np.array_equal(keyed[0].reward.mean, instances[0].reward.mean)


def test_the_bootstrap_varies_as_much_as_the_standard_error_says():
    """Pulls of 320 rounds and more, LogNormal: the spread of 60 rates is the standard error, within 5 of its own."""
    random = np.random.default_rng(0)
    n = 5000
    delay = np.ceil(10 * np.exp(random.normal(size=n))).astype(np.int32)
    age = random.integers(200, 400, n).astype(np.int32)
    delay = np.where((random.random(n) < 0.2) & (delay <= age), delay, -1).astype(np.int32)
    fit = jb.fit_log(jb.Log(("a",), np.zeros(n, np.int32), age, delay, 1.0, "round"))
    rates = np.array([float(instance.reward.mean[0]) for instance in fit.bootstrap(60, key=0)])
    error = fit.arms[0].best.rate_error
    assert rates.std(ddof=1) == pytest.approx(error, abs=5 * error / np.sqrt(2 * 59))
    assert abs(rates.mean() - fit.arms[0].best.rate) < 5 * error / np.sqrt(60)


def with_a_silent_arm() -> jb.LogFit:
    delay = np.array([1, 2, 3, 5, 9, -1, -1, -1, -1, -1] * 20 + [-1] * 300, np.int32)
    arm = np.repeat([0, 1], [200, 300]).astype(np.int32)
    return jb.fit_log(jb.Log(("a", "silent"), arm, np.full(500, 60, np.int32), delay, 1.0, "round"))


def test_a_silent_arm_has_a_small_rate_and_the_delays_of_the_others():
    fit = with_a_silent_arm()
    rates = np.array([np.asarray(instance.reward.mean) for instance in fit.bootstrap(200, key=0)])
    assert rates[:, 1].mean() == pytest.approx(1 / 302, abs=5 / 302 / np.sqrt(200))
    assert float(fit.instance().means[1]) == pytest.approx(1 / 302, rel=0.05)
    assert type(fit.delay_law().laws[1]) is type(fit.delay_law().laws[0])
    assert "silent has no conversion in 300 pulls" in str(fit)


def test_a_bootstrap_of_no_instances_is_refused():
    with refused(ValueError, "bootstrap: n must be an integer from 1"):
        example().bootstrap(0, key=0)


def test_where_no_family_fits_the_product_limit_stands_for_the_law():
    """Half of the delays are 1, half 40: nobody's law. Within the ages seen the instance has the counted incidence."""
    random = np.random.default_rng(1)
    n = 4000
    delay = np.where(random.random(n) < 0.3, random.choice([1, 2, 3, 40, 41], n), -1).astype(np.int32)
    fit = jb.fit_log(jb.Log(("a",), np.zeros(n, np.int32), np.full(n, 60, np.int32), delay, 1.0, "round"))
    (arm,) = fit.arms
    assert arm.law_free
    assert (arm.lower, arm.upper) == (arm.incidence[1], 1)
    assert "no family describes its delays" in str(fit)
    instance = fit.instance()
    np.testing.assert_allclose(instance.means * instance.delay.cdf(10), fit.curves.at[0, 10], rtol=1e-5)
    (drawn,) = fit.bootstrap(1, key=0)
    assert float(drawn.means[0] * drawn.delay.cdf(10)[0]) == pytest.approx(fit.curves.at[0, 10], abs=0.03)


@cache
def heavy() -> jb.LogFit:
    """Delays with ``P(D > m) = (1 + m)^-0.5``, to 5000 rounds and more: Assumption 1 holds for tail indexes up to 0.5
    and somewhat above at ages that are seen, and with 0.5 Assumption 2 for c up to ``2^-0.5``, at m = 1."""
    random = np.random.default_rng(3)
    n = 40_000
    delay = np.minimum(np.ceil(random.random(n) ** -2 - 1), 10**9).astype(np.int32)
    age = random.integers(5000, 8000, n).astype(np.int32)
    delay = np.where((random.random(n) < 0.5) & (delay <= age), np.maximum(delay, 1), -1).astype(np.int32)
    return jb.fit_log(jb.Log(("a",), np.zeros(n, np.int32), age, delay, 1.0, "round"))


def test_the_tail_index_is_what_the_band_allows():
    """The largest: with it the band allows every age, and with a larger one not."""
    fit = heavy()
    tail = assumption1(fit, 0)
    some = (fit.table.edges >= 2) & ~np.isnan(fit.curves.high[0])
    ages, least = fit.table.edges[some], 1 - fit.curves.high[0][some] / fit.arms[0].best.rate
    assert (tail.first, tail.last) == (2, ages[least > 0][-1])
    assert (least <= ages**-tail.tail_index * (1 + 1e-9)).all()
    assert (least > ages ** -(tail.tail_index + 1e-3)).any()
    assert 0.5 < tail.tail_index < 0.7
    c = assumption2(fit, 0, 0.5)
    most = 1 - fit.curves.low[0] / fit.arms[0].best.rate
    seen = ~np.isnan(most) & (fit.table.edges >= 1)
    ages, most = fit.table.edges[seen], most[seen]
    assert (most >= c * ages**-0.5 * (1 - 1e-9)).all()
    assert (most < (c + 1e-3) * ages**-0.5).any()
    assert 0.5**0.5 < c < 0.8
    assert assumption2(fit, 0, 2.0) == pytest.approx(most[0], abs=1e-9)


def test_the_text_says_what_is_seen_of_the_tails():
    tail = assumption1(heavy(), 0)
    assert f"Tail of a, ages 2 to {tail.last} rounds" in str(heavy())
    assert (
        f"Assumption 1 may hold for tail indexes up to {tail.tail_index:.2g}, with that index Assumption 2 for c"
        in str(heavy())
    )
    assert "a LogNormal tail does not meet Assumption 2 in the long run" in str(example())
    short = jb.Log(
        ("a",), np.zeros(100, np.int32), np.full(100, 9, np.int32), np.array([1, 5, 9, -1] * 25), 1.0, "round"
    )
    assert "Tail of a: unknown, as the rate is." in str(jb.fit_log(short))


def test_the_picture_has_two_panels_and_every_arm():
    left, right = example().plot()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["A", "B", "C"]
    assert [text.get_text()[:2] for text in right.get_legend().get_texts()] == ["A:", "B:", "C:", "th"]
    plt.close(left.figure)


def test_the_command_writes_tables_a_picture_and_a_page(tmp_path, capsys):
    arguments = ["log", str(jb.example_log()), "--arm", "campaign", "--pulled", "click", "--converted", "sale"]
    arguments += ["--until", "2026-11-15", "--out", str(tmp_path / "report")]
    assert command.main(arguments) == 0
    assert str(example()).splitlines()[0] in capsys.readouterr().out
    with (tmp_path / "report" / "arms.csv").open() as file:
        assert [row["arm"] for row in csv.DictReader(file)] == ["A", "B", "C"]
    assert (tmp_path / "report" / "log.png").stat().st_size > 10_000
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Read this first" in page
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "arms.csv",
        "families.csv",
        "log.png",
        "report.html",
    ]


@pytest.mark.slow
def test_the_command_compares_policies_over_what_is_to_come(tmp_path, capsys):
    arguments = ["log", str(jb.example_log()), "--arm", "campaign", "--pulled", "click", "--converted", "sale"]
    arguments += ["--until", "2026-11-15", "--out", str(tmp_path), "--horizon", "40", "--instances", "3"]
    assert command.main([*arguments, "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "40 rounds after the 12 000 of the history, 3 instances with 2 runs each" in said
    page = (tmp_path / "report.html").read_text()
    assert "Which policy to run" in page
    assert "brings most" in page
    with (tmp_path / "decision.csv").open() as file:
        assert {row["candidate"] for row in csv.DictReader(file)} == set(command.candidates(example()))
    assert (tmp_path / "decision.png").stat().st_size > 10_000
    assert command.main([*arguments, "--seeds", "1"]) == 2
    assert "compare: seeds must be an integer from 2" in capsys.readouterr().err


@pytest.mark.slow
def test_of_the_campaigns_the_policies_that_know_the_delays_of_each_are_named():
    """Sales so far put B before C, which is better, and policies blind to delays pay for it. The two that are told
    the laws of each campaign share the first place; without the one, the other is named."""
    log = jb.read_log(jb.example_log(), **COLUMNS)
    assert "these cannot be told apart: B and C (" in str(example())
    assert "The orders disagree: most conversions so far for each pull B" in str(example())
    some = example().bootstrap(16, key=0)
    decision = jb.compare(command.candidates(example()), some, horizon=10_000, seeds=4, key=0, history=log)
    best, table = decision.probability_best(), decision.table()
    assert best["D-UCB"] + best["Thompson corrected for delays"] > 0.5
    assert set(table.index[:2]) == {"D-UCB", "Thompson corrected for delays"}
    assert table.low["PatientBandits(0.2)"] > 0
    assert table.low["every arm in turn"] > 0
    keep = [i for i, name in enumerate(decision.names) if name != "D-UCB"]
    names = tuple(decision.names[i] for i in keep)
    others = decision._replace(names=names, regret=decision.regret[keep], seen=decision.seen[keep])
    chance = others.probability_best()["Thompson corrected for delays"]
    assert chance > 0.5
    assert (
        f"Thompson corrected for delays brings most: it is the best of 5 candidates with probability {chance:.2f}"
        in str(others)
    )


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    columns = ["--arm", "x", "--pulled", "click", "--converted", "sale", "--until", "2026-11-15"]
    file = tmp_path / "file"
    file.write_text("")
    assert command.main(["log", "no.csv", *columns, "--out", str(file / "below")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert command.main(["log", str(tmp_path / "no.csv"), *columns, "--out", str(tmp_path)]) == 2
    assert "no.csv" in capsys.readouterr().err
    assert command.main(["log", str(jb.example_log()), *columns, "--out", str(tmp_path)]) == 2
    assert "the log has no column 'x'" in capsys.readouterr().err


def test_the_help_has_an_example(capsys):
    with pytest.raises(SystemExit):
        command.main(["log", "--help"])
    assert "python -m jaxbandit log clicks.csv --arm campaign" in capsys.readouterr().out


def test_the_history_of_a_log_counts_rounds_in_pulls():
    """Clicks at ages 9, 7, 7, 4, 0; sales after 1 (age 8), 3 (age 4) and 4 rounds (age 0)."""
    arm, age = np.array([1, 0, 2, 1, 0], np.int32), np.array([7, 9, 7, 0, 4], np.int32)
    log = jb.Log(("a", "b", "c"), arm, age, np.array([3, 1, -1, -1, 4], np.int32), 1.0, "round")
    history = log.history()
    np.testing.assert_array_equal(history.arms, [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(history.delays, [1, 2, -1, 1, -1])
    np.testing.assert_array_equal(history.ages, [9, 7, 7, 4, 0])
    assert history.num_arms == 3


def test_a_run_starts_from_a_log():
    log = jb.read_log(jb.example_log(), **COLUMNS)
    history = log.history()
    assert int((history.delays >= 0).sum()) == int((log.delay > 0).sum())
    run = jb.simulate(0, example().instance(), jb.UCB1(), horizon=50, history=history, rewards=True)
    assert int(run.pulls[-1].sum()) == 50
    with refused(ValueError, "history has 3 arms and instance 2"):
        jb.simulate(0, jb.Instance(jb.Bernoulli([0.1, 0.2]), jb.Pareto(0.5)), jb.UCB1(), horizon=5, history=history)
