"""Who computes the blocks: the devices of this process, or the workers of an executor."""

import pickle
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from typing import Any

import jax
import numpy as np

from jaxbandit.sweeps import block
from jaxbandit.sweeps.block import Block


def here(tasks: Iterator[tuple[Any, Block]]) -> Iterator[tuple[Any, dict[str, np.ndarray]]]:
    """Results in order. The devices are at work on the next block while one is reduced and stored.

    One after another, as two programs on one device would share its cache.
    """
    before: tuple[Any, Block, Any] | None = None
    for at, task in tasks:
        if before is not None:
            jax.block_until_ready(before[2][0])
        running = block.launched(task)
        if before is not None:
            yield before[0], block.collected(*before[1:])
        before = at, task, running
    if before is not None:
        yield before[0], block.collected(*before[1:])


def through(
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
