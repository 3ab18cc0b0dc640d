"""Tables on many runs: what every policy costs, and how every two of them differ on the same luck."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from jaxbandit.engine.run import Run
from jaxbandit.instance import Instance
from jaxbandit.statistics.reductions import open_interval

if TYPE_CHECKING:
    import pandas

POLICY = "policy"


class Finals(NamedTuple):
    """Regret of all runs at the last checkpoint, for the cells of a grid; ``levels`` names the numbers of a cell.

    ``best_arm`` is the mean share of the rounds in which a best arm was pulled, if that is known.
    """

    levels: list[str]
    cells: list[tuple[Any, ...]]
    policies: list[str]
    regret: Float64[np.ndarray, "cells policies seeds"]
    best_arm: Float64[np.ndarray, "cells policies"] | None


def summary(data: Any, *, level: float = 0.95, instance: Instance | None = None) -> "pandas.DataFrame":
    """The regret at the last checkpoint, one row a cell and policy.

    Columns: ``mean`` over the runs, ``low`` and ``high`` of its Student confidence interval, ``standard_error``,
    ``median``, ``best_arm`` (the share of all rounds in which a best arm was pulled, in the mean) and ``seeds``.

    Args:
        data: the dataset of ``sweep`` or a selection of it, or results of ``simulate_batch`` by name, such as
            ``{"UCB1": runs}``.
        level: of the confidence intervals.
        instance: on which named runs were made, for the column ``best_arm``, which is left out without it. A dataset
            knows.

    Raises:
        ImportError: pandas is not installed.
        TypeError: data that is neither.
        ValueError: a single run, fewer than two seeds, or a level outside (0, 1).
    """
    pandas = _pandas("summary")
    open_interval("summary", level)
    finals = finals_of("summary", data, instance)
    mean, error, half = _interval(finals.regret, level)
    columns = {"mean": mean, "low": mean - half, "high": mean + half, "standard_error": error}
    columns["median"] = np.median(finals.regret, axis=-1)
    if finals.best_arm is not None:
        columns["best_arm"] = finals.best_arm
    rows = [(*cell, policy) for cell in finals.cells for policy in finals.policies]
    table = pandas.DataFrame(
        {name: x.reshape(-1) for name, x in columns.items()}, _index(finals.levels, [POLICY], rows)
    )
    return table.assign(seeds=finals.regret.shape[-1])


def pairwise(data: Any, *, level: float = 0.95) -> "pandas.DataFrame":
    """How the regret of every two policies differs at the last checkpoint, one row a cell and pair.

    Run i of all policies has the same luck, so that differences are taken run by run. Columns: ``difference``, the mean
    of the first policy's regret minus the second's (negative: the first is better), ``low`` and ``high`` of Student's
    interval for that one pair, ``standard_error``, ``p_value`` of Student's two-sided paired test, and ``p_adjusted``,
    which holds for all pairs of a cell together (Holm, 1979).

    Args:
        data: as for ``summary``. Named runs must have been made with the same key.
        level: of the confidence intervals.

    Raises:
        ImportError, TypeError, ValueError: as for ``summary``; or fewer than two policies, or named runs with other
            numbers of seeds, rounds or arms, which cannot have had the same luck.
    """
    pandas = _pandas("pairwise")
    open_interval("pairwise", level)
    finals = finals_of("pairwise", data, None)
    if len(finals.policies) < 2:
        raise ValueError(f"pairwise: data must have at least two policies, got {finals.policies}")
    pairs = list(itertools.combinations(range(len(finals.policies)), 2))
    first, second = np.array(pairs).T
    apart = finals.regret[:, first] - finals.regret[:, second]
    mean, error, half = _interval(apart, level)
    p = p_values(apart)
    columns = {"difference": mean, "low": mean - half, "high": mean + half, "standard_error": error}
    columns |= {"p_value": p, "p_adjusted": holm(p)}
    rows = [(*cell, *(finals.policies[i] for i in pair)) for cell in finals.cells for pair in pairs]
    index = _index(finals.levels, ["first", "second"], rows)
    return pandas.DataFrame({name: x.reshape(-1) for name, x in columns.items()}, index)


def p_values(differences: Float[np.ndarray, "*shape seeds"]) -> Float64[np.ndarray, "*shape"]:
    """Of Student's two-sided test that the mean is 0; where all differences are equal, 1 if they are 0, else 0."""
    from scipy.special import stdtr

    mean, error, _ = _interval(differences, 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / error)
    return 2 * stdtr(differences.shape[-1] - 1, -t)


def holm(p: Float64[np.ndarray, "*shape m"]) -> Float64[np.ndarray, "*shape m"]:
    """P-values that hold for all m together: the largest of ``(m + 1 - k) p_(k)`` up to one's place in the order."""
    order = np.argsort(p, axis=-1)
    steps = np.arange(p.shape[-1], 0, -1) * np.take_along_axis(p, order, -1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(steps, axis=-1), 1), -1)
    return adjusted


def _interval(x: Float[np.ndarray, "*shape seeds"], level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard error, and half the width of Student's interval."""
    from scipy.special import stdtrit

    seeds = x.shape[-1]
    error = x.std(axis=-1, ddof=1) / np.sqrt(seeds)
    return x.mean(axis=-1), error, error * stdtrit(seeds - 1, (1 + level) / 2)


def finals_of(caller: str, data: Any, instance: Instance | None) -> Finals:
    """From a dataset of a sweep, or from runs by name."""
    if hasattr(data, "data_vars"):
        finals = _of_dataset(caller, data)
    else:
        check_named_runs(f"{caller}: data", data)
        finals = _of_runs(caller, data, instance)
    if finals.regret.shape[-1] < 2:
        raise ValueError(f"{caller}: data must have at least 2 seeds, got {finals.regret.shape[-1]}")
    return finals


def check_named_runs(name: str, x: Any) -> None:
    """Refuse what is not a dict of batches by name, where a dataset has been ruled out.

    Raises:
        TypeError: it is not.
    """
    mend = "pass results of simulate_batch by name, such as {'UCB1': runs}, or the dataset of jaxbandit.sweep"
    if not isinstance(x, Mapping):
        raise TypeError(f"{name} is a {type(x).__name__}; {mend}")
    if not x:
        raise TypeError(f"{name} is empty; {mend}")
    for label, run in x.items():
        if not isinstance(run, Run):
            raise TypeError(f"{name}: {label!r} is a {type(run).__name__}, not a Run; {mend}")


def _of_runs(caller: str, runs: Mapping[str, Run], instance: Instance | None) -> Finals:
    shapes = {name: (*run.pulls.shape, int(run.rounds[-1])) for name, run in runs.items()}
    first = next(iter(shapes))
    for name, run in runs.items():
        if np.ndim(run.regret) != 2:
            raise ValueError(
                f"{caller}: run {name!r} must be a batch of seeds, got regret of shape {np.shape(run.regret)}; "
                "use simulate_batch"
            )
        same = [shapes[name][i] == shapes[first][i] for i in (0, 2, 3)]
        if not all(same):
            raise ValueError(
                f"{caller}: all runs need the same seeds, arms and last round, got {shapes[first][0]} seeds, "
                f"{shapes[first][2]} arms and round {shapes[first][3]} of {first!r}, but {shapes[name][0]}, "
                f"{shapes[name][2]} and {shapes[name][3]} of {name!r}; make them with the same key, seeds and horizon"
            )
    regret = np.stack([np.asarray(run.regret, np.float64)[:, -1] for run in runs.values()])[None]
    best = None
    if instance is not None:
        pulled = np.stack([np.asarray(run.pulls, np.float64)[:, -1].mean(axis=0) for run in runs.values()])
        if pulled.shape[1] != instance.num_arms:
            raise ValueError(f"{caller}: instance has {instance.num_arms} arms, the runs have {pulled.shape[1]}")
        best = (pulled[:, np.asarray(instance.gaps) == 0].sum(axis=1) / shapes[first][3])[None]
    return Finals([], [()], list(runs), regret, best)


def _of_dataset(caller: str, data: Any) -> Finals:
    if "final_regret" not in data or "seed" not in data.final_regret.dims:
        raise TypeError(f"{caller}: data must have final_regret over seed, as the dataset of jaxbandit.sweep has")
    if POLICY not in data.dims:
        data = data.expand_dims(POLICY)
    grid = [dimension for dimension in data.final_regret.dims if dimension not in (POLICY, "seed")]
    regret = data.final_regret.transpose(*grid, POLICY, "seed").to_numpy().astype(np.float64)
    names, values = [], []
    for dimension in grid:
        along = [name for name, x in data.coords.items() if x.dims == (dimension,)] or [dimension]
        names += along
        columns = [data[name].to_numpy() if name in data.coords else np.arange(data.sizes[dimension]) for name in along]
        values.append(list(zip(*(column.tolist() for column in columns), strict=True)))
    cells = [tuple(itertools.chain(*parts)) for parts in itertools.product(*values)]
    best = None
    if "arm_gap" in data.coords and "arm" in data.pulls_mean.dims:
        last = data.pulls_mean.isel(round=-1) if "round" in data.pulls_mean.dims else data.pulls_mean
        share = last.where(data.arm_gap == 0, 0).sum("arm", skipna=False) / last["round"]
        best = share.transpose(*grid, POLICY).to_numpy().reshape(len(cells), -1)
    policies = [str(name) for name in data[POLICY].to_numpy()]
    return Finals(names, cells, policies, regret.reshape(len(cells), len(policies), -1), best)


def _index(levels: list[str], more: list[str], rows: list[tuple[Any, ...]]) -> Any:
    pandas = _pandas("summary")
    if len(levels) + len(more) == 1:
        return pandas.Index([row[0] for row in rows], name=more[0])
    return pandas.MultiIndex.from_tuples(rows, names=[*levels, *more])


def _pandas(caller: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{caller} needs {error.name}: pip install pandas, or 'jaxbandit[sweep]'") from error
    return pandas
