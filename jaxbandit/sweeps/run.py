"""A labelled grid of runs, stored and resumable, on every device and on a cluster."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxbandit import _checks, _progress
from jaxbandit.engine import batch, protocol, tape
from jaxbandit.engine.history import History, length
from jaxbandit.sweeps import block, executors, fingerprint, grid, labels, result
from jaxbandit.sweeps.block import Block
from jaxbandit.sweeps.grid import Axis, Cells
from jaxbandit.sweeps.labels import Request
from jaxbandit.sweeps.plan import Ask, Content, Plan, room_for
from jaxbandit.sweeps.store import Array, Store, opened, require, told

if TYPE_CHECKING:
    import xarray

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
WAITING_BYTES = 2**30
PACKAGES = ("jaxbandit", "jax", "jaxlib")


class Spec(NamedTuple):
    """All that the numbers of a sweep depend on.

    The first ``kept`` seeds of a cell keep their curves, if that was asked; ``diagnostics`` are those of each policy.
    """

    axes: tuple[Axis, ...]
    cells: Cells
    words: np.ndarray
    horizon: int
    rounds: np.ndarray
    seeds: int
    kept: int | None
    diagnostics: dict[str, tuple[str, ...]]
    dtype: np.dtype
    x64: bool
    platform: str
    history: History | None
    rewards: bool

    @property
    def num_arms(self) -> int:
        return self.cells.first()[0].num_arms

    def same(self) -> dict[str, Any]:
        """What a store must agree with; what may grow is in its plan."""
        instance, (policy, *_) = self.cells.first()
        by_default = np.array_equal(self.rounds, protocol.plan(instance, policy, self.horizon, None))
        past = {} if self.history is None else {"history": f"{len(self.history)} rounds, {grid.digest(self.history)}"}
        return (
            {
                "axes": [name for axis in self.axes for name in axis.values],
                "arms": self.num_arms,
                "key": self.words.tolist(),
                "horizon": self.horizon,
                "checkpoints": "those by default" if by_default else self.rounds.tolist(),
                "x64": self.x64,
                "platform": self.platform,
            }
            | ({"rewards": True} if self.rewards else {})
            | past
            | {f"version of {p}": version(p) for p in PACKAGES}
        )

    def ask(self, *, with_code: bool) -> Ask:
        """What a store must hold."""
        instance, policies = self.cells.first()
        codes = {name: "" for name in self.cells.names}
        if with_code:
            of_run = partial(
                fingerprint.of_run,
                horizon=self.horizon,
                rounds=self.rounds,
                platform=self.platform,
                history=self.history,
                rewards=self.rewards,
            )
            codes = {name: of_run(instance, policy) for name, policy in zip(self.cells.names, policies, strict=True)}
        count = len(self.cells.values)
        default = block.CURVE_BYTES // (count * len(policies) * len(self.rounds) * self.dtype.itemsize)
        return Ask(
            names=[name for axis in self.axes for name in axis.values],
            values=[list(cell.values()) for cell in self.cells.values],
            digests=self.cells.digests,
            gaps=np.asarray(jax.vmap(lambda instance: instance.gaps)(self.cells.instances), np.float64),
            code=fingerprint.of_instance(instance, self.platform) if with_code else "",
            policies={
                name: Content(list(self.cells.policy_digests[name]), codes[name], list(self.diagnostics[name]))
                for name in self.cells.names
            },
            seeds=self.seeds,
            kept=self.kept,
            default_kept=default,
            room=self.room(default if self.kept is None else self.kept),
        )

    def arrays(self, plan: Plan, policy: str) -> dict[str, Array]:
        """What a block holds of a policy; see ``block.collected``."""
        cells, seeds = plan.room
        tail, reported = len(self.rounds), len(plan.policies[policy].diagnostics)
        nothing = np.array(np.nan, self.dtype)
        arrays = {
            "final_regret": Array((cells, seeds), self.dtype, nothing),
            "final_rewards": Array((cells, seeds if self.rewards else 0), self.dtype, nothing),
            "curve": Array((cells, tail, min(plan.kept, seeds)), self.dtype, nothing),
            "pulls": Array((cells, tail, self.num_arms), np.int64, 0),
            "regret": Array((cells, tail, 3), np.int64, 0),
            "diagnostics": Array((cells, reported, tail, 3), np.int64, 0),
        }
        return {name: array for name, array in arrays.items() if 0 not in array.shape}

    def room(self, kept: int) -> tuple[int, int]:
        """Cells and seeds of the blocks of a new store."""
        tail, reported = len(self.rounds), max(map(len, self.diagnostics.values()))
        run_bytes = (1 + (tail if kept else 0)) * self.dtype.itemsize
        sums_bytes = 8 * tail * (self.num_arms + 3 + 3 * reported)  # of a cell, whatever its runs
        run_bytes += -(-sums_bytes // self.seeds)
        return room_for(len(self.cells.values), self.seeds, block.max_runs(self.horizon, run_bytes, self.platform))

    def request(self, build: Any, quantiles: np.ndarray) -> dict[str, Any]:
        """What it takes to label the result."""
        request = Request(
            axes=self.axes,
            policies=list(self.cells.names),
            seeds=self.seeds,
            curves=self.kept,
            quantiles=quantiles,
            horizon=self.horizon,
            rounds=self.rounds,
            dtype=self.dtype,
            attributes=labels.attributes(self, build),
            rewards=self.rewards,
        )
        return request.to_json()


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
    rewards: bool = False,
    history: History | None = None,
    store: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> "xarray.Dataset":
    """``seeds`` runs of every policy in every cell of a grid, as labelled arrays.

    Run i of a cell is ``simulate(jaxbandit.fold_in(key, i), ...)``, bit for bit, so that all cells and policies have
    the same luck and differences between them are paired. The numbers do not depend on the devices, the executor, or
    on how often the sweep was killed and resumed. One exception: where cells with few seeds run side by side, the
    effective pulls of ``DUCB``, ``DKLUCB`` and ``CorrectedThompson`` are added in another order, which may change their
    last bit.

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
            default as many as fit 256 MiB are kept for the quantiles, but not given; a store that is there keeps to
            the number of its first call.
        rewards: also give what was earned: ``final_rewards``, and means over the rounds.
        history: the past of all runs, as for ``simulate``.
        store: folder of a zarr store, written block by block. The same call resumes what was killed; one with other
            values on an axis, other seeds or other policies (a policy is known by its name) computes only what the
            store lacks, and gives what it asks for. Several processes may share it. ``open_sweep`` opens it.
        executor: any ``concurrent.futures.Executor``, to which blocks are given; by default all local devices of
            this process compute. Processes of ``jax.distributed`` share the blocks (and need a store).
        progress: show runs done, runs per second and time left; by default where the output is a terminal or a
            notebook.

    Returns:
        A dataset over the axes, ``policy``, ``round``, ``arm``, ``seed``, ``quantile``, all regret in units of reward:

        - ``regret_mean``, ``regret_standard_error``: over the runs, at the checkpoints. Sums are exact (pulls as whole
          numbers, squares of regret in units of 2^-31 of the round), and no order of blocks changes them.
        - ``regret_quantile``: of all runs at the last checkpoint; at others, of the runs that keep their curves.
        - ``pulls_mean``: pulls of every arm.
        - ``final_regret``: of every run, at the last checkpoint.
        - ``final_rewards``, ``rewards_seen_mean``, ``rewards_pending_mean``, ``rewards_lost_mean``: if asked for, the
          rewards of every run that are seen by the last checkpoint, and the means of what ``Rewards`` has at all.
        - ``regret_curve``: if ``curves`` is given, over ``curve`` (a seed) and ``round``.
        - ``NAME_mean`` for each of a policy's diagnostics, to 2^-24; NaN for policies without, and where that of a run
          was not finite, or 2^38 and more.

        The attributes say how to run it again. With a store, xarray opens the same from the store's group
        ``result``.

    Raises:
        ImportError: the extra ``sweep`` is not installed.
        TypeError, ValueError: an argument that is not what it should be, or a store made with others or with other
            code of a policy or law, before any run.
        OSError: a store that cannot be written. Blocks that are done stay, also after any other error.
    """
    require("sweep")
    path = None if store is None else _checks.path("sweep: store", store)
    _checks.floats("sweep: quantiles", quantiles, "in [0, 1]", "0.5 is the median")
    q = np.atleast_1d(np.asarray(quantiles, np.float64))
    spec = _spec(build, axes, horizon, seeds, key, checkpoints, curves, history, bool(rewards))
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(
            f"sweep: executor must be a concurrent.futures.Executor, got {executor!r}; of a Dask client, pass "
            "client.get_executor(); for submitit's, see docs/sweeps.md"
        )
    if jax.process_count() > 1 and path is None:
        raise ValueError("sweep: several processes of jax.distributed need a store that all of them can write")
    store_ = opened(path, spec.same(), spec.arrays, ask := spec.ask(with_code=path is not None), spec.request(build, q))
    if extra := _beside(store_, ask):  # cells that are not asked for, in blocks with some that are
        spec = spec._replace(cells=grid.cells_of(build, [*spec.cells.values, *extra]))
        beside = spec.ask(with_code=True)
        store_ = opened(path, spec.same(), spec.arrays, beside, store_.request)
    _run(spec, store_, ask, executor, path, progress)
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("jaxbandit.sweep")
    data = labels.dataset(store_)
    if path is not None and jax.process_index() == 0:
        result.write(path, data)
    return data


def _beside(store: Store, ask: Ask) -> list[dict[str, Any]]:
    """The arguments of the cells that share a block to be done with cells that are asked for."""
    places, columns = store.plan.places(ask.values), store.plan.columns(ask.seeds)
    done = np.all([store.done(policy)[:, columns].all(axis=1) for policy in ask.policies], axis=0)
    shared = [range(*store.plan.extent(i, 0)[:2]) for i in store.plan.rows(places) if not done[i]]
    others = sorted({cell for cells in shared for cell in cells} - set(places.tolist()))
    return [dict(zip(ask.names, store.plan.values[cell], strict=True)) for cell in others]


def _spec(
    build: Any,
    axes: Any,
    horizon: int,
    seeds: int,
    key: Any,
    checkpoints: Any,
    curves: int | None,
    history: Any = None,
    rewards: bool = False,
) -> Spec:
    """The arguments, checked."""
    if _checks.is_traced(key):
        raise TypeError("sweep: key cannot be traced: a sweep is a whole program; call it outside jit and vmap")
    words = np.asarray(tape.words(key))
    seeds = _checks.whole_number("seeds", seeds, 1, 2**31 - 1, "give the number of runs")
    axes = grid.axes_of(axes)
    cells = grid.cells_of(build, grid.values_of(axes))
    instance, policies = cells.first()
    rounds, reported = zip(*(block.outputs(instance, p, horizon, checkpoints, history) for p in policies), strict=True)
    earned = grid.EARNED if rewards else ()
    diagnostics = {name: (*sorted(own), *earned) for name, own in zip(cells.names, reported, strict=True)}
    for name in sorted({name for names in reported for name in names}):
        if f"{name}_mean" in grid.VARIABLES or any(f"{name}_mean" in axis.values for axis in axes):
            raise ValueError(f"sweep: diagnostic {name!r} would be stored as {name}_mean, which is taken; rename it")
    if curves is not None:
        mend = "give the number of runs that keep their curves"
        curves = _checks.whole_number("curves", curves, 1, 2**31 - 1, mend)
    return Spec(
        axes=axes,
        cells=cells,
        words=words,
        horizon=int(horizon),
        rounds=rounds[0],
        seeds=seeds,
        kept=curves,
        diagnostics=diagnostics,
        dtype=np.dtype(instance.gaps.dtype),
        x64=bool(jax.config.x64_enabled),  # pyright: ignore[reportAttributeAccessIssue]
        platform=batch.local_devices()[0].platform,
        history=jax.tree.map(np.asarray, history) if length(history) else None,
        rewards=rewards,
    )


def _run(
    spec: Spec, store: Store, ask: Ask, executor: Executor | None, path: Path | None, progress: bool | None
) -> None:
    """Compute and store all blocks that are not done; of several processes of one program, each its share of them."""
    plan = store.plan
    blocks = itertools.product(ask.policies, plan.rows(plan.places(ask.values)), plan.columns(ask.seeds))
    extents = {(policy, i, j): plan.extent(i, j) for policy, i, j in blocks}
    runs = {at: (last - first) * (stop - start) for at, (first, last, start, stop) in extents.items()}

    def is_done() -> dict[Any, bool]:
        done = {policy: store.done(policy) for policy in ask.policies}
        return {(policy, i, j): bool(done[policy][i, j]) for policy, i, j in extents}

    done = is_done()
    mine = list(extents)[jax.process_index() :: jax.process_count()]  # whichever of them the others have done by now
    index = {tuple(cell.values()): i for i, cell in enumerate(spec.cells.values)}
    order = np.array([index.get(tuple(cell), -1) for cell in plan.values])
    tasks = ((at, _block(spec, plan, order, at[0], extents[at])) for at in mine if not done[at])
    if executor is None:
        finished = executors.here(tasks)
    else:
        finished = executors.through(executor, tasks, _limit(spec, plan, ask))
    initial = sum(runs[at] for at in mine if done[at])
    with _progress.bar(progress, "sweep", "sweep", total=sum(runs[at] for at in mine), initial=initial) as bar:
        try:
            for at, found in finished:
                with told(path):
                    store.write(at, found)
                bar.update(runs[at])
        except BaseException as error:
            where = f"stored in {path}: the same call goes on from there" if path else "lost: give store= to keep them"
            error.add_note(f"sweep: {sum(is_done().values())} of {len(extents)} blocks were done and are {where}")
            raise


def _block(spec: Spec, plan: Plan, order: np.ndarray, policy: str, extent: tuple[int, int, int, int]) -> Block:
    """What is needed to compute a block. Its shape is that of the others, unless too much were computed in vain."""
    first, last, start, stop = extent
    tall = _padded(last - first, int(np.diff(plan.cell_edges).max()))
    wide = _padded(stop - start, max(b - a for a, b in plan.seed_ranges))
    cells = order[np.minimum(np.arange(first, first + tall), last - 1)]
    policies = spec.cells.policies[spec.cells.names.index(policy)]
    instances, policies = jax.tree.map(lambda x: x[cells], (spec.cells.instances, policies))
    return Block(
        instances=instances,
        policy=policies,
        words=spec.words,
        first_seed=start,
        used=stop - start,
        seeds=wide,
        kept=min(max(plan.kept - start, 0), wide),
        horizon=spec.horizon,
        rounds=spec.rounds,
        diagnostics=tuple(plan.policies[policy].diagnostics),
        x64=spec.x64,
        history=spec.history,
        rewards=spec.rewards,
    )


def _padded(size: int, most: int) -> int:
    return most if 2 * size >= most else size


def _limit(spec: Spec, plan: Plan, ask: Ask) -> int:
    """How many blocks may be with an executor at once, so that their results fit the memory."""
    of_block = max(sum(array.bytes for array in spec.arrays(plan, policy).values()) for policy in ask.policies)
    return max(2, min(1024, WAITING_BYTES // of_block))
