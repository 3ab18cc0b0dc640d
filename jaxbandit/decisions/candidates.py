"""Every candidate on every instance, on the same luck."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandit import _checks
from jaxbandit.decisions.decision import Decision
from jaxbandit.engine.history import History
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.sweeps import sweep


class Tuned:
    """A candidate with a constant to be chosen: ``Tuned(jb.PatientBandits, [0.1, 0.2, 0.4])``.

    Args:
        make: function of a value that gives the policy.
        values: those to choose from, at least one, each once.

    Raises:
        TypeError: a ``make`` that is no function.
        ValueError: no values, or one that is there twice.
    """

    make: Callable[[Any], Policy]
    values: tuple[Any, ...]

    def __init__(self, make: Callable[[Any], Policy], values: Sequence[Any]):
        if not callable(make):
            raise TypeError(f"Tuned: make must be a function of a value that gives a policy, got {make!r}")
        self.make, self.values = make, tuple(values)
        if not self.values:
            raise ValueError("Tuned: values is empty; give the values to choose from")
        if len(set(map(str, self.values))) < len(self.values):
            raise ValueError(f"Tuned: values must differ, got {list(self.values)}; give each once")

    def __repr__(self) -> str:
        return f"Tuned({self.make!r}, {list(self.values)!r})"


class _Runs(NamedTuple):
    """How candidates are run: the arguments of a sweep."""

    instances: Sequence[Instance]
    options: dict[str, Any]

    def of(self, policies: Mapping[str, Policy], which: np.ndarray) -> Any:
        """The dataset of these policies on ``which`` of the instances."""

        def build(instance: int) -> tuple[Instance, Mapping[str, Policy]]:
            return self.instances[instance], policies

        return sweep(build, {"instance": which}, **self.options)


def compare(
    candidates: Mapping[str, Policy | Tuned],
    instances: Instance | Sequence[Instance],
    *,
    horizon: int,
    seeds: int,
    key: Any,
    history: Any = None,
    level: float = 0.95,
    store: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Decision:
    """Which of the candidates to run, where any of ``instances`` may be the truth, and how sure that is.

    Every candidate is run ``seeds`` times on every instance. Run i has the same luck for all candidates and on all
    instances (the random tape of ``fold_in(key, i)``): differences are paired, and what the luck of the runs adds to an
    average over instances does not average out; the intervals take account of that, see ``Decision``.

    A candidate may have a constant to be chosen, see ``Tuned``. Then the first, third, ... of the instances serve to
    choose it (least mean regret), and all candidates are judged on the others, so that no choice is judged by what it
    was made from.

    Args:
        candidates: policies by name.
        instances: of one structure, each as likely as another: such as ``fit.bootstrap(50, key=0)``. Or a single one.
        horizon: number of rounds to come.
        seeds: runs of every candidate on every instance, at least 2.
        key: as for ``simulate``.
        history: what came before: a ``History``, or a log of which it is made.
        level: of the intervals.
        store, executor, progress: as for ``sweep``: the same call resumes what was killed, and a new candidate or
            instance computes only what is missing.

    Raises:
        ImportError: the extra ``sweep`` is not installed.
        TypeError, ValueError: an argument that is not what it should be.
    """
    instances = [instances] if isinstance(instances, Instance) else list(instances)
    _check(candidates, instances)
    seeds = _checks.whole_number("compare: seeds", seeds, 2, 2**31 - 1, "differences need two runs to have an error")
    if not 0 < level < 1:
        raise ValueError(f"compare: level must lie between 0 and 1, got {level}; 0.95 is usual")
    past = history if history is None or isinstance(history, History) else _history_of(history)
    options = {"horizon": horizon, "seeds": seeds, "key": key, "history": past, "rewards": True}
    options |= {"checkpoints": [horizon], "quantiles": (0.5,), "store": store, "executor": executor}
    runs = _Runs(instances, options | {"progress": progress})
    which = np.arange(len(instances))
    constants: dict[str, Any] = {}
    if any(isinstance(candidate, Tuned) for candidate in candidates.values()):
        constants, which = _constants(candidates, runs, which[::2]), which[1::2]
    judged = {
        name: _labelled(name, candidate, constants.get(name)) if isinstance(candidate, Tuned) else (name, candidate)
        for name, candidate in candidates.items()
    }
    data = runs.of(dict(judged.values()), which)
    means = np.stack([np.asarray(instances[i].means, np.float64) for i in which])
    return Decision(
        names=tuple(candidates),
        regret=_by_candidate(data.final_regret),
        seen=_by_candidate(data.final_rewards),
        most=horizon * means.max(axis=-1),
        horizon=int(horizon),
        past=0 if past is None else len(past),
        constants={name: (value, candidates[name].values) for name, value in constants.items()},  # pyright: ignore
        level=float(level),
    )


def _check(candidates: Any, instances: list[Any]) -> None:
    if not isinstance(candidates, Mapping) or not candidates:
        raise TypeError(f"compare: candidates must be a dict of policies by name, got {candidates!r}")
    for name, candidate in candidates.items():
        if not isinstance(name, str) or not isinstance(candidate, Policy | Tuned):
            raise TypeError(
                f"compare: candidate {name!r} must be a policy, or Tuned(...) of one, by a name, got {candidate!r}"
            )
    for i, instance in enumerate(instances):
        if not isinstance(instance, Instance):
            raise TypeError(
                f"compare: instances must be a list of Instance, got {instance!r} at index {i}; of a log, pass "
                "fit_log(log).bootstrap(50, key=0)"
            )
    tuned = [name for name, candidate in candidates.items() if isinstance(candidate, Tuned)]
    if not instances or (tuned and len(instances) < 2):
        need = f"at least two, as {tuned[0]!r} is tuned on one half, judged on the other" if tuned else "at least one"
        raise ValueError(f"compare: instances has {len(instances)} entries; give {need}")


def _history_of(log: Any) -> History:
    if not hasattr(log, "history"):
        raise TypeError(f"compare: history must be a History or a log, got {log!r}")
    return log.history()


def _labelled(name: str, candidate: Tuned, value: Any) -> tuple[str, Policy]:
    """The policy with this constant, and its name in the sweep."""
    return f"{name} [{value}]", candidate.make(value)


def _constants(candidates: Mapping[str, Policy | Tuned], runs: _Runs, which: np.ndarray) -> dict[str, Any]:
    """The value with the least mean regret of every candidate that has one to choose."""
    tuned = {name: candidate for name, candidate in candidates.items() if isinstance(candidate, Tuned)}
    labels = {name: [_labelled(name, each, value) for value in each.values] for name, each in tuned.items()}
    data = runs.of({label: policy for pairs in labels.values() for label, policy in pairs}, which)
    regret = data.final_regret.mean(["instance", "seed"])
    best = {name: int(np.argmin([regret.sel(policy=label) for label, _ in pairs])) for name, pairs in labels.items()}
    return {name: tuned[name].values[i] for name, i in best.items()}


def _by_candidate(values: Any) -> np.ndarray:
    return values.transpose("policy", "instance", "seed").to_numpy().astype(np.float64)
