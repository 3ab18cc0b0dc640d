"""The zarr store of a sweep: which blocks there are, which are done, and their results.

Every policy has a group of arrays with leading axes [block of cells, range of seeds], and one chunk a block, written
whole (zarr writes a file under another name and renames it). ``done`` is written last. So a block is done or to be done
again, whenever the program was killed; and as a block's results are the same whoever computes them, two processes may
both write it. What the blocks hold is in the attributes, with what the last call asked for, and changes under a lock.
"""

import contextlib
import importlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandit.sweeps.plan import Ask, Plan, differences, extended

FORMAT = "jaxbandit sweep 3"
LOCK = ".lock"
PROBE_BYTES = 2**24


class Array(NamedTuple):
    """What a block has of one array: its shape, and what stands where nothing was written."""

    shape: tuple[int, ...]
    dtype: Any
    fill: Any

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


class Store(NamedTuple):
    """``blocks[policy][name]`` [blocks of cells, ranges of seeds, ...], ``gaps`` [cells, K]; ``request``: of labels."""

    plan: Plan
    request: Mapping[str, Any]
    gaps: np.ndarray
    blocks: dict[str, dict[str, Any]]

    def done(self, policy: str) -> np.ndarray:
        """[blocks of cells, ranges of seeds], as it is now."""
        rows, columns = self.plan.shape
        return np.array(self.blocks[policy]["done"][:rows, :columns])

    def write(self, at: tuple[str, int, int], result: Mapping[str, np.ndarray]) -> None:
        """Write the block ``at`` (policy, i, j), padded to its room; ``done`` comes last."""
        policy, i, j = at
        arrays = self.blocks[policy]
        for name, values in result.items():
            if name not in arrays:  # nothing of it is kept
                continue
            array = arrays[name]
            if isinstance(array, np.ndarray):
                array[i, j] = values
                continue
            padded = np.full(array.shape[2:], array.fill_value, array.dtype)
            padded[tuple(slice(size) for size in values.shape)] = values
            array[i, j] = padded
        arrays["done"][i, j] = True


def require(caller: str) -> None:
    """Refuse to go on without the extra ``sweep``."""
    try:
        for name in ("xarray", "zarr", "filelock", "tqdm.auto"):
            importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{caller} needs {error.name}: pip install 'jaxbandit[sweep]'") from error


@contextlib.contextmanager
def told(path: Any) -> Iterator[None]:
    """Say of an error in writing which store it was, and how to go on."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"sweep: store {path} cannot be written ({error}); make room or choose another folder, then call again: "
            "blocks that are done stay",
        ) from error


def locked(path: Path) -> Any:
    from filelock import FileLock

    return FileLock(path / LOCK)


def opened(path: Path | None, same: Mapping[str, Any], arrays: Any, ask: Ask, request: Mapping[str, Any]) -> Store:
    """The store at ``path``, made or extended for what is asked.

    Without a path, arrays of blocks in memory in its place.

    Args:
        path: a folder, or ``None``.
        same: what else makes up the numbers.
        arrays: ``(plan, policy) -> {name: Array}`` of a block.
        ask: the cells, seeds and policies.
        request: what it takes to label the result.

    Raises:
        ValueError: the folder is not a store of ours, or one made with other arguments.
        OSError: it cannot be written.
    """
    import zarr

    fresh = extended(None, ask)
    if path is None:
        return _in_memory(fresh, arrays, ask, request)
    with told(path):
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            if _is_new(path):
                zarr.create_group(path, attributes=_attributes(same, fresh, request))
            group = zarr.open_group(path, mode="r+")
            check_format(path, group, "sweep")
            plan = _agreed(path, group, same, ask)
            for policy in ask.policies:
                _fit(group, plan, policy, arrays(plan, policy))
            _keep_gaps(group, plan, ask)
            attributes = _attributes(same, plan, request)
            if attributes != group.attrs.asdict():
                group.attrs.update(attributes)
        with tempfile.TemporaryFile(dir=path) as probe:
            size = sum(array.bytes for array in arrays(plan, next(iter(ask.policies))).values())
            probe.write(bytes(min(size, PROBE_BYTES)))
    return _of(group, plan, request)


def _in_memory(plan: Plan, arrays: Any, ask: Ask, request: Mapping[str, Any]) -> Store:
    blocks = {
        policy: {name: np.empty(plan.shape, object) for name in arrays(plan, policy)}
        | {"done": np.zeros(plan.shape, bool)}
        for policy in ask.policies
    }
    return Store(plan, request, ask.gaps, blocks)


def existing(path: Path) -> Store:
    """The store at ``path``, to be read.

    Raises:
        ValueError: it is not a store of ours, or of another version.
    """
    import zarr

    if not (path / "zarr.json").exists():
        raise ValueError(f"open_sweep: {path} is not the store of a sweep; give the folder that was sweep's store=")
    group = zarr.open_group(path, mode="r")
    check_format(path, group, "open_sweep")
    return _of(group, _plan(group), group.attrs["request"])


def _of(group: Any, plan: Plan, request: Any) -> Store:
    folders = {policy: group.get(_folder(plan, policy)) for policy in request["policies"]}
    blocks = {policy: dict(folder.arrays()) for policy, folder in folders.items() if folder is not None}
    missing = {policy: {"done": np.zeros(plan.shape, bool)} for policy in request["policies"]}
    complete = {policy: arrays for policy, arrays in blocks.items() if "done" in arrays}
    return Store(
        plan, request, np.asarray(group["gaps"][:]) if "gaps" in group else np.empty((0, 0)), missing | complete
    )


def _folder(plan: Plan, policy: str) -> str:
    """Any string can name a policy, but not any a folder."""
    return f"policy-{list(plan.policies).index(policy)}"


def _is_new(path: Path) -> bool:
    """Whether nothing is there yet, or no more than what a process left that was killed while it began."""
    names = [entry.name for entry in path.iterdir() if entry.name != LOCK and not entry.name.endswith(".partial")]
    if names and "zarr.json" not in names:
        raise ValueError(f"sweep: {path} is not the store of a sweep (it holds {names[0]}); choose another folder")
    return not names


def check_format(path: Path, group: Any, caller: str) -> None:
    if (format := str(group.attrs.get("format"))) != FORMAT:
        what = (
            "the store of another version of jaxbandit"
            if format.startswith(FORMAT[:-1])
            else "not the store of a sweep, but another zarr group"
        )
        raise ValueError(f"{caller}: {path} is {what}; choose another folder")


def _agreed(path: Path, group: Any, same: Mapping[str, Any], ask: Ask) -> Plan:
    """The plan of a store that was made with the same, extended."""
    stored = _plan(group)
    found = differences(stored, ask, group.attrs["same"], same)
    if found:
        raise ValueError(
            f"sweep: the store {path} was made with other arguments; call it with the same, or choose another folder. "
            f"What differs: {'; '.join(found)}"
        )
    laws = "the reward or delay law" if ask.code != stored.code else None
    changed = [f"policy {name!r}" for name, policy in ask.policies.items() if stored.other_code(name, policy)]
    if laws or changed:
        raise ValueError(
            f"sweep: the code of {laws or ' and of '.join(changed)} has changed since the store was made, or a setting "
            f"of it that is not a number; choose another folder than {path}"
            + ("" if laws else ", or give it another name to run it anew")
        )
    return extended(stored, ask)


def _attributes(same: Mapping[str, Any], plan: Plan, request: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "same": dict(same), "plan": plan.to_json(), "request": dict(request)}


def _plan(group: Any) -> Plan:
    return Plan.from_json(group.attrs["plan"])


def _fit(group: Any, plan: Plan, policy: str, arrays: dict[str, Array]) -> None:
    """Make the arrays of a policy that are missing, and enlarge those that are too small."""
    blocks, folder = plan.shape, group.require_group(_folder(plan, policy))
    for name, array in {**arrays, "done": Array((), bool, False)}.items():
        if name not in folder:
            chunks, shape = (1, 1, *array.shape), (*blocks, *array.shape)
            folder.create_array(name, shape=shape, chunks=chunks, dtype=array.dtype, fill_value=array.fill)
        now = folder[name].shape
        if now[0] < blocks[0] or now[1] < blocks[1]:
            folder[name].resize((max(now[0], blocks[0]), max(now[1], blocks[1]), *array.shape))


def _keep_gaps(group: Any, plan: Plan, ask: Ask) -> None:
    shape = (len(plan.values), ask.gaps.shape[1])
    if "gaps" not in group:
        group.create_array("gaps", shape=shape, chunks=(4096, shape[1]), dtype=np.float64, fill_value=np.nan)
    array = group["gaps"]
    if array.shape[0] < shape[0]:
        array.resize(shape)
    before = np.asarray(array[:])
    after = before.copy()
    after[plan.places(ask.values)] = ask.gaps
    if not np.array_equal(before, after, equal_nan=True):
        array[:] = after
