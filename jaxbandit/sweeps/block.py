"""One block of a sweep, some cells times some seeds of a policy: a pure function of what it is given, wherever it runs.

What comes back is bounded in size whatever the number of runs. Sums are taken on the devices, and are exact: they do
not depend on how runs were cut into blocks or in which order blocks were done.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Shaped

from jaxbandit.engine import batch, tape
from jaxbandit.engine.history import History, length, past
from jaxbandit.engine.protocol import plan, refuse_nan
from jaxbandit.engine.run import rollout, start
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.sweeps import exact, grid

STEPS = {"cpu": 2**24}
"""Rounds of all runs of a block: a second or so on a CPU, and enough runs to fill another device."""
OTHER_STEPS = 2**30
RESULT_BYTES = 2**27
CURVE_BYTES = 2**28


class Block(NamedTuple):
    """``instances`` and ``policy`` have a leading axis of cells, as NumPy arrays, so that a block can be pickled.

    The seeds are ``first_seed``, ``first_seed + 1``, ... (``used`` of them), padded to ``seeds`` runs, and the first
    ``kept`` keep their whole curve. ``x64`` is whether JAX computes in double precision.
    """

    instances: Instance
    policy: Policy
    words: np.ndarray
    first_seed: int
    used: int
    seeds: int
    kept: int
    horizon: int
    rounds: np.ndarray
    diagnostics: tuple[str, ...]
    x64: bool
    history: History | None = None
    rewards: bool = False

    @property
    def cells(self) -> int:
        return jax.tree.leaves(self.instances)[0].shape[0]


Result = dict[str, np.ndarray]
"""See ``collected``."""


class Which(NamedTuple):
    """The runs of each brick: all its cells with all its seeds."""

    cells: Int[Array, "bricks tall"]
    seeds: Int[Array, "bricks wide"]


class Inputs(NamedTuple):
    """What all bricks share; ``stop`` is the first seed that is not used.

    ``policies`` has a leading axis of cells, unless all of them share one.
    """

    words: tape.Words
    instances: Instance
    policies: Policy
    rounds: Int[Array, " C"]
    per_unit: Float[Array, " C"]
    stop: Int[Array, ""]
    history: History | None


class Summary(NamedTuple):
    """What a device gives of a brick, [tall, ...]."""

    final_regret: Float[Array, "tall wide"]
    final_rewards: Float[Array, "tall wide"] | None
    curve: Float[Array, "tall C wide"] | None
    pulls: exact.Halves
    regret: exact.RegretSums
    diagnostics: dict[str, exact.DiagnosticSums]


def outputs(
    instance: Instance, policy: Policy, horizon: int, checkpoints: Any, history: History | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Checks one cell. The checkpoints, and the names of what the policy reports."""
    past(history, instance, policy)
    rounds = plan(instance, policy, horizon, checkpoints, before=length(history))
    carry = jax.eval_shape(partial(start, horizon=int(horizon)), instance, policy, history)
    return np.asarray(rounds), tuple(carry.diagnostics)


def max_runs(horizon: int, run_bytes: int, platform: str) -> int:
    """How many runs make a block."""
    return max(1, min(STEPS.get(platform, OTHER_STEPS) // horizon, RESULT_BYTES // run_bytes))


def compute(block: Block) -> Result:
    """All of a block, wherever this runs."""
    return collected(block, launched(block))


def launched(block: Block) -> tuple[Any, "Bricks"]:
    """What the devices give: this returns while they are at work."""
    with jax.enable_x64(block.x64):
        return _launched(block)


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


def _launched(block: Block) -> tuple[Any, Bricks]:
    """All local devices share the work."""
    instance, of_first = jax.tree.map(lambda x: jnp.asarray(x[0]), (block.instances, block.policy))
    rounds = jnp.asarray(block.rounds)
    devices = batch.local_devices()
    bytes_per_run = batch.bytes_per_run(
        instance, of_first, block.horizon, len(rounds), rewards=block.rewards, history=block.history
    )
    width = batch.side_by_side(bytes_per_run, instance.num_arms, devices[0].platform)
    shape = bricks(block.cells, block.seeds, len(devices), width)
    # Beyond the last cell or brick, runs are computed in vain.
    row = np.minimum(np.arange(shape.rows * shape.cells, dtype=np.int32), block.cells - 1).reshape(shape.rows, -1)
    column = block.first_seed + np.arange(shape.columns * shape.seeds, dtype=np.int32).reshape(shape.columns, -1)
    row, column = np.repeat(row, shape.columns, axis=0), np.tile(column, (shape.rows, 1))
    spare = -len(row) % len(devices)
    which = Which(*(jnp.concatenate([x, np.repeat(x[-1:], spare, axis=0)]) for x in (row, column)))
    mesh = Mesh(np.array(devices), ("bricks",))
    shared = _alike(block.policy)
    inputs = Inputs(
        words=jnp.asarray(block.words),
        instances=block.instances,
        policies=of_first if shared else block.policy,
        rounds=rounds,
        per_unit=jnp.asarray(np.exp2(exact.regret_bits(block.rounds)), instance.gaps.dtype),
        stop=jnp.asarray(block.first_seed + block.used, jnp.int32),
        history=block.history,
    )
    inputs = jax.device_put(inputs, NamedSharding(mesh, PartitionSpec()))
    static = {"horizon": block.horizon, "keep_curves": block.kept > 0, "rewards": block.rewards, "one_policy": shared}
    return _on_devices(which, inputs, mesh=mesh, **static), shape


def _alike(policies: Any) -> bool:
    """Whether all cells have one policy, bit for bit."""
    return all(len({row.tobytes() for row in leaf}) == 1 for leaf in jax.tree.leaves(policies))


def collected(block: Block, running: tuple[Any, Bricks]) -> Result:
    """What is kept of a block, once its runs are there.

    - ``final_regret`` and, if asked for, ``final_rewards`` [cells, seeds]: of every run.
    - ``curve`` [cells, C, kept]: the regret of the first runs.
    - ``pulls`` [cells, C, K]: sums over the runs.
    - ``regret`` [cells, C, 3]: see ``exact.regret_limbs``.
    - ``diagnostics`` [cells, names, C, 3]: see ``exact.diagnostic_limbs``.
    """
    shape = running[1]
    summary: Any = jax.tree.map(lambda x: x[: shape.rows * shape.columns], jax.device_get(running[0]))

    def side_by_side(x: Shaped[np.ndarray, "bricks tall *shape wide"]) -> Shaped[np.ndarray, "cells *shape seeds"]:
        x = np.moveaxis(x.reshape(shape.rows, shape.columns, *x.shape[1:]), 1, -2)
        return x.reshape(-1, *x.shape[2:-2], shape.columns * shape.seeds)[: block.cells]

    def added(x: Shaped[np.ndarray, "bricks tall *shape"]) -> Shaped[np.ndarray, "cells *shape"]:
        return x.reshape(shape.rows, shape.columns, *x.shape[1:]).sum(axis=1).reshape(-1, *x.shape[2:])[: block.cells]

    final = side_by_side(summary.final_regret)[:, : block.used]
    refuse_nan(final, block.policy)
    diagnostics = [added(exact.diagnostic_limbs(summary.diagnostics[name])) for name in block.diagnostics]
    result = {
        "final_regret": final,
        "pulls": added(exact.total(summary.pulls)),
        "regret": added(exact.regret_limbs(summary.regret)),
    }
    if diagnostics:
        result["diagnostics"] = np.stack(diagnostics, axis=1)
    if summary.final_rewards is not None:
        result["final_rewards"] = side_by_side(summary.final_rewards)[:, : block.used]
    if summary.curve is not None:
        result["curve"] = side_by_side(summary.curve)[..., : min(block.used, block.kept)]
    return result


def _side_by_side(
    which: Which, inputs: Inputs, *, horizon: int, keep_curves: bool, rewards: bool, one_policy: bool
) -> Summary:
    """The runs of a brick: the only place that knows how a run is computed.

    What is the same for all runs is computed once: laws that a policy believes in, a past that it has lived through.
    """
    cells, seeds = which
    used = seeds < inputs.stop

    def cell(instance: Instance, policy: Policy) -> Summary:
        def run(i: Int[Array, ""]) -> Any:
            key = tape.seed_words(inputs.words, i)
            return rollout(key, instance, policy, inputs.rounds, inputs.history, horizon=horizon, rewards=rewards)

        pulls, regret, diagnostics, earned = jax.vmap(run, out_axes=-1)(seeds)
        if earned is not None:
            diagnostics = diagnostics | dict(zip(grid.EARNED, earned, strict=True))
        return Summary(
            final_regret=regret[-1],
            final_rewards=None if earned is None else earned.seen[-1].astype(regret.dtype),
            curve=regret if keep_curves else None,
            pulls=exact.halves(jnp.where(used, pulls, 0)),
            regret=exact.regret_sums(regret, used, inputs.per_unit),
            diagnostics={name: exact.diagnostic_sums(values, used) for name, values in diagnostics.items()},
        )

    def of_cells(which: Int[Array, "*tall"]) -> tuple[Instance, Policy]:
        instances = jax.tree.map(lambda x: x[which], inputs.instances)
        return instances, (inputs.policies if one_policy else jax.tree.map(lambda x: x[which], inputs.policies))

    if cells.shape == (1,):
        return jax.tree.map(lambda x: x[None], cell(*of_cells(cells[0])))
    return jax.vmap(cell, (0, None if one_policy else 0))(*of_cells(cells))


@partial(jax.jit, static_argnames=("mesh", "horizon", "keep_curves", "rewards", "one_policy"))
def _on_devices(which: Which, inputs: Inputs, *, mesh: Mesh, **static: Any) -> Summary:
    shared, split = PartitionSpec(), PartitionSpec("bricks")

    def share(which: Which, inputs: Inputs) -> Summary:
        brick = partial(_side_by_side, inputs=inputs, **static)
        return jax.lax.map(brick, which)

    return jax.shard_map(share, mesh=mesh, in_specs=(split, shared), out_specs=split, check_vma=False)(which, inputs)
