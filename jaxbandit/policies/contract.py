"""What a policy's methods are given, checked in one place for all policies: by its types and shapes alone.

So a step that is traced pays nothing when it runs, and a loop by hand is told at once what it got wrong.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import _checks
from jaxbandit.policies.observations import Observation

_MOST = 2**31 - 1
_NDIM = {"reward": 0, "rewards": 1, "settled": 1}
"""Axes of what an observation holds."""


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """A policy's method of the contract, after a look at its arguments."""
    check = _CHECKS[method.__name__]

    @functools.wraps(method)
    def with_check(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return with_check


def _init(policy: Any, num_arms: Any, horizon: Any) -> None:
    for name, x in (("num_arms", num_arms), ("horizon", horizon)):
        _checks.whole_number(f"{type(policy).__name__}.init: {name}", x, 1, _MOST, f"give {name} as a whole number")


def _scores(policy: Any, state: Any, t: Any, key: Any) -> None:
    _check_round(policy, "scores", "t", t)


def _update(policy: Any, state: Any, t: Any, arm: Any, observation: Any) -> None:
    _check_round(policy, "update", "t", t)
    _check_round(policy, "update", "arm", arm)
    _check_observation(f"{type(policy).__name__}.update", policy.observes, observation)


def _wait(policy: Any, delay: Any) -> None:
    _check_round(policy, "wait", "delay", delay)


_CHECKS: dict[str, Callable[..., None]] = {"init": _init, "scores": _scores, "update": _update, "wait": _wait}
METHODS = _CHECKS.keys()


def _is_array(x: Any, kind: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic) and jnp.issubdtype(x.dtype, kind)


def _check_round(policy: Any, method: str, name: str, x: Any) -> None:
    if not _is_array(x, jnp.integer) or x.ndim:
        raise TypeError(
            f"{type(policy).__name__}.{method}: {name} must be an int32 scalar, got {_described(x)}; "
            f"use jnp.int32({name}), and jax.vmap for several"
        )


def _check_observation(name: str, observes: type[Observation], seen: Any) -> None:
    if not isinstance(seen, observes):
        call = f"{observes.__name__}({', '.join(f'{field}=...' for field in observes._fields)})"
        raise TypeError(f"{name}: observation must be a jaxbandit.{call}, got {_described(seen)}; pass one")
    for field, ndim in _NDIM.items():
        if field not in observes._fields:
            continue
        x: Any = getattr(seen, field)
        if not (_is_array(x, jnp.number) and x.ndim == ndim):
            what = "an array with one number an arm" if ndim else "an array of shape ()"
            raise TypeError(
                f"{name}: observation.{field} must be {what}, got {_described(x)}; use jnp.asarray, and jax.vmap for "
                "several"
            )


def _described(x: Any) -> str:
    """Arrays by type and shape, for they may be traced; the rest as it is."""
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        return f"an array of {x.dtype} of shape {x.shape}"
    return f"{x!r} ({type(x).__name__})"
