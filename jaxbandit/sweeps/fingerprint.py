"""Fingerprints of programs: whether the code behind a policy or a law is still what a store was made with.

The hash of a lowered module, without the source's locations: functions that are called or closed over are part of it,
numbers that are leaves of a policy or law are not. Nothing is compiled. The same code gives the same hash in another
process, on another machine of the same platform and with any number of devices.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engine.history import History
from jaxbandit.engine.run import draw_from_tape, rollout
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy


def of_run(
    instance: Instance,
    policy: Policy,
    horizon: int,
    rounds: np.ndarray,
    platform: str,
    *,
    history: History | None = None,
    rewards: bool = False,
) -> str:
    """Of one run."""
    words = jnp.zeros(2, jnp.uint32)
    run = partial(rollout, horizon=horizon, rewards=rewards)
    return _of(run, (words, instance, policy, jnp.asarray(rounds), history), platform)


def of_instance(instance: Instance, platform: str) -> str:
    """Of a pull, and of the gaps."""
    return _of(_pull, (jnp.zeros(2, jnp.uint32), instance, *(jnp.zeros((), jnp.int32),) * 3), platform)


def _pull(words: Any, instance: Instance, t: Any, arm: Any, n: Any) -> Any:
    return draw_from_tape(words, instance)(t, arm, n), instance.gaps


def _of(function: Callable[..., Any], arguments: tuple[Any, ...], platform: str) -> str:
    arguments = jax.tree.map(jnp.asarray, arguments)
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,))
    return hashlib.sha256(lowered.as_text().encode()).hexdigest()[:16]
