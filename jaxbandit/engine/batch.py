"""Many runs at once: seeds in chunks that fit the cache and the memory, on all local devices."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int

from jaxbandit import _checks, _progress
from jaxbandit.engine import tape
from jaxbandit.engine.history import History, length, past
from jaxbandit.engine.protocol import plan
from jaxbandit.engine.run import Run, checked, keep, rollout, start
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy

CACHE_BYTES = 4 * 2**20
MEMORY_BYTES = 2**30
MAX_LANES = 1024
VECTOR = 8
"""On a CPU an odd number of runs side by side takes twice the time of the next even one."""

LONG, STEP = 2**27, 2**24
"""Rounds of all runs from which on a call shows its progress, and between two steps of the bar: some seconds, and a
fraction of one, on a CPU."""


def simulate_batch(
    key: Any,
    instance: Instance,
    policy: Policy,
    *,
    horizon: int,
    seeds: int,
    checkpoints: Sequence[int] | None = None,
    chunk: int | None = None,
    rewards: bool = False,
    history: History | None = None,
    progress: bool | None = None,
) -> Run:
    """``seeds`` independent runs: run i is ``simulate(jaxbandit.fold_in(key, i), ...)``, bit for bit.

    The first 100 of 400 seeds are the 100 seeds. All local devices share the work; under ``jit`` or ``vmap`` the runs
    stay on the devices of the surrounding program.

    Args:
        key, instance, policy, horizon, checkpoints, rewards, history: as for ``simulate``.
        seeds: number of runs >= 1.
        chunk: how many of them a device runs at once; by default as many as fit its cache or memory. Changes no number.
        progress: show runs done, runs per second and time left (outside ``jit``; needs tqdm): always (``True``), never
            (``False``), or of long calls, where the output is a terminal or a notebook.

    Raises:
        TypeError, ValueError: as for ``simulate``.
        ImportError: ``progress=True`` without tqdm.
    """
    words = tape.words(key)
    history = past(history, instance, policy)
    rounds = plan(instance, policy, horizon, checkpoints, before=length(history))
    static = {"horizon": int(horizon), "rewards": bool(rewards)}
    seeds = _checks.whole_number("seeds", seeds, 1, 2**31 - 1, "give the number of runs")
    if chunk is not None:
        chunk = _checks.whole_number("chunk", chunk, 1, 2**31 - 1, "give the number of runs at a time")
    inputs = (words, instance, policy, rounds, history)
    of_run = bytes_per_run(instance, policy, checkpoints=len(rounds), history=history, **static)
    width = partial(side_by_side, of_run, instance.num_arms)
    if _checks.is_traced(inputs):
        layout = _layout(seeds, 1, chunk or width(jax.default_backend()))
        return Run(rounds, *_first(_chunks(layout.indices(), *inputs, **static), seeds))
    devices = local_devices()
    layout = _layout(seeds, len(devices), chunk or width(devices[0].platform))
    mesh = Mesh(np.array(devices), ("seeds",))
    inputs = jax.device_put(inputs, NamedSharding(mesh, PartitionSpec()))
    result = _shown(layout, partial(_on_devices, mesh=mesh, **static), inputs, int(horizon), progress)
    if len(devices) > 1:
        result = jax.device_put(result, devices[0])
    return checked(Run(rounds, *_first(result, seeds)), policy, instance)


class Layout(NamedTuple):
    """``devices x chunks`` chunks of ``lanes`` runs each."""

    devices: int
    chunks: int
    lanes: int

    def indices(self) -> Int[Array, "devices chunks lanes"]:
        return jnp.arange(self.devices * self.chunks * self.lanes, dtype=jnp.int32).reshape(self)


def side_by_side(bytes_per_run: int, num_arms: int, platform: str) -> int:
    """How many runs side by side: on a CPU as fit the cache, but enough to pay for the loop; else as fit the memory."""
    width = max(MEMORY_BYTES // bytes_per_run, 1)
    if platform == "cpu":
        enough = max(32, min(128, 3200 // num_arms))
        width = min(width, MAX_LANES, max(enough, CACHE_BYTES // bytes_per_run))
    return max(width // VECTOR * VECTOR, 1)


def whole_vectors(runs: int) -> int:
    """So many runs side by side or a few more: a multiple of ``VECTOR``, unless they are fewer than that."""
    return runs if runs <= VECTOR else -(-runs // VECTOR) * VECTOR


def _layout(seeds: int, devices: int, width: int) -> Layout:
    """Equal chunks of at most ``width`` runs, so that few are computed in vain."""
    share = -(-seeds // devices)
    chunks = -(-share // width)
    lanes = -(-share // chunks)
    if width % VECTOR == 0:
        lanes = whole_vectors(lanes)
    return Layout(devices=devices, chunks=chunks, lanes=lanes)


def bytes_per_run(
    instance: Instance,
    policy: Policy,
    horizon: int,
    checkpoints: int,
    *,
    rewards: bool = False,
    history: History | None = None,
) -> int:
    """Bytes that a run carries and reports."""
    carry = jax.eval_shape(partial(start, horizon=horizon, rewards=rewards), instance, policy, history)
    return _bytes(carry) + checkpoints * _bytes(jax.eval_shape(keep, carry))


def _bytes(tree: Any) -> int:
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def local_devices() -> list[Any]:
    """The local devices, or the one that the user has made the default."""
    default = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if default is None:
        return jax.local_devices()
    return jax.local_devices(backend=default) if isinstance(default, str) else [default]


def _chunks(indices: Any, words: Any, *inputs: Any, **static: Any) -> Any:
    """One device's chunks, one after another; the runs of a chunk side by side."""

    def chunk(indices: Int[Array, " lanes"]) -> Any:
        def run(i: Int[Array, ""]) -> Any:
            return rollout(tape.seed_words(words, i), *inputs, **static)

        return jax.vmap(run)(indices)

    return jax.tree.map(jnp.concatenate, jax.lax.map(chunk, indices[0]))


@partial(jax.jit, static_argnames=("mesh", "horizon", "rewards"))
def _on_devices(indices: Any, *inputs: Any, mesh: Mesh, horizon: int, rewards: bool) -> Any:
    shared, split = PartitionSpec(), PartitionSpec("seeds")
    specs = (split, *(shared for _ in inputs))
    chunks = partial(_chunks, horizon=horizon, rewards=rewards)
    return jax.shard_map(chunks, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)(indices, *inputs)


def _shown(layout: Layout, run: Callable[..., Any], inputs: Any, horizon: int, progress: bool | None) -> Any:
    """All chunks: in one call, or where a bar is shown in several, between which it moves."""
    indices, runs = layout.indices(), layout.devices * layout.chunks * layout.lanes
    if progress is False or (progress is None and runs * horizon < LONG):
        return run(indices, *inputs)
    with _progress.bar(progress, "simulate_batch", "sweep", total=runs) as bar:
        if bar.disable:
            return run(indices, *inputs)
        parts = []
        at_once = max(1, -(-layout.chunks * STEP // (runs * horizon)))
        for first in range(0, layout.chunks, at_once):
            part = run(indices[:, first : first + at_once], *inputs)
            parts.append(
                jax.tree.map(lambda x: x.reshape(layout.devices, -1, *x.shape[1:]), jax.block_until_ready(part))
            )
            bar.update(indices[:, first : first + at_once].size)
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=1).reshape(-1, *x[0].shape[2:]), *parts)


def _first(result: Any, seeds: int) -> Any:
    return jax.tree.map(lambda x: x[:seeds], result)
