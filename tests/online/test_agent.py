"""An agent in service plays the arms of a simulated run, and outlives crashes."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import tape
from jaxbandit.engine.history import still_out
from jaxbandit.online import journal
from tests.examples import OF_EACH_KIND, POLICIES, each, refused

HORIZON = 60


def problem(num_arms: int) -> jb.Instance:
    """Graded rewards; delays of zero, heavy ones, and ones that are lost."""
    delays = [jb.NoDelay(1), jb.Pareto(0.4), jb.Lossy(jb.Geometric(3.0), 0.3), jb.Constant(7), jb.Pareto(1.2)]
    means = np.linspace(0.3, 0.7, num_arms)
    return jb.Instance(jb.TruncatedNormal(means, 0.3), jb.PerArm(delays[:num_arms]))


def arrivals(traced: jb.Trace) -> dict[int, list[tuple[int, float]]]:
    """By round, the pulls whose rewards arrive before it: an id, and a reward."""
    due = defaultdict(list)
    for s, (reward, delay) in enumerate(zip(traced.rewards.tolist(), traced.delays.tolist(), strict=True), start=1):
        due[s + max(delay, 1)].append((s, reward))
    return due


@each(POLICIES, "policy", quick=OF_EACH_KIND)
@pytest.mark.parametrize("num_arms", [3, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 4, 5))])
def test_fed_the_arrivals_of_a_run_it_plays_its_arms(policy, num_arms):
    traced = jb.trace(4, problem(num_arms), policy, horizon=HORIZON)
    agent, due, rng = jb.Agent(policy, num_arms, horizon=HORIZON, key=4), arrivals(traced), np.random.default_rng(0)
    for t, arm in enumerate(traced.arms.tolist(), start=1):
        for i in rng.permutation(len(due[t])):
            agent.arrived(*due[t][i])
        assert agent.choose() == (t, arm)
    assert [choice.arm for choice in agent.choices] == traced.arms.tolist()


PAST = 25


@each(POLICIES, "policy", quick=OF_EACH_KIND)
def test_with_a_history_it_goes_on_as_a_run_that_starts_from_it(policy, tmp_path):
    """Arm for arm; what is still out of the history comes by its id."""
    whole = jb.trace(4, problem(3), policy, horizon=HORIZON)
    history = jb.History.from_trace(whole, PAST, settled=True)
    rest = jb.trace(4, problem(3), policy, horizon=HORIZON - PAST, history=history)
    due = arrivals(rest)
    pulls = still_out(tape.words(4), problem(3), history)
    for s, (reward, delay) in enumerate(zip(pulls.reward.tolist(), pulls.delay.tolist(), strict=True), start=1):
        due[s + delay - PAST].append((s - PAST, reward))
    agent = jb.Agent(policy, 3, horizon=HORIZON - PAST, key=4, history=history)
    assert [choice.arm for choice in agent.choices] == whole.arms[:PAST].tolist()
    assert {choice.id for choice in agent.open} == set(1 + np.flatnonzero(np.asarray(history.delays) < 0))
    for t, arm in enumerate(rest.arms.tolist(), start=1):
        if t == 5:
            agent.save(tmp_path / "agent")
            agent.close()
            agent = jb.load_agent(tmp_path / "agent", policy)
        for s, reward in due[t]:
            agent.arrived(PAST + s, reward)
        assert agent.choose() == (PAST + t, arm)
    with refused(ValueError, f"horizon of {HORIZON} choices is reached"):
        agent.choose()
    agent.close()


def test_it_takes_over_from_a_log():
    delay = np.array([2, -1, 1, -1, -1, 3] * 10, np.int32)
    log = jb.Log(("a", "b"), np.array([0, 1] * 30, np.int32), np.arange(60, dtype=np.int32)[::-1], delay, 1.0, "round")
    policy, history = jb.CorrectedThompson(cdf=jb.Geometric(3.0), window=None), log.history()
    instance = jb.Instance(jb.Bernoulli([0.4, 0.2]), jb.Constant([jb.NEVER, jb.NEVER]))  # nothing more comes
    run = jb.trace(7, instance, policy, horizon=20, history=history)
    agent = jb.Agent(policy, 2, horizon=20, key=7, history=history)
    assert [agent.choose().arm for _ in range(20)] == run.arms.tolist()


@pytest.mark.parametrize(
    ("history", "policy", "error", "message"),
    [
        ([0, 1], jb.UCB1(), TypeError, "history must be a jaxbandit.History"),
        (jb.History([0, 1], [1, -1], num_arms=3), jb.UCB1(), ValueError, "history has 3 arms and the agent 2"),
        (jb.History([0, 4], [1, -1]), jb.UCB1(), ValueError, "history has 5 arms and the agent 2"),
        (jb.History([0, 1], [1, -1]), jb.DelayedUCB1(), ValueError, "DelayedUCB1 observes Feedback"),
    ],
)
def test_a_history_that_an_agent_cannot_have_is_refused(history, policy, error, message):
    with refused(error, message):
        jb.Agent(policy, 2, horizon=5, history=history)


@pytest.mark.parametrize("name", ["AdaptPatientBandits", "Discarding", "DelayedUCB1"])
def test_a_log_learned_at_once_gives_what_was_learned_round_by_round(name, tmp_path):
    policy = POLICIES[name]
    traced = jb.trace(4, problem(3), policy, horizon=HORIZON)
    agent, due = jb.Agent(policy, 3, horizon=HORIZON, key=4), arrivals(traced)
    for t in range(1, HORIZON):
        for arrival in due[t]:
            agent.arrived(*arrival)
        agent.choose()
    for arrival in due[HORIZON]:
        agent.arrived(*arrival)
    agent.save(tmp_path / "agent")
    agent.save(tmp_path / "another")
    loaded = jb.load_agent(tmp_path / "agent")
    assert loaded.choose() == agent.choose() == (HORIZON, traced.arms[-1])
    jax.tree.map(np.testing.assert_array_equal, loaded._served, agent._served)
    loaded.close()
    agent.close()


def test_closed_it_takes_part_no_more_until_it_is_saved_again(tmp_path):
    agent = jb.Agent(jb.UCB1(), 2, horizon=9)
    agent.choose()
    agent.save(tmp_path / "agent")
    agent.close()
    for call in (agent.choose, lambda: agent.arrived(1, 1.0), lambda: agent.expired(1), lambda: agent.grow(20)):
        with refused(RuntimeError, "the agent is closed"):
            call()
    assert (agent.choices, agent.horizon) == ([(1, 0)], 9)
    assert repr(agent) == "Agent(UCB1(), num_arms=2): 1 of 9 choices made, 1 open"
    agent.save(tmp_path / "agent")
    assert agent.choose() == (2, 1)
    agent.close()


def test_feedback_of_zeros_is_told_by_expired():
    agent = jb.Agent(jb.DelayedUCB1(), 2, horizon=10)
    first, second = agent.choose(), agent.choose()
    agent.arrived(second.id, 0.6)
    assert agent.choose().arm == first.arm == 0  # of which nothing is known
    agent.expired(first.id)
    assert agent.choose().arm == second.arm
    assert [choice.id for choice in agent.open] == [3, 4]


def test_errors_change_nothing():
    agent = jb.Agent(jb.UCB1(), 2, horizon=3)
    with refused(ValueError, "id 1 is unknown: nothing has been chosen yet"):
        agent.arrived(1, 1.0)
    pull = agent.choose()
    agent.choose()
    for id, reward, error, message in (
        (3, 1.0, ValueError, "id must be an integer from 1 to 2, got 3"),
        (0, 1.0, ValueError, "id must be an integer from 1"),
        ("1", 1.0, TypeError, "id must be an integer"),
        (pull.id, 1.5, ValueError, r"reward must be in \[0, 1\], got 1.5"),
        (pull.id, float("nan"), ValueError, r"reward must be in \[0, 1\]"),
        (pull.id, None, TypeError, "reward must be a single number"),
        (pull.id, [1.0], TypeError, "reward must be a single number"),
    ):
        with refused(error, message):
            agent.arrived(id, reward)
    assert agent.open == agent.choices
    agent.arrived(pull.id, 1.0)
    with refused(ValueError, "id 1 has been reported before"):
        agent.expired(pull.id)
    assert agent.choose().arm == 0
    with refused(ValueError, "horizon of 3 choices is reached; call grow"):
        agent.choose()
    with refused(ValueError, "horizon must be longer than the present one of 3, got 3"):
        agent.grow(3)
    assert len(agent.choices) == 3


@pytest.mark.parametrize("name", ["AdaptPatientBandits", "DUCB uncensored", "PatientBandits"])
def test_grown_it_is_as_if_it_had_been_made_for_the_longer_horizon(name, tmp_path):
    """After the same history, here that of Uniform play, which no horizon changes."""
    traced = jb.trace(1, problem(3), POLICIES[name], horizon=40)
    due = arrivals(traced)

    def served(horizon):
        agent = jb.Agent(POLICIES[name], 3, horizon=horizon)
        for t in range(1, 21):
            for arrival in due[t]:
                agent.arrived(*arrival)
            agent._catch_up(t)
            agent._record(["choice", t, int(traced.arms[t - 1])])
            agent._arms.append(int(traced.arms[t - 1]))
        return agent

    short, long = served(20), served(40)
    with refused(ValueError, "is reached"):
        short.choose()
    short.save(tmp_path / "agent")
    short.grow(40)
    short.save(tmp_path / "another")
    loaded = jb.load_agent(tmp_path / "agent")
    assert loaded.horizon == 40
    for arrival in due[21]:
        short.arrived(*arrival)
        loaded.arrived(*arrival)
        long.arrived(*arrival)
    assert short.choose() == long.choose() == loaded.choose()
    jax.tree.map(np.testing.assert_array_equal, short._served, long._served)
    loaded.close()
    short.close()


@each(POLICIES, "policy")
def test_every_policy_is_saved_and_loaded_without_being_given(policy, tmp_path):
    agent = jb.Agent(policy, 2, horizon=9, key=jax.random.key(7))
    agent.save(tmp_path / "agent")
    agent.close()
    loaded = jb.load_agent(tmp_path / "agent")
    assert jax.tree.structure(loaded.policy) == jax.tree.structure(policy)
    jax.tree.map(np.testing.assert_array_equal, loaded.policy, policy)
    assert (loaded.num_arms, loaded.horizon, loaded.choices) == (2, 9, [])
    np.testing.assert_array_equal(loaded._key, agent._key)
    loaded.close()


class Own(jb.UCB1):
    """A policy of a user's own."""

    bonus: jax.Array


def test_a_policy_of_ones_own_is_given_again(tmp_path):
    path = tmp_path / "agent"
    agent = jb.Agent(Own(jnp.array(0.5)), 2, horizon=9)
    agent.save(path)
    agent.close()
    with refused(ValueError, "its policy is not public in jaxbandit; give it"):
        jb.load_agent(path)
    with refused(ValueError, "policy is not the one that was saved"):
        jb.load_agent(path, Own(jnp.array(0.25)))
    jb.load_agent(path, Own(jnp.array(0.5))).close()


def test_a_file_serves_one_agent_at_a_time(tmp_path):
    path = tmp_path / "agent"
    agent = jb.Agent(jb.UCB1(), 2, horizon=9)
    agent.save(path)
    agent.save(path)
    for other in (lambda: jb.load_agent(path), lambda: jb.Agent(jb.UCB1(), 2, horizon=9).save(path)):
        with refused(RuntimeError, "is in use by another agent"):
            other()
    agent.choose()
    agent.save(tmp_path / "copy")
    jb.load_agent(path).close()
    agent.close()
    loaded = jb.load_agent(tmp_path / "copy")
    assert len(loaded.choices) == 1
    loaded.close()


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "agent"
    with refused(FileNotFoundError, "there is no such file"):
        jb.load_agent(path)
    with refused(TypeError, "load_agent: path must be a path, a string or a pathlib.Path, got UCB1"):
        jb.load_agent(jb.UCB1())
    for content, message in ((b"", "is not the file of"), (b"hello\n", "is not the file of")):
        path.write_bytes(content)
        with refused(ValueError, message):
            jb.load_agent(path)
    agent = jb.Agent(jb.UCB1(), 2, horizon=9)
    for _ in range(3):
        agent.choose()
    agent.save(path)
    agent.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"2,", b"3,"), *lines[3:]]))
    with refused(ValueError, "is damaged in line 3"):
        jb.load_agent(path)
    path.write_bytes(journal._line({"format": journal.FORMAT, "version": 99}))
    with refused(ValueError, "has version 99; this jaxbandit reads version 1"):
        jb.load_agent(path)


def test_what_cannot_be_written_has_not_happened(tmp_path, monkeypatch):
    agent = jb.Agent(jb.UCB1(), 2, horizon=9)
    agent.save(tmp_path / "agent")
    pull = agent.choose()

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, line):
            return self.file.write(line[:5])

        def __getattr__(self, name):
            return getattr(self.file, name)

    file = agent._journal._file
    agent._journal._file = Full(file)
    for act in (agent.choose, lambda: agent.arrived(pull.id, 1.0)):
        with refused(OSError, "could not be written to the end"):
            act()
    agent._journal._file = file
    assert agent.choices == agent.open == [pull]
    agent.arrived(pull.id, 1.0)
    second = agent.choose()
    agent.close()
    loaded = jb.load_agent(tmp_path / "agent")
    assert loaded.choices == [pull, second]
    loaded.close()


def uninterrupted(path: Path, policy: jb.Policy, num_arms: int, horizon: int) -> list[int]:
    """The arms of an agent that lives through the events of a file at a stretch."""
    agent = jb.Agent(policy, num_arms, horizon=horizon, key=3)
    for kind, *what in journal.read(path)[1]:
        if kind == "choice":
            agent.choose()
        else:
            agent.arrived(*what)
    return [choice.arm for choice in agent.choices]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AdaptPatientBandits", "DUCB", "Softmax"])
def test_a_thousand_interleavings_of_choices_arrivals_saves_loads_and_crashes(name, tmp_path):
    path, rng, policy = tmp_path / "agent", np.random.default_rng(5), POLICIES[name]
    agent = jb.Agent(policy, 3, horizon=1000, key=3)
    agent.save(path)
    for _ in range(1000):
        act = rng.choice(["choose", "arrive", "save", "load", "crash"], p=[0.5, 0.42, 0.03, 0.03, 0.02])
        before = agent.choices, agent.open
        if act == "choose":
            agent.choose()
        elif act == "arrive" and agent.open:
            agent.arrived(agent.open[rng.integers(len(agent.open))].id, rng.uniform())
        elif act == "save":
            agent.save(path)
        elif act in ("load", "crash"):
            agent.close()
            if act == "crash":  # in the middle of a line
                with open(path, "ab") as file:
                    file.write(journal._line(["choice", 999, 1])[: rng.integers(1, 20)])
            agent = jb.load_agent(path)
            assert (agent.choices, agent.open) == before
    agent.close()
    assert len(agent.choices) > 300
    assert [choice.arm for choice in agent.choices] == uninterrupted(path, policy, 3, 1000)


CHILD = """
import sys
import numpy as np
import jaxbandit as jb
agent = jb.load_agent(sys.argv[1])
rng = np.random.default_rng(len(agent.choices))
while len(agent.choices) < 1000:
    if agent.open and rng.uniform() < 0.5:
        agent.arrived(agent.open[rng.integers(len(agent.open))].id, round(rng.uniform()))
    else:
        agent.choose()
    print(len(agent._events), flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_has_lost_no_more_than_the_last_call(tmp_path):
    path, policy, rng = tmp_path / "agent", jb.PatientBandits(0.3), np.random.default_rng(2)
    agent = jb.Agent(policy, 3, horizon=1000, key=3)
    agent.save(path)
    agent.close()
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        with refused(RuntimeError, "is in use by another agent"):
            jb.load_agent(path)
        time.sleep(rng.uniform(0.01, 0.3))
        child.kill()
        lines += child.stdout.read().splitlines()
        child.wait()
        child.stdout.close()
        done = json.loads(lines[-1])
        assert done <= len(journal.read(path)[1]) <= done + 1
    agent = jb.load_agent(path)
    agent.close()
    assert [choice.arm for choice in agent.choices] == uninterrupted(path, policy, 3, 1000)
