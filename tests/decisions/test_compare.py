"""Candidates compared over instances."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import jaxbandit as jb
from jaxbandit.decisions.decision import interval
from tests.examples import refused

HORIZON = 60
CANDIDATES = {"UCB1": jb.UCB1(), "patient": jb.PatientBandits(0.3, 0.2, 0.1), "uniform": jb.Uniform()}
OPTIONS = {"horizon": HORIZON, "seeds": 3, "key": 0}


def instances(n: int = 5) -> list[jb.Instance]:
    means = np.random.default_rng(0).uniform(0.2, 0.8, (n, 2))
    return [jb.Instance(jb.Bernoulli(mean), jb.Geometric([1.0, 6.0])) for mean in means]


def history() -> jb.History:
    return jb.History([0, 1] * 6, [1, -1, 2] * 3 + [-1] * 3)


@cache
def decision() -> jb.Decision:
    return jb.compare(CANDIDATES, instances(), history=history(), **OPTIONS)


def test_every_candidate_is_run_on_every_instance_with_the_same_luck():
    for p, policy in enumerate(CANDIDATES.values()):
        for i, instance in enumerate(instances()):
            runs = jb.simulate_batch(0, instance, policy, horizon=HORIZON, seeds=3, rewards=True, history=history())
            assert runs.rewards is not None
            np.testing.assert_array_equal(decision().regret[p, i], runs.regret[:, -1])
            np.testing.assert_array_equal(decision().seen[p, i], runs.rewards.seen[:, -1])


def test_the_table_has_what_was_run():
    table, regret = decision().table(), decision().regret
    assert list(table.regret) == sorted(regret.mean(axis=(1, 2)))
    best = decision().names.index(decision().best)
    assert table.index[0] == decision().best
    assert table.lost.iloc[0] == table.low.iloc[0] == table.high.iloc[0] == 0
    least = regret.mean(axis=2).argmin(axis=0)
    for p, name in enumerate(CANDIDATES):
        row = table.loc[name]
        assert row.lost == pytest.approx((regret[p] - regret[best]).mean())
        assert row.probability_best == pytest.approx((least == p).mean())
        assert row.low <= row.lost <= row.high
        assert row.seen == decision().seen[p].mean()
        most = np.mean([HORIZON * float(instance.means.max()) for instance in instances()])
        assert row.conversions + row.regret == pytest.approx(most)
    assert table.probability_best.sum() == pytest.approx(1)


def test_candidates_that_do_the_same_share_the_probability():
    twins = jb.compare({"a": jb.Uniform(), "b": jb.Uniform()}, instances(3), **OPTIONS)
    assert twins.probability_best() == {"a": 0.5, "b": 0.5}
    assert twins.difference("b") == (0, 0, 0)


def test_the_interval_covers_the_truth_at_least_as_often_as_it_says():
    """Effects of instance, of run and of both, all normal; the truth is one more instance. Its square is unbiased."""
    random = np.random.default_rng(0)
    n, seeds, repeats, level, of_run = 12, 5, 4000, 0.9, 2.0
    covered, squares = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        effect = random.normal(size=n + 1)
        d = 3 + effect[1:, None] + of_run * random.normal(size=seeds) + random.normal(size=(n, seeds))
        mean, half = interval(d, level)
        covered[i] = abs(3 + effect[0] - mean) <= half
        squares[i] = (half / stats.t.ppf((1 + level) / 2, n - 1)) ** 2
    assert covered.mean() > level - 5 * np.sqrt(level * (1 - level) / repeats)
    expected = (1 + 1 / seeds) * (1 + 1 / n) + (of_run**2 + 1 / n) / seeds
    assert abs(squares.mean() - expected) < 5 * stats.sem(squares)


def test_of_a_single_instance_the_interval_is_students():
    d = np.random.default_rng(1).normal(size=(1, 20))
    mean, half = interval(d, 0.95)
    low, high = stats.t.interval(0.95, 19, d.mean(), stats.sem(d[0]))
    np.testing.assert_allclose((mean - half, mean + half), (low, high))
    alone = jb.compare(CANDIDATES, instances(1)[0], **OPTIONS)
    assert "single instance" in str(alone)


def test_the_text_says_who_loses_how_much_against_whom():
    text = str(decision())
    table = decision().table()
    assert text.startswith("60 rounds after the 12 of the history, 5 instances with 3 runs each")
    assert f"{table.index[0]} brings most: it is the best of 3 candidates with probability" in text
    row = table.iloc[-1]
    what = "conversion" if round(row.lost) == 1 else "conversions"
    assert f"{table.index[-1]} loses {row.lost:.0f} {what} [{row.low:.0f}, {row.high:.0f}] of" in text


def test_constants_are_chosen_on_the_instances_that_are_not_judged():
    scales = [0.0, 0.3, 3.0]
    tuned = jb.Tuned(lambda scale: jb.PatientBandits(0.3, scale, 0.1), scales)
    found = jb.compare({"tuned": tuned, "uniform": jb.Uniform()}, instances(), **OPTIONS)
    first, judged = instances()[::2], instances()[1::2]
    means = [
        np.mean([jb.simulate_batch(0, i, tuned.make(s), horizon=HORIZON, seeds=3).regret[:, -1] for i in first])
        for s in scales
    ]
    value = scales[int(np.argmin(means))]
    assert found.constants == {"tuned": (value, tuple(scales))}
    again = jb.compare({"tuned": tuned.make(value), "uniform": jb.Uniform()}, judged, **OPTIONS)
    np.testing.assert_array_equal(found.regret, again.regret)
    assert found.table().constant["tuned"] == value
    assert f"tuned has the constant {value}" in str(found)
    assert ("edge of its range" in str(found)) == (value != 0.3)


def test_a_comparison_goes_on_from_its_store_and_on_any_executor(tmp_path):
    candidates = CANDIDATES | {"tuned": jb.Tuned(jb.PatientBandits, [0.1, 0.4])}
    whole = jb.compare(candidates, instances(), **OPTIONS)
    part = {"UCB1": candidates["UCB1"], "tuned": candidates["tuned"]}
    jb.compare(part, instances(), store=tmp_path / "runs", **OPTIONS)
    with ThreadPoolExecutor(1) as executor:
        found = jb.compare(candidates, instances(), store=tmp_path / "runs", executor=executor, **OPTIONS)
    np.testing.assert_array_equal(found.regret, whole.regret)
    np.testing.assert_array_equal(found.seen, whole.seen)
    assert found.constants == whole.constants


def test_the_picture_has_a_line_for_every_candidate():
    left, right = decision().plot()
    assert [label.get_text() for label in left.get_yticklabels()] == list(decision().table().index)
    assert len(right.patches) == 3
    plt.close(left.figure)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"candidates": {}}, TypeError, "candidates must be a dict of policies by name"),
        ({"candidates": jb.UCB1()}, TypeError, "candidates must be a dict of policies by name"),
        ({"candidates": {"a": 1}}, TypeError, "candidate 'a' must be a policy"),
        ({"instances": []}, ValueError, "instances has 0 entries; give at least one"),
        ({"instances": [1]}, TypeError, "instances must be a list of Instance, got 1 at index 0"),
        ({"seeds": 1}, ValueError, "compare: seeds must be an integer from 2"),
        ({"horizon": 0}, ValueError, "horizon must be an integer from 1"),
        ({"level": 1.0}, ValueError, "level must lie between 0 and 1"),
        ({"history": 3}, TypeError, "history must be a History or a log"),
        ({"history": jb.History([2], [1])}, ValueError, "history has 3 arms and instance 2"),
        (
            {"candidates": {"a": jb.Tuned(jb.PatientBandits, [0.1])}, "instances": instances(1)},
            ValueError,
            "at least two, as 'a' is tuned on one half",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(options, error, message):
    options = {"candidates": CANDIDATES, "instances": instances(2), **OPTIONS} | options
    with refused(error, message):
        jb.compare(**options)


def test_a_range_of_constants_that_is_none_is_refused():
    with refused(TypeError, "Tuned: make must be a function"):
        jb.Tuned(0.1, [0.1])  # pyright: ignore
    with refused(ValueError, "Tuned: values is empty"):
        jb.Tuned(jb.PatientBandits, [])
    with refused(ValueError, "Tuned: values must differ"):
        jb.Tuned(jb.PatientBandits, [0.1, 0.1])
    with refused(ValueError, "no candidate 'x'"):
        decision().difference("x")


def test_instances_of_other_shapes_are_refused():
    other = [*instances(1), jb.Instance(jb.Bernoulli([0.1, 0.2, 0.3]), jb.Geometric(1.0))]
    with refused(ValueError, "build gives 2 arms at .* and 3"):
        jb.compare(CANDIDATES, other, **OPTIONS)
    assert jax.tree.leaves(other)
