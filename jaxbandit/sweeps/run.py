"""A labelled grid of runs, stored and resumable, on every device and on a cluster."""

import importlib
import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxbandit import _checks
from jaxbandit.engine import batch, tape
from jaxbandit.sweeps import block, grid
from jaxbandit.sweeps.block import Block
from jaxbandit.sweeps.grid import Axis, Cells
from jaxbandit.sweeps.labels import assembled, labelled
from jaxbandit.sweeps.store import Array, Plan, done_mask, extended, opened, room_for, told, write

if TYPE_CHECKING:
    import xarray

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WAITING_BYTES = 2**30
PACKAGES = ("jaxbandit", "jax", "jaxlib")


class Spec(NamedTuple):
    """All that the numbers of a sweep depend on.

    The first ``kept`` seeds of a cell keep their curves; ``reported`` says which diagnostics a policy has.
    """

    axes: tuple[Axis, ...]
    cells: Cells
    words: np.ndarray
    horizon: int
    rounds: np.ndarray
    seeds: int
    kept: int
    diagnostics: tuple[str, ...]
    reported: list[list[bool]]
    dtype: np.dtype
    x64: bool
    platform: str

    @property
    def names(self) -> list[str]:
        return [name for axis in self.axes for name in axis.values]

    @property
    def num_arms(self) -> int:
        return self.cells.first()[0].num_arms

    def same(self) -> dict[str, Any]:
        """What a store must agree with; what may grow is in its plan."""
        return {
            "axes": self.names,
            "policies": list(self.cells.names),
            "num_arms": self.num_arms,
            "key": self.words.tolist(),
            "horizon": self.horizon,
            "checkpoints": self.rounds.tolist(),
            "curves": self.kept,
            "diagnostics": list(self.diagnostics),
            "x64": self.x64,
            "platform": self.platform,
        } | {f"version of {package}": version(package) for package in PACKAGES}

    def arrays(self, room: tuple[int, int]) -> dict[str, Array]:
        """What a block with that room holds; see ``block.collected``."""
        cells, seeds = room
        head, tail = (cells, len(self.cells.policies)), len(self.rounds)
        kept = min(self.kept, seeds)
        nothing = np.array(np.nan, self.dtype)
        arrays = {
            "final_regret": Array((*head, seeds), self.dtype, nothing),
            "curve": Array((*head, tail, kept), self.dtype, nothing),
            "pulls": Array((*head, tail, self.num_arms), np.int64, 0),
            "regret": Array((*head, tail, 3), np.int64, 0),
            "diagnostics": Array((*head, len(self.diagnostics), tail, 3), np.int64, 0),
        }
        return {name: array for name, array in arrays.items() if 0 not in array.shape}

    def plan(self) -> Plan:
        """The plan of a new store."""
        count = len(self.cells.values)
        tail = len(self.rounds)
        run_bytes = (1 + (tail if self.kept else 0)) * self.dtype.itemsize
        sums_bytes = 8 * tail * (self.num_arms + 3 + 3 * len(self.diagnostics))  # of a cell, whatever its runs
        run_bytes += -(-sums_bytes // self.seeds)
        room = room_for(count, self.seeds, block.max_runs(self.horizon, run_bytes, self.platform))
        values = [list(cell.values()) for cell in self.cells.values]
        nothing = Plan(room, [], [], [0], [0])
        return extended(nothing, self.names, values, self.cells.digests, self.seeds)


def sweep(
    build: Callable[..., Any],
    axes: Mapping[Any, Any],
    *,
    horizon: int,
    seeds: int,
    key: Any,
    checkpoints: Sequence[int] | None = None,
    quantiles: Sequence[float] = QUANTILES,
    curves: int | None = None,
    store: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> "xarray.Dataset":
    """``seeds`` runs of every policy in every cell of a grid, as labelled arrays.

    Run i of a cell is ``simulate(jax.random.fold_in(key, i), ...)``, bit for bit, so that all cells and policies have
    the same luck and differences between them are paired. The numbers do not depend on the devices, the executor, or
    on how often the sweep was killed and resumed. One exception: where cells with few seeds run side by side, the
    effective pulls of ``DUCB`` and ``DKLUCB`` are added in another order, which may change their last bit.

    Args:
        build: function of the axes' values, as arguments of these names, that gives an instance and a policy, or
            an instance and a dict of policies by name. It is called with numbers, once a cell. Only numbers may
            depend on the cell: one program serves all.
        axes: name -> values. Names in a tuple go together, ``{("alpha1", "alpha2"): [(0.1, 1.0), (0.3, 0.5)]}``: one
            dimension, named ``alpha1_alpha2``. No axes (``{}``) make a single cell.
        horizon, checkpoints: as for ``simulate``.
        seeds: runs of every policy in every cell.
        key: as for ``simulate``.
        quantiles: in [0, 1], of the regret over the runs of a cell.
        curves: how many runs of a cell, the first ones, keep their regret at every checkpoint (``regret_curve``). By
            default as many as fit 256 MiB are kept for the quantiles, but not given.
        store: folder of a zarr store, written block by block. The same call resumes what was killed; one with more
            seeds or more values on an axis computes only what is new. Several processes may share it.
        executor: any ``concurrent.futures.Executor``, to which blocks are given; by default all local devices of
            this process compute. Processes of ``jax.distributed`` share the blocks (and need a store).
        progress: show runs done, runs per second and time left, where the output is a terminal or a notebook.

    Returns:
        A dataset over the axes, ``policy``, ``round``, ``arm``, ``seed``, ``quantile``, all regret in units of reward:

        - ``regret_mean``, ``regret_standard_error``: over the runs, at the checkpoints. Sums are exact (pulls as whole
          numbers, squares of regret in units of 2^-31 of the round), and no order of blocks changes them.
        - ``regret_quantile``: of all runs at the last checkpoint; at others, of the runs that keep their curves.
        - ``pulls_mean``: pulls of every arm.
        - ``final_regret``: of every run, at the last checkpoint.
        - ``regret_curve``: if ``curves`` is given, over ``curve`` (a seed) and ``round``.
        - ``NAME_mean`` for each of a policy's diagnostics, to 2^-24; NaN for policies without, and where that of a run
          was not finite, or 2^38 and more.

        The attributes say how to run it again.

    Raises:
        ImportError: the extra ``sweep`` is not installed.
        TypeError, ValueError: an argument that is not what it should be, or a store made with others, before any run.
        OSError: a store that cannot be written. Blocks that are done stay, also after any other error.
    """
    tqdm = _extra()
    path = None if store is None else Path(store)
    _checks.floats("sweep: quantiles", quantiles, "in [0, 1]", "0.5 is the median")
    q = np.atleast_1d(np.asarray(quantiles, np.float64))
    spec = _spec(build, axes, horizon, seeds, key, checkpoints, curves)
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(
            f"sweep: executor must be a concurrent.futures.Executor, got {executor!r}; of a Dask client, pass "
            "client.get_executor(); for submitit's, see docs/sweeps.md"
        )
    if jax.process_count() > 1 and path is None:
        raise ValueError("sweep: several processes of jax.distributed need a store that all of them can write")
    group, plan = opened(path, spec.same(), spec.arrays, spec.plan(), spec.names)
    bar = partial(tqdm, desc="sweep", unit=" runs", unit_scale=True, disable=None if progress else True)
    _run(spec, group, plan, executor, path, bar)
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("jaxbandit.sweep")
    return labelled(spec, assembled(spec, group, plan, q, with_curves=curves is not None), q, build)


def _extra() -> Any:
    try:
        for name in ("xarray", "zarr", "filelock"):
            importlib.import_module(name)
        return importlib.import_module("tqdm.auto").tqdm
    except ImportError as error:
        raise ImportError(f"sweep needs {error.name}: pip install 'jaxbandit[sweep]'") from error


def _spec(build: Any, axes: Any, horizon: int, seeds: int, key: Any, checkpoints: Any, curves: int | None) -> Spec:
    """The arguments, checked."""
    if _checks.is_traced(key):
        raise TypeError("sweep: key cannot be traced: a sweep is a whole program; call it outside jit and vmap")
    words = np.asarray(tape.words(key))
    seeds = _checks.whole_number("seeds", seeds, 1, 2**31 - 1, "give the number of runs")
    axes = grid.axes_of(axes)
    cells = grid.cells_of(build, axes)
    instance, policies = cells.first()
    rounds, reported = zip(*(block.outputs(instance, p, horizon, checkpoints) for p in policies), strict=True)
    diagnostics = tuple(sorted({name for names in reported for name in names}))
    dtype = np.dtype(instance.gaps.dtype)
    for name in diagnostics:
        if f"{name}_mean" in grid.VARIABLES or any(f"{name}_mean" in axis.values for axis in axes):
            raise ValueError(f"sweep: diagnostic {name!r} would be stored as {name}_mean, which is taken; rename it")
    if curves is None:
        kept = block.CURVE_BYTES // (len(cells.values) * len(policies) * len(rounds[0]) * dtype.itemsize)
    else:
        kept = _checks.whole_number("curves", curves, 1, 2**31 - 1, "give the number of runs that keep their curves")
    return Spec(
        axes=axes,
        cells=cells,
        words=words,
        horizon=int(horizon),
        rounds=rounds[0],
        seeds=seeds,
        kept=kept,
        diagnostics=diagnostics,
        reported=[[name in names for name in diagnostics] for names in reported],
        dtype=dtype,
        x64=bool(jax.config.x64_enabled),  # pyright: ignore[reportAttributeAccessIssue]
        platform=batch.local_devices()[0].platform,
    )


def _run(spec: Spec, group: Any, plan: Plan, executor: Executor | None, path: Path | None, make_bar: Any) -> None:
    """Compute and store all blocks that are not done; of several processes of one program, each its share of them."""
    extents = {(i, j): plan.extent(i, j) for i, j in itertools.product(*map(range, plan.shape))}
    runs = {
        at: len(spec.cells.policies) * (last - first) * (stop - start)
        for at, (first, last, start, stop) in extents.items()
    }
    mine = list(extents)[jax.process_index() :: jax.process_count()]  # whichever of them the others have done by now
    done = done_mask(group, plan)
    todo = [at for at in mine if not done[at]]
    index = {tuple(cell.values()): i for i, cell in enumerate(spec.cells.values)}
    order = np.array([index[tuple(cell)] for cell in plan.values])
    tasks = ((at, _block(spec, plan, order, extents[at])) for at in todo)
    finished = _here(tasks) if executor is None else _through(executor, tasks, _limit(spec, plan))
    with make_bar(total=sum(runs[at] for at in mine), initial=sum(runs[at] for at in mine if done[at])) as bar:
        try:
            for at, result in finished:
                with told(path):
                    write(group, at, result)
                bar.update(runs[at])
        except BaseException as error:
            where = f"stored in {path}: the same call goes on from there" if path else "lost: give store= to keep them"
            error.add_note(
                f"sweep: {int(done_mask(group, plan).sum())} of {done.size} blocks were done and are {where}"
            )
            raise


def _block(spec: Spec, plan: Plan, order: np.ndarray, extent: tuple[int, int, int, int]) -> Block:
    """What is needed to compute a block. Its shape is that of the others, unless too much were computed in vain."""
    first, last, start, stop = extent
    tall = _padded(last - first, int(np.diff(plan.cell_edges).max()))
    wide = _padded(stop - start, int(np.diff(plan.seed_edges).max()))
    cells = order[np.minimum(np.arange(first, first + tall), last - 1)]
    instances, policies = jax.tree.map(lambda x: x[cells], (spec.cells.instances, spec.cells.policies))
    return Block(
        instances=instances,
        policies=policies,
        words=spec.words,
        first_seed=start,
        used=stop - start,
        seeds=wide,
        kept=min(max(spec.kept - start, 0), wide),
        horizon=spec.horizon,
        rounds=spec.rounds,
        diagnostics=spec.diagnostics,
        x64=spec.x64,
    )


def _padded(size: int, most: int) -> int:
    return most if 2 * size >= most else size


def _limit(spec: Spec, plan: Plan) -> int:
    """How many blocks may be with an executor at once, so that their results fit the memory."""
    return max(2, min(1024, WAITING_BYTES // sum(array.bytes for array in spec.arrays(plan.room).values())))


def _here(tasks: Iterator[tuple[Any, Block]]) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
    """Results in order. The devices are at work on the next block while one is reduced and stored."""
    before: tuple[Any, Block, list[Any]] | None = None
    for at, task in tasks:
        if before is not None:
            jax.block_until_ready(before[2])
        running = block.launched(task)
        if before is not None:
            yield before[0], block.collected(*before[1:])
        before = at, task, running
    if before is not None:
        yield before[0], block.collected(*before[1:])


def _through(
    executor: Executor, tasks: Iterator[tuple[Any, Block]], limit: int
) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
    """Results in the order in which they come. After a failure, what is still running is waited for."""
    waiting: dict[Any, Any] = {}
    failure: BaseException | None = None
    try:
        while True:
            while failure is None and len(waiting) < limit and (task := next(tasks, None)) is not None:
                try:
                    waiting[_submitted(executor, task[1])] = task[0]
                except BrokenExecutor as error:
                    failure = error
            if not waiting:
                break
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                at = waiting.pop(future)
                error = future.exception()
                if error is None:
                    yield at, future.result()
                else:
                    failure = failure or (_not_pickled(error) if _is_of_pickle(error) else error)
                    waiting = {other: at for other, at in waiting.items() if not other.cancel()}
    finally:
        for future in waiting:
            future.cancel()
    if isinstance(failure, BrokenExecutor):
        raise RuntimeError(f"sweep: the executor broke ({failure}); make a new one and call again") from failure
    if failure is not None:
        raise failure


def _submitted(executor: Executor, task: Block) -> Any:
    """A future. What cannot be sent is found out before anything runs."""
    from concurrent.futures import ProcessPoolExecutor  # brings multiprocessing

    try:
        if isinstance(executor, ProcessPoolExecutor):
            pickle.dumps(task)
        return executor.submit(block.compute, task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _not_pickled(error) from error


def _is_of_pickle(error: BaseException) -> bool:
    """Whether a task could not be sent: some executors, such as mpi4py's, pickle it after ``submit``."""
    says = ("pickle", "Can't get local object", "Can't get attribute")
    return isinstance(error, pickle.PicklingError) or (
        isinstance(error, AttributeError | TypeError) and any(words in str(error) for words in says)
    )


def _not_pickled(error: BaseException) -> TypeError:
    found = TypeError(
        f"sweep: the executor cannot pickle what build returns ({error}); define the classes and functions in it "
        "at the top of a module that the workers can import, or use an executor that sends code, such as Dask's"
    )
    found.__cause__ = error
    return found
