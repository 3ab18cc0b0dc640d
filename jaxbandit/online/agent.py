"""An agent for a live service: it chooses, and is told later what came of it."""

from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandit import _checks
from jaxbandit._checks import NEVER
from jaxbandit.engine import tape
from jaxbandit.engine.history import History, check_known
from jaxbandit.engine.protocol import MAX_HORIZON, check_policy, nan_error
from jaxbandit.online import journal, plain
from jaxbandit.online.served import Rounds, Served, due, file_late, learn, next_arm, start
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Pull

_INT: Any = np.int32

CHUNK = 1024
"""Rounds that are learned at a time from a long log."""


class Choice(NamedTuple):
    """What was chosen: the ``id`` by which its reward is reported, the number of the round; and the ``arm``, 0..K-1."""

    id: int
    arm: int


class Agent:
    """A policy in service: ``choose`` an arm, and report what came of it whenever that is known.

    A round is one choice. A reward that is reported before the next choice is known at that choice, and its delay is
    counted in choices: fed what arrives in a simulated run, the agent plays the arms of that run, ties, waiting and
    randomness included (``jax.random.key`` of the two alike). Many choices may be open, for any time, in any order.

    Unlike all else in this package an agent changes as it is used. It is for one thread.

    With a ``history`` the agent takes over after it, as ``simulate`` does: the rounds of the history are learned, and
    have the first ids. ``choices``, ``open`` and the property ``horizon`` count them too; what is still out of them may
    arrive by its id.

    Args:
        policy: how arms are chosen.
        num_arms: number of arms K.
        horizon: the most choices that will be made, after those of the history: policies are made for it. See ``grow``.
        key: seed of the policy's own randomness.
        history: the pulls that came before, and what is known of them; of a log, ``log.history()``.

    Raises:
        TypeError, ValueError: as for ``simulate``.
    """

    def __init__(self, policy: Policy, num_arms: int, *, horizon: int, key: Any = 0, history: History | None = None):
        self._num_arms = _checks.whole_number("Agent: num_arms", num_arms, 1, 2**24, "give the number of arms")
        self._policy = policy
        self._key = tape.words(key)
        self._float: Any = np.dtype(jnp.result_type(float)).type
        self._arms: list[int] = []
        self._results: dict[int, tuple[float, int]] = {}  # by round: reward, and when it is known to the policy
        self._known: dict[int, list[int]] = {}  # by round, the pulls that are known from its start on
        self._journal: journal.Journal | None = None
        self._closed = False
        self._events: list[list[Any]] = []
        self._made_for = _horizon(horizon)
        if history is not None:
            check_policy(policy, self._num_arms, self._made_for, binary=False)
            check_known(history, self._num_arms, None, policy, "the agent")
            self._made_for = _horizon(self._made_for + len(history))
        self._restart(self._made_for)
        if history is not None:
            self._resume(_events_of(history), None)

    def _restart(self, horizon: int) -> None:
        """With nothing learned yet: the log is learned again before the next choice."""
        check_policy(self._policy, self._num_arms, horizon, binary=False)
        self._horizon = horizon
        self._learned = 0
        self._late: dict[int, list[int]] = {}  # as ``_known``, those whose pull has been learned without them
        self._served: Served = start(self._policy, num_arms=self._num_arms, horizon=horizon)

    def __repr__(self) -> str:
        made, out = len(self._arms), len(self._arms) - len(self._results)
        return f"Agent({self._policy!r}, num_arms={self._num_arms}): {made} of {self._horizon} choices made, {out} open"

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def num_arms(self) -> int:
        return self._num_arms

    @property
    def horizon(self) -> int:
        return self._horizon

    @property
    def choices(self) -> list[Choice]:
        """All that were made."""
        return [Choice(id, arm) for id, arm in enumerate(self._arms, start=1)]

    @property
    def open(self) -> list[Choice]:
        """Those of which nothing has been reported yet."""
        return [choice for choice in self.choices if choice.id not in self._results]

    def choose(self) -> Choice:
        """The arm of the next round.

        Raises:
            ValueError: the horizon is reached, or the policy gave a score that is NaN.
            RuntimeError: the agent is closed.
        """
        self._check_open()
        t = len(self._arms) + 1
        if t > self._horizon:
            raise ValueError(f"the agent's horizon of {self._horizon} choices is reached; call grow with a longer one")
        self._catch_up(t)
        arm = int(next_arm(self._policy, self._served, self._key, _INT(t)))
        if arm >= self._num_arms:
            raise nan_error(self._policy)
        self._record(["choice", t, arm])
        self._arms.append(arm)
        return Choice(t, arm)

    def arrived(self, id: int, reward: Any) -> None:
        """The reward of a choice has arrived, and is known to the next one.

        Raises:
            TypeError: an id or a reward that is not a number.
            ValueError: an id that is unknown or was reported before, or a reward outside [0, 1]; nothing has changed.
        """
        if np.ndim(reward) != 0 or isinstance(reward, (str, bytes, type(None))):
            raise TypeError(f"reward must be a single number, got {reward!r}; give one in [0, 1]")
        reward = float(reward)
        if not 0 <= reward <= 1:
            raise ValueError(f"reward must be in [0, 1], got {reward}; rescale rewards to [0, 1]")
        self._check_open()
        id = self._checked_id(id)
        self._record(["arrival", id, reward])
        self._file(id, reward)

    def expired(self, id: int) -> None:
        """It is known that a choice gives nothing more: its delay has passed, and its reward is 0.

        Only policies that observe ``Feedback`` learn from that.

        Raises:
            TypeError, ValueError: as for ``arrived``.
        """
        self.arrived(id, 0.0)

    def grow(self, horizon: int) -> None:
        """From now on, choose as a policy made for this horizon does after the same history: it is learned again.

        Raises:
            ValueError: a horizon that is no longer than the present one.
        """
        self._check_open()
        horizon = _horizon(horizon)
        if horizon <= self._horizon:
            raise ValueError(f"horizon must be longer than the present one of {self._horizon}, got {horizon}")
        check_policy(self._policy, self._num_arms, horizon, binary=False)
        self._record(["horizon", horizon])
        self._restart(horizon)

    def save(self, path: str | Path) -> None:
        """Write all to a file, at once or not at all, and from now on add every event to it before the call returns.

        If the process is killed at any moment, ``load_agent`` finds all but the call that was cut short. (Whether the
        last calls before a failure of the power are there too is up to the operating system; what was there at ``save``
        is.) The file is locked until ``close``, or until the process ends. Folders that are missing are made.

        Raises:
            ImportError: filelock is not installed.
            RuntimeError: another agent uses the file.
            OSError: the file cannot be written.
        """
        path = _checks.path("save: path", path).absolute()
        same = self._journal is not None and self._journal.path == path
        lock = self._journal.lock if same and self._journal is not None else journal.locked(path)
        try:
            written = journal.write(path, self._header(), self._events, lock)
        except BaseException:
            if not same:
                lock.release()
            raise
        if self._journal is not None:
            self._journal.close(release=not same)
        self._journal, self._closed = written, False

    def close(self) -> None:
        """Let go of the file: it may be loaded again, here or elsewhere.

        This agent takes part no more: what it chose now would be in no file. ``save`` takes it up again.
        """
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            self._closed = True

    def _header(self) -> dict[str, Any]:
        try:
            policy = plain.described(self._policy)
        except TypeError:
            policy = None
        return {
            "policy": policy,
            "numbers": plain.numbers(self._policy),
            "num_arms": self._num_arms,
            "horizon": self._made_for,
            "key": [int(word) for word in np.asarray(self._key)],
        }

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the agent is closed; go on with jaxbandit.load_agent(path), or save this one again")

    def _record(self, event: list[Any]) -> None:
        if self._journal is not None:
            self._journal.append(event)
        self._events.append(event)

    def _resume(self, events: list[list[Any]], file: journal.Journal | None) -> None:
        """Take up what was before, as in the file."""
        for kind, *what in events:
            if kind == "choice":
                self._arms.append(what[1])
            elif kind == "arrival":
                self._file(*what)
            else:
                self._horizon = what[0]
        self._events, self._journal = events, file
        self._restart(self._horizon)

    def _checked_id(self, id: Any) -> int:
        known = len(self._arms)
        mend = "give choice.id" if isinstance(id, Choice) else "give the id of a choice"
        id = _checks.whole_number("id", id, 1, max(known, 1), mend)
        if not known:
            raise ValueError(f"id {id} is unknown: nothing has been chosen yet; {mend}")
        if id in self._results:
            raise ValueError(f"id {id} has been reported before")
        return id

    def _file(self, id: int, reward: float) -> None:
        """What a run's calendar does when the reward comes."""
        delay = len(self._arms) + 1 - id
        when = id + delay
        if type(self._policy).wait is not Policy.wait:
            when = int(due(self._policy, _INT(id), _INT(delay)))
        self._results[id] = (reward, when)
        self._known.setdefault(when, []).append(id)
        if self._served.lookback is not None and id <= self._learned:
            self._late.setdefault(when, []).append(id)

    def _catch_up(self, t: int) -> None:
        """Learn all up to the start of round t."""
        while self._learned < t - 1:
            first = self._learned + 1
            for id in sorted(self._late.pop(first + 1, ())):
                self._served = file_late(self._served, _INT(first), _INT(id), self._pull(id))
            count = t - first if not self._late else 1
            count, room = (1, 1) if count == 1 else (min(count, CHUNK), CHUNK)
            rounds = self._rounds(first, count, room)
            self._served = learn(self._policy, self._served, rounds, _INT(first), _INT(count))
            self._learned += count

    def _pull(self, id: int) -> Pull:
        reward, when = self._results.get(id, (0.0, NEVER))
        delay = when - id if when < NEVER else NEVER
        return Pull(arm=_INT(self._arms[id - 1]), reward=self._float(reward), delay=_INT(delay))

    def _rounds(self, first: int, count: int, room: int) -> Rounds:
        """The log of rounds ``first``, ``first + 1``, ..."""
        one, table = (room,), (room, self._num_arms)
        blank: Any = np.zeros
        found = Rounds(
            arms=blank(one, _INT),
            reward=blank(one, self._float),
            delay=blank(one, _INT),
            rewards=blank(table, self._float),
            settled=blank(table, _INT),
        )
        for i, s in enumerate(range(first, first + count)):
            found.arms[i], found.reward[i], found.delay[i] = self._pull(s)
            for id in sorted(self._known.get(s + 1, ())):  # in the order of their rounds, as in a run's calendar
                arm = self._arms[id - 1]
                found.rewards[i, arm] += self._float(self._results[id][0])
                found.settled[i, arm] += 1
        return found


def _events_of(history: History) -> list[list[Any]]:
    """What an agent would have been told, had it made these choices."""
    due: dict[int, list[list[Any]]] = {}
    rounds = zip(history.delays.tolist(), history.rewards.tolist(), strict=True)
    for id, (delay, reward) in enumerate(rounds, start=1):
        if delay >= 0:
            due.setdefault(id + max(delay, 1), []).append(["arrival", id, reward])
    events: list[list[Any]] = []
    for id, arm in enumerate(history.arms.tolist(), start=1):
        events += [*due.get(id, ()), ["choice", id, arm]]
    return events + due.get(len(history) + 1, [])


def _horizon(horizon: Any) -> int:
    return _checks.whole_number("horizon", horizon, 1, MAX_HORIZON, "give the most choices that will be made")


def load_agent(path: str | Path, policy: Policy | None = None) -> Agent:
    """The agent that was saved to a file, with all that has happened since; it goes on to use the file.

    Args:
        path: the file of ``Agent.save``.
        policy: needed if the agent's is not made of public classes of jaxbandit alone; it must have the same numbers.

    Raises:
        FileNotFoundError, OSError: the file is not there or cannot be read.
        ValueError: the file is not an agent's, is of another version or damaged, or ``policy`` is another one.
        ImportError: filelock is not installed.
        RuntimeError: another agent uses the file.
    """
    path = _checks.path("load_agent: path", path).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of an agent")
    lock = journal.locked(path)
    try:
        header, events = journal.read(path)
        if policy is None and header["policy"] is None:
            raise ValueError(f"{path}: its policy is not public in jaxbandit; give it: load_agent(path, policy)")
        policy = plain.built(header["policy"]) if policy is None else policy
        if plain.numbers(policy) != header["numbers"]:
            raise ValueError(f"{path}: policy is not the one that was saved, {header['numbers']}")
        key = np.asarray(header["key"], np.uint32)
        agent = Agent(policy, header["num_arms"], horizon=header["horizon"], key=key)  # pyright: ignore
        agent._resume(events, journal.Journal(path, lock))
    except BaseException:
        lock.release()
        raise
    return agent
