"""One block of a sweep, some cells times some seeds: a pure function of what it is given, wherever it runs.

What comes back is bounded in size whatever the number of runs, and sums are exact: whole numbers, so that they do not
depend on how runs were cut into blocks or in which order blocks were done.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbandit import batch, tape
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.simulate import Run, checked, plan, rollout, start

STEPS = {"cpu": 2**25}
"""Rounds of all runs of a block and policy: a second or so on a CPU, and enough runs to fill another device."""
OTHER_STEPS = 2**30
RESULT_BYTES = 2**27
CURVE_BYTES = 2**28
CACHE_VALUES = 2**15
"""How many values are reduced at a time, so that what lies between stays in the cache."""

LIMB = 32
REGRET_BITS = 31
DIAGNOSTIC_BITS = 24


class Block(NamedTuple):
    """``instances`` and ``policies`` have a leading axis of cells, as NumPy arrays, so that a block can be pickled.

    The seeds are ``first_seed``, ``first_seed + 1``, ... (``used`` of them), padded to ``seeds`` runs, and the first
    ``kept`` keep their whole curve. ``x64`` is whether JAX computes in double precision.
    """

    instances: Instance
    policies: tuple[Policy, ...]
    words: np.ndarray
    first_seed: int
    used: int
    seeds: int
    kept: int
    horizon: int
    rounds: np.ndarray
    diagnostics: tuple[str, ...]
    x64: bool

    @property
    def cells(self) -> int:
        return jax.tree.leaves(self.instances)[0].shape[0]


def outputs(instance: Instance, policy: Policy, horizon: int, checkpoints: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Checks one cell. The checkpoints, and the names of what the policy reports."""
    rounds = plan(instance, policy, horizon, checkpoints)
    carry = jax.eval_shape(partial(start, horizon=int(horizon)), instance, policy)
    return np.asarray(rounds), tuple(carry.diagnostics)


def max_runs(horizon: int, run_bytes: int, platform: str) -> int:
    """How many runs make a block, for each policy."""
    return max(1, min(STEPS.get(platform, OTHER_STEPS) // horizon, RESULT_BYTES // run_bytes))


def compute(block: Block) -> dict[str, np.ndarray]:
    """The results of a block, [cells, policies, ...]; see ``reduced`` for what they are."""
    return collected(block, launched(block))


def launched(block: Block) -> list[Any]:
    """What the devices give, one item a policy: this returns while they are at work on the last of them.

    One after another, as two programs on one device would share its cache.
    """
    running: list[Any] = []
    with jax.enable_x64(block.x64):
        for policy in block.policies:
            jax.block_until_ready(running[-1:])
            running.append(_launched(block, policy))
    return running


def collected(block: Block, running: list[Any]) -> dict[str, np.ndarray]:
    results = [reduced(block, *_runs(block, policy, *x)) for policy, x in zip(block.policies, running, strict=True)]
    return {name: np.stack([result[name] for result in results], axis=1) for name in results[0]}


def reduced(block: Block, pulls: np.ndarray, regret: np.ndarray, diagnostics: dict[str, np.ndarray]) -> Any:
    """What is kept of runs [cells, seeds, ...].

    - ``final_regret`` [cells, seeds]: of every run; NaN beyond the last seed.
    - ``curve`` [cells, kept, C]: the regret of the first runs.
    - ``pulls`` [cells, C, K]: sums over the runs.
    - ``regret`` [cells, C, 3]: sums of q and of q^2 (high and low limb), ``q = rint(regret 2^bits)``.
    - ``diagnostics`` [cells, names, C, 3]: sums of q (high and low limb), and how many were not finite.
    """
    final = np.full((block.cells, block.seeds), np.nan, regret.dtype)
    final[:, : block.used] = regret[:, : block.used, -1]
    curve = np.full((block.cells, block.kept, regret.shape[-1]), np.nan, regret.dtype)
    curve[:, : block.used] = regret[:, : min(block.used, block.kept)]
    result = {"final_regret": final, "pulls": np.sum(pulls[:, : block.used], axis=1, dtype=np.int64)}
    return result | {
        "curve": curve,
        "regret": regret_sums(regret[:, : block.used], block.rounds),
        "diagnostics": np.stack([diagnostic_sums(diagnostics.get(name), block) for name in block.diagnostics], axis=1)
        if block.diagnostics
        else np.zeros((block.cells, 0, len(block.rounds), 3), np.int64),
    }


def regret_bits(rounds: np.ndarray) -> np.ndarray:
    """At a checkpoint t, regret is counted in units of 2^-bits: q <= 2^31, as no regret is above t."""
    return REGRET_BITS - np.ceil(np.log2(rounds + 1.0)).astype(int)


def regret_sums(regret: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    unit = np.exp2(regret_bits(rounds))
    sums = np.zeros((len(regret), len(rounds), 3), np.int64)
    step = max(1, CACHE_VALUES // len(rounds))
    for total, cell in zip(sums, regret, strict=True):
        for at in range(0, len(cell), step):
            q = np.rint(cell[at : at + step] * unit).astype(np.int64)
            total[:, 0] += q.sum(axis=0)
            total[:, 1:] += np.stack(_limbs(q * q, axis=0), axis=-1)
    return sums


def diagnostic_sums(values: np.ndarray | None, block: Block) -> np.ndarray:
    if values is None:
        return np.zeros((block.cells, len(block.rounds), 3), np.int64)
    scaled = values[:, : block.used].astype(np.float64) * 2.0**DIAGNOSTIC_BITS
    good = np.abs(scaled) < 2.0**62
    q = np.rint(np.where(good, scaled, 0)).astype(np.int64)
    return np.stack([*_limbs(q, axis=1), np.sum(~good, axis=1)], axis=-1)


def _limbs(q: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the high and of the low 32 bits: neither overflows for 2^31 runs."""
    return (q >> LIMB).sum(axis=axis), (q & (2**LIMB - 1)).sum(axis=axis)


def whole(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The sums behind two limbs, as Python's integers, which do not overflow."""
    return high.astype(object) * 2**LIMB + low.astype(object)


class Bricks(NamedTuple):
    """``cells x seeds`` runs side by side on one device, a device's bricks one after another."""

    cells: int
    seeds: int
    rows: int
    columns: int


def bricks(cells: int, seeds: int, devices: int, width: int) -> Bricks:
    """Bricks of about ``width`` runs that cover the block, at least one a device where there are enough runs."""
    if seeds >= width or cells == 1:
        columns = max(-(-seeds // width), -(-devices // cells))
        side, tall = batch.whole_vectors(-(-seeds // columns)), 1
    else:
        columns, side = 1, seeds
        tall = min(max(width // seeds, 1), -(-cells // devices))
    return Bricks(cells=tall, seeds=side, rows=-(-cells // tall), columns=columns)


def _launched(block: Block, policy: Policy) -> tuple[Any, Bricks]:
    """All local devices share the work."""
    instance, of_first = jax.tree.map(lambda x: jnp.asarray(x[0]), (block.instances, policy))
    rounds = jnp.asarray(block.rounds)
    devices = batch._devices()
    bytes_per_run = batch._bytes_per_run(instance, of_first, block.horizon, len(rounds))
    width = batch._width(bytes_per_run, instance.num_arms, devices[0].platform)
    shape = bricks(block.cells, block.seeds, len(devices), width)
    # Beyond the last cell or brick, runs are computed in vain.
    row = np.minimum(np.arange(shape.rows * shape.cells, dtype=np.int32), block.cells - 1).reshape(shape.rows, -1)
    column = block.first_seed + np.arange(shape.columns * shape.seeds, dtype=np.int32).reshape(shape.columns, -1)
    row, column = np.repeat(row, shape.columns, axis=0), np.tile(column, (shape.rows, 1))
    spare = -len(row) % len(devices)
    which = tuple(np.concatenate([x, np.repeat(x[-1:], spare, axis=0)]) for x in (row, column))
    mesh = Mesh(np.array(devices), ("bricks",))
    inputs = (block.words, block.instances, policy, rounds)
    inputs = jax.device_put(inputs, NamedSharding(mesh, PartitionSpec()))
    return _on_devices(*which, *inputs, mesh=mesh, horizon=block.horizon), shape


def _runs(block: Block, policy: Policy, running: Any, shape: Bricks) -> tuple[np.ndarray, np.ndarray, Any]:
    """Pulls, regret and diagnostics of every run, [cells, seeds, ...], once they are there."""

    def arranged(x: np.ndarray) -> np.ndarray:
        """[bricks, cells, seeds, ...] -> [cells, seeds, ...]: bricks lie in one row, or are one cell high."""
        x = x[: shape.rows * shape.columns]
        return x.reshape(shape.rows * shape.cells, shape.columns * shape.seeds, *x.shape[3:])[: block.cells]

    pulls, regret, diagnostics = jax.tree.map(arranged, jax.device_get(running))
    checked(Run(jnp.asarray(block.rounds), pulls, regret, diagnostics), policy)
    return pulls, regret, diagnostics


def _side_by_side(which: Any, words: Any, instances: Instance, policies: Policy, rounds: Any, *, horizon: int) -> Any:
    """The runs of a brick: the only place that knows how a run is computed."""
    cells, seeds = which

    def cell(instance: Instance, policy: Policy) -> Any:
        return jax.vmap(lambda i: rollout(tape.fold_in(words, i), instance, policy, rounds, horizon=horizon))(seeds)

    if cells.shape == (1,):  # numbers that all runs share are cheaper than one each
        return jax.tree.map(lambda x: x[None], cell(*jax.tree.map(lambda x: x[cells[0]], (instances, policies))))
    return jax.vmap(cell)(*jax.tree.map(lambda x: x[cells], (instances, policies)))


@partial(jax.jit, static_argnames=("mesh", "horizon"))
def _on_devices(cells: Any, seeds: Any, *inputs: Any, mesh: Mesh, horizon: int) -> Any:
    shared, split = PartitionSpec(), PartitionSpec("bricks")

    def share(cells: Any, seeds: Any, *inputs: Any) -> Any:
        return jax.lax.map(lambda which: _side_by_side(which, *inputs, horizon=horizon), (cells, seeds))

    specs = (split, split, *(shared for _ in inputs))
    return jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)(cells, seeds, *inputs)
