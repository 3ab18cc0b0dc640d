"""The picture of one run, round by round: its lines are the trace's pulls and arrivals."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import jaxbandit as jb
from jaxbandit.plot import timeline
from jaxbandit.plot.rounds import BOTTOM, MOST_LINES, TOP, fate, in_flight
from tests.examples import refused

INSTANCE = jb.Instance(jb.Bernoulli([0.6, 0.8, 0.5]), jb.Lossy(jb.Pareto([1.0, 0.4, 0.7]), [0.0, 0.2, 0.1]))


def trace_of(policy, horizon) -> jb.Trace:
    return jax.device_get(jb.trace(3, INSTANCE, policy, horizon=horizon))


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def lines(ax) -> np.ndarray:
    """[lines, 2 ends, 2]."""
    drawn = [line for c in ax.collections if isinstance(c, LineCollection) for line in c.get_segments()]
    return np.array(drawn)


@pytest.mark.parametrize("policy", [jb.UCB1(), jb.Discarding(10), jb.DelayedUCB1()], ids=["all", "censors", "feedback"])
def test_lines_join_pulls_and_arrivals(ax, policy):
    trace = trace_of(policy, 50)
    assert timeline(trace, ax=ax) is ax
    found = {(round(a[0]), round(a[1] - BOTTOM)): b for a, b in lines(ax)}
    for t in range(1, 51):
        arm, reward, known, delay = (int(x[t - 1]) for x in (trace.arms, trace.rewards, trace.known, trace.delays))
        if known:
            np.testing.assert_allclose(found.pop((t, arm)), [known, arm + TOP])
        elif reward and delay < jb.NEVER:
            end = found.pop((t, arm))
            arrival = t + max(delay, 1)
            np.testing.assert_allclose(end[0], min(arrival, 51))
            np.testing.assert_allclose(end[1], arm + BOTTOM + (TOP - BOTTOM) * (end[0] - t) / (arrival - t))
    assert not found


def test_what_has_become_of_every_reward_is_said_once():
    fates = np.stack(fate(trace_of(jb.Discarding(10), 300)))
    assert (fates.sum(axis=0) == 1).all()
    assert fates.any(axis=1).all()


def test_a_long_run_is_drawn_with_a_few_lines_and_the_number_in_flight(ax):
    trace = trace_of(jb.PatientBandits(0.4), 3000)
    timeline(trace, ax=ax)
    assert 0 < len(lines(ax)) <= 3 * MOST_LINES
    rounds, fates = np.arange(1, 3001), fate(trace)
    pays = ~fates.nothing & ~fates.lost
    due = rounds + np.maximum(trace.delays, 1)
    for t in (1, 77, 3000):
        expected = (pays & (rounds <= t) & (due > t)).sum()
        assert in_flight(trace, pays, fates)[t - 1] == expected
    out = [int(label.get_text().split("\n")[2].split()[0]) for label in ax.get_yticklabels()]
    assert out == [(fates.out & (trace.arms == arm)).sum() for arm in range(3)]


def test_arms_have_names_also_those_never_pulled(ax):
    trace = jb.replay(np.zeros((4, 2)), np.zeros((4, 2), int), jb.UCB1())
    timeline(trace, names=["red", "blue", "green"], ax=ax)
    assert [label.get_text().split("\n")[0] for label in ax.get_yticklabels()] == ["red", "blue", "green"]
    assert ax.get_ylim() == (-0.5, 2.5)


def test_what_makes_no_timeline_is_refused():
    trace = trace_of(jb.UCB1(), 20)
    with refused(ValueError, "timeline: names must have one entry an arm, got 1"):
        timeline(trace, names=["one"])
    with refused(ValueError, "timeline: trace must be of one run"):
        timeline(jax.tree.map(lambda x: np.stack([x, x]), trace))
    with refused(TypeError, "timeline: trace must be a jaxbandit.Trace, got tuple; that of seed i of a batch is"):
        timeline(tuple(trace))  # pyright: ignore[reportArgumentType]
    with refused(TypeError, "timeline: names must be a list with one name an arm, got 'ab'"):
        timeline(trace, names="ab")
