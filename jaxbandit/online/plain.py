"""Policies as plain text and back, without pickle: classes and functions by their public names, numbers by value."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import laws, policies

PUBLIC = {name: getattr(room, name) for room in (laws, policies) for name in room.__all__}


def described(x: Any) -> Any:
    """What ``built`` makes ``x`` of.

    Raises:
        TypeError: there is something in it that is not public in jaxbandit.
    """
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, (jax.Array, np.ndarray)):
        return {"array": np.asarray(x).tolist(), "dtype": str(x.dtype), "shape": list(x.shape)}
    if isinstance(x, (tuple, list)):
        return {"tuple": [described(item) for item in x]}
    if isinstance(x, jax.tree_util.Partial) and not x.args and not x.keywords:
        name = getattr(x.func, "__name__", "")
        if PUBLIC.get(name) is x.func:
            return {"function": name}
    name = type(x).__name__
    if isinstance(x, eqx.Module) and PUBLIC.get(name) is type(x):
        return {"class": name, "fields": {f.name: described(getattr(x, f.name)) for f in dataclasses.fields(x)}}
    raise TypeError(f"{x!r} is not public in jaxbandit")


def built(plain: Any) -> Any:
    """The policy that was ``described``."""
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return jnp.asarray(np.asarray(plain["array"], plain["dtype"]).reshape(plain["shape"]))
    if "tuple" in plain:
        return tuple(built(item) for item in plain["tuple"])
    if "function" in plain:
        return jax.tree_util.Partial(PUBLIC[plain["function"]])
    made = object.__new__(PUBLIC[plain["class"]])
    for name, value in plain["fields"].items():
        object.__setattr__(made, name, built(value))
    return made


def numbers(policy: Any) -> list[Any]:
    """The name of a policy's class and its numbers: by them one that is given again is recognised."""
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(policy)]
    return [type(policy).__name__, leaves]
