"""The zarr store of a sweep: which blocks there are, which are done, and their results.

Every array has leading axes [block of cells, block of seeds], and one chunk a block, written whole (zarr writes a file
under another name and renames it). ``done`` is written last. So a block is done or to be done again, whenever the
program was killed; and as a block's results are the same whoever computes them, two processes may both write it.
What cells and seeds the blocks hold is in the attributes, and changes under a lock.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = "jaxbandit sweep 2"
LOCK = ".lock"
PROBE_BYTES = 2**24


class Plan(NamedTuple):
    """``values`` and ``digests`` are of the cells in the order in which the store got them.

    Block (i, j) holds cells ``cell_edges[i]`` up to ``cell_edges[i+1]``, seeds ``seed_edges[j]`` up to
    ``seed_edges[j+1]``, and has room for ``room`` = [cells, seeds] at most.
    """

    room: tuple[int, int]
    values: list[list[float]]
    digests: list[str]
    cell_edges: list[int]
    seed_edges: list[int]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cell_edges) - 1, len(self.seed_edges) - 1

    def extent(self, i: int, j: int) -> tuple[int, int, int, int]:
        """First and last cell, first and last seed of a block (the last ones excluded)."""
        return *self.cell_edges[i : i + 2], *self.seed_edges[j : j + 2]  # pyright: ignore[reportReturnType]


class Array(NamedTuple):
    """What a block has of one array: its shape, and what stands where nothing was written."""

    shape: tuple[int, ...]
    dtype: Any
    fill: Any

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


def room_for(cells: int, seeds: int, runs: int) -> tuple[int, int]:
    """Blocks of about ``runs`` runs each, of equal size; with room for more seeds to come if these are few."""
    tall = max(1, min(cells, runs // seeds))
    tall = -(-cells // -(-cells // tall))
    if seeds >= runs:
        return tall, -(-seeds // -(-seeds // runs))
    return tall, max(seeds, runs // tall)


def edges(start: int, stop: int, most: int) -> list[int]:
    """Where to cut ``start..stop`` into equal parts of at most ``most``, without ``start`` itself."""
    parts = -(-(stop - start) // most)
    return [start + (stop - start) * (i + 1) // parts for i in range(parts)]


def extended(plan: Plan, names: list[str], values: list[list[float]], digests: list[str], seeds: int) -> Plan:
    """``plan``, with blocks for the cells and seeds that it lacks.

    Raises:
        ValueError: it holds cells or seeds that are not asked for, or others in their place.
    """
    wanted = dict(zip(map(tuple, values), digests, strict=True))
    stored = dict(zip(map(tuple, plan.values), plan.digests, strict=True))
    extra = [cell for cell in stored if cell not in wanted]
    other = [cell for cell in stored if cell in wanted and wanted[cell] != stored[cell]]
    differences = []
    if extra:
        at = dict(zip(names, extra[0], strict=True))
        differences.append(f"axes: the store has {len(extra)} cells that the call lacks, such as {at}")
    if other:
        at = dict(zip(names, other[0], strict=True))
        differences.append(f"build: gives something else than what was stored, at {len(other)} cells such as {at}")
    if seeds < plan.seed_edges[-1]:
        differences.append(f"seeds: {plan.seed_edges[-1]} in the store, {seeds} in the call")
    if differences:
        raise ValueError("; ".join(differences))
    new = [cell for cell in values if tuple(cell) not in stored]
    cells, before = len(plan.values) + len(new), plan.seed_edges[-1]
    return plan._replace(
        values=plan.values + new,
        digests=plan.digests + [wanted[tuple(cell)] for cell in new],
        cell_edges=plan.cell_edges + (edges(len(plan.values), cells, plan.room[0]) if new else []),
        seed_edges=plan.seed_edges + (edges(before, seeds, plan.room[1]) if seeds > before else []),
    )


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


def opened(path: Path | None, same: Mapping[str, Any], arrays: Any, asked: Plan, names: list[str]) -> tuple[Any, Plan]:
    """The zarr group at ``path`` and its plan, made or extended for the cells and seeds of ``asked``.

    Without a path, arrays of blocks in memory in its place.

    Args:
        path: a folder, or ``None``.
        same: what else makes up the numbers.
        arrays: ``room -> {name: Array}`` of a block.
        asked: the plan of a new store.
        names: of the axes.

    Raises:
        ValueError: the folder is not a store of ours, or one made with other arguments.
        OSError: it cannot be written.
    """
    import zarr
    from filelock import FileLock

    if path is None:
        group = {name: np.empty(asked.shape, object) for name in arrays(asked.room)}
        return group | {"done": np.zeros(asked.shape, bool)}, asked
    with told(path):
        path.mkdir(parents=True, exist_ok=True)
        with FileLock(path / LOCK):
            if _is_new(path):
                zarr.create_group(path, attributes=_attributes(same, asked))
            group = zarr.open_group(path, mode="r+")
            plan = _agreed(path, group, same, asked, names)
            _fit(group, arrays(plan.room), plan.shape)
            if plan.shape != _plan(group).shape:
                group.attrs.update(_attributes(same, plan))
        with tempfile.TemporaryFile(dir=path) as probe:
            size = sum(array.bytes for array in arrays(plan.room).values())
            probe.write(bytes(min(size, PROBE_BYTES)))
    return group, plan


def _is_new(path: Path) -> bool:
    """Whether nothing is there yet, or no more than what a process left that was killed while it began."""
    names = [entry.name for entry in path.iterdir() if entry.name != LOCK and not entry.name.endswith(".partial")]
    if names and "zarr.json" not in names:
        raise ValueError(f"sweep: {path} is not the store of a sweep (it holds {names[0]}); choose another folder")
    return not names


def _agreed(path: Path, group: Any, same: Mapping[str, Any], asked: Plan, names: list[str]) -> Plan:
    if (format := str(group.attrs.get("format"))) != FORMAT:
        what = (
            "the store of another version of jaxbandit"
            if format.startswith(FORMAT[:-1])
            else "not the store of a sweep, but another zarr group"
        )
        raise ValueError(f"sweep: {path} is {what}; choose another folder")
    stored = group.attrs["same"]
    differences = [
        f"{name}: {_short(stored.get(name))} in the store, {_short(same.get(name))} in the call"
        for name in sorted({*stored, *same})
        if stored.get(name) != same.get(name)
    ]
    plan = asked
    try:
        if stored["axes"] == names:
            plan = extended(_plan(group), names, asked.values, asked.digests, asked.seed_edges[-1])
    except ValueError as error:
        differences.append(str(error))
    if differences:
        raise ValueError(
            f"sweep: the store {path} was made with other arguments; call it with the same, or choose another folder. "
            f"What differs: {'; '.join(differences)}"
        )
    return plan


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(value)} entries)"


def _attributes(same: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    return {"format": FORMAT, "same": dict(same), "plan": plan._asdict()}


def _plan(group: Any) -> Plan:
    plan = Plan(**group.attrs["plan"])
    return plan._replace(room=tuple(plan.room))


def _fit(group: Any, arrays: dict[str, Array], blocks: tuple[int, int]) -> None:
    """Make the arrays that are missing, and enlarge those that are too small."""
    for name, array in {**arrays, "done": Array((), bool, False)}.items():
        if name not in group:
            chunks, shape = (1, 1, *array.shape), (*blocks, *array.shape)
            group.create_array(name, shape=shape, chunks=chunks, dtype=array.dtype, fill_value=array.fill)
        now = group[name].shape
        if now[0] < blocks[0] or now[1] < blocks[1]:
            group[name].resize((max(now[0], blocks[0]), max(now[1], blocks[1]), *array.shape))


def write(group: Any, at: tuple[int, int], result: Mapping[str, np.ndarray]) -> None:
    """Write the block ``at`` (i, j), padded to its room; ``done`` comes last."""
    for name, values in result.items():
        if name not in group:  # nothing of it is kept
            continue
        array = group[name]
        if isinstance(array, np.ndarray):
            array[at] = values
            continue
        padded = np.full(array.shape[2:], array.fill_value, array.dtype)
        padded[tuple(slice(size) for size in values.shape)] = values
        array[at] = padded
    group["done"][at] = True


def done_mask(group: Any, plan: Plan) -> np.ndarray:
    """[blocks of cells, blocks of seeds], as it is now."""
    return np.array(group["done"][: plan.shape[0], : plan.shape[1]])
