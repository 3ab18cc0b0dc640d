"""From axes to the cells of a sweep: the problem and the policies at every combination of the axes' values."""

import hashlib
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import _checks
from jaxbandit.engine.ledger import Rewards
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy

DIMENSIONS = ("policy", "round", "arm", "seed", "quantile")
EARNED = tuple(f"rewards_{name}" for name in Rewards._fields)
"""Names under which a sweep sums what ``Rewards`` has of its runs."""
VARIABLES = (
    "arm_gap",
    "final_regret",
    "final_rewards",
    "regret_mean",
    "regret_standard_error",
    "regret_quantile",
    "regret_curve",
    "pulls_mean",
    *(f"{name}_mean" for name in EARNED),
)


class Axis(NamedTuple):
    """One dimension of the grid: ``values[name]`` has one entry a step, and several names go together (zipped)."""

    dimension: str
    values: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


class Cells(NamedTuple):
    """All cells, in the order of the grid (the last axis fastest): leaves have a leading axis of cells.

    ``values`` are the arguments of ``build``, ``names`` are the policies'. ``digests`` tell the numbers of two
    instances apart, ``policy_digests[name]`` those of two policies.
    """

    values: list[dict[str, Any]]
    digests: list[str]
    policy_digests: dict[str, list[str]]
    names: tuple[str, ...]
    instances: Instance
    policies: tuple[Policy, ...]

    def first(self) -> tuple[Instance, tuple[Policy, ...]]:
        return jax.tree.map(lambda x: jnp.asarray(x[0]), (self.instances, self.policies))


def axes_of(axes: Mapping[Any, Any]) -> tuple[Axis, ...]:
    """The axes, checked.

    Raises:
        TypeError: axes that are not a mapping from names to numbers.
        ValueError: an axis that is empty, holds a value twice or NaN, or has a name that is taken.
    """
    if not isinstance(axes, Mapping):
        raise TypeError(f"sweep: axes must map names to values, got {axes!r}; such as {{'alpha': [0.1, 0.3]}}")
    names = [name for key in axes for name in (key if isinstance(key, tuple) else (key,))]
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(f"sweep: an axis needs the name of an argument of build, got {name!r}")
        if name in (*DIMENSIONS, *VARIABLES):
            raise ValueError(f"sweep: axis {name!r} is named like an array or dimension of the result; rename it")
        if names.count(name) > 1:
            raise ValueError(f"sweep: axis {name!r} is there twice; give every argument of build one axis")
    found = tuple(_axis(key if isinstance(key, tuple) else (key,), values) for key, values in axes.items())
    for axis in found:
        if len(axis.values) > 1 and axis.dimension in names:
            raise ValueError(f"sweep: axis {axis.dimension!r} is named like the axes {tuple(axis.values)}; rename it")
    return found


def _axis(names: tuple[str, ...], values: Any) -> Axis:
    label, mend = ", ".join(names), "give one number a step"
    if len(names) == 1:
        columns = [_checks.numeric(f"sweep: axis {label}", values, mend)]
    else:
        rows = list(values)
        if any(np.shape(row) != (len(names),) for row in rows):
            raise ValueError(f"sweep: axis ({label}) needs {len(names)} numbers a step, got {values!r}")
        columns = [
            _checks.numeric(f"sweep: axis {name}", [row[i] for row in rows], mend) for i, name in enumerate(names)
        ]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1 or column.size == 0:
            raise ValueError(f"sweep: axis {name} must be a list of at least one number, got {values!r}; {mend}")
        if (column != column).any():
            raise ValueError(f"sweep: axis {name} has a NaN at index {int(np.argmax(column != column))}; leave it out")
    steps = list(zip(*(column.tolist() for column in columns), strict=True))
    seen: dict[tuple[float, ...], int] = {}
    for i, step in enumerate(steps):
        if seen.setdefault(step, i) != i:
            twice = step[0] if len(names) == 1 else step
            raise ValueError(f"sweep: axis {label} has {twice} twice (index {seen[step]} and {i}); give it once")
    return Axis(dimension="_".join(names), values=dict(zip(names, columns, strict=True)))


def values_of(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """The arguments of ``build`` at every cell."""
    steps = [[{n: v[i].item() for n, v in axis.values.items()} for i in range(len(axis))] for axis in axes]
    return [{n: v for step in cell for n, v in step.items()} for cell in itertools.product(*steps)]


def cells_of(build: Callable[..., Any], values: list[dict[str, Any]]) -> Cells:
    """``build`` at every cell: called with plain numbers, so that laws and policies check them.

    Raises:
        TypeError: ``build`` takes other arguments than the axes, or gives something else than instance and policies.
        ValueError: another structure than in the first cell, such as another number of arms.
    """
    _check_signature(build, list(values[0]))
    built: list[list[np.ndarray]] = []
    digests: list[list[str]] = []
    names, first = _built(build, values[0])
    for cell in values:
        others, problem = _built(build, cell)
        if names != others:
            raise ValueError(
                f"sweep: build gives the policies {list(names)} at {values[0]} and {list(others)} at {cell}; give the "
                "same everywhere"
            )
        _check_alike(first, problem, values[0], cell)
        built.append([np.asarray(leaf) for leaf in jax.tree.leaves(problem)])
        digests.append([digest(part) for part in (problem[0], *problem[1])])
    structure = jax.tree.structure(first)
    instances, policies = jax.tree.unflatten(structure, [np.stack(leaves) for leaves in zip(*built, strict=True)])
    of_instances, *of_policies = (list(column) for column in zip(*digests, strict=True))
    return Cells(values, of_instances, dict(zip(names, of_policies, strict=True)), names, instances, policies)


def _check_signature(build: Any, names: list[str]) -> None:
    if not callable(build):
        raise TypeError(f"sweep: build must be a function of the axes' values, got {build!r}")
    try:
        inspect.signature(build).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise TypeError(f"sweep: build must take the axes {names} as arguments ({error})") from None
    except ValueError:  # a builtin without a signature: the call will tell
        pass


def _built(
    build: Callable[..., Any], cell: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[Instance, tuple[Policy, ...]]]:
    try:
        problem = build(**cell)
    except Exception as error:
        error.add_note(f"sweep: in build at {cell}")
        raise
    if not isinstance(problem, tuple) or len(problem) != 2 or not isinstance(problem[0], Instance):
        raise TypeError(f"sweep: build must return an Instance and policies, got {problem!r} at {cell}")
    instance, policies = problem
    if isinstance(policies, Policy):
        policies = {type(policies).__name__: policies}
    if not isinstance(policies, Mapping) or not policies or not all(isinstance(p, Policy) for p in policies.values()):
        raise TypeError(f"sweep: build must return a policy or a dict of policies by name, got {policies!r} at {cell}")
    if not all(isinstance(name, str) for name in policies):
        raise TypeError(f"sweep: policies need names that are strings, got {list(policies)} at {cell}")
    return tuple(policies), (instance, tuple(policies.values()))


def _check_alike(first: Any, other: Any, at_first: dict[str, Any], at_other: dict[str, Any]) -> None:
    arms = first[0].num_arms, other[0].num_arms
    mend = (
        "one program serves all cells: only numbers may differ, and functions must be defined outside build; run a "
        "sweep for each structure"
    )
    if arms[0] != arms[1]:
        raise ValueError(f"sweep: build gives {arms[0]} arms at {at_first} and {arms[1]} at {at_other}; {mend}")
    shapes = [[(np.shape(x), np.asarray(x).dtype) for x in jax.tree.leaves(problem)] for problem in (first, other)]
    if jax.tree.structure(first) != jax.tree.structure(other) or shapes[0] != shapes[1]:
        raise ValueError(
            f"sweep: build gives {first} at {at_first} and another structure, {other}, at {at_other}; {mend}"
        )


def digest(part: Any) -> str:
    """Of numbers alone: what else there is shows in the program, see ``fingerprint``."""
    digest = hashlib.sha256()
    for leaf in map(np.asarray, jax.tree.leaves(part)):
        digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
    return digest.hexdigest()[:16]
