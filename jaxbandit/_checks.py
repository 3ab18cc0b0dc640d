"""Checks of what a user passes in: one clear error, before anything is compiled.

Values that are being traced (under ``jit``, ``vmap`` or ``grad``) have no numbers to look at yet and pass unchecked.
"""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

NEVER = 2**30
"""The delay of a reward that never arrives. Delays of this many rounds or more are the same as never."""


def is_traced(x: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(x))


def numeric(name: str, x: Any, mend: str) -> np.ndarray:
    """``x`` as a NumPy array of numbers."""
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a rectangular array of numbers ({error}); {mend}") from None
    if array.dtype.kind not in "fiub" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name} must be numbers, got {x!r}; {mend}")
    return array


_RULES = {
    "finite": np.isfinite,
    "in [0, 1]": lambda x: (x >= 0) & (x <= 1),
    "in (0, 1]": lambda x: (x > 0) & (x <= 1),
    "in (0, 10]": lambda x: (x > 0) & (x <= 10),
    "finite and > 0": lambda x: np.isfinite(x) & (x > 0),
    "finite and >= 0": lambda x: np.isfinite(x) & (x >= 0),
    "finite and >= 1": lambda x: np.isfinite(x) & (x >= 1),
}


def floats(name: str, x: Any, rule: str, mend: str) -> Array:
    """``x`` as an array of JAX's default float type, after the rule was checked for every entry."""
    if not is_traced(x):
        with np.errstate(over="ignore", invalid="ignore"):
            array = numeric(name, x, mend).astype(jnp.result_type(float))
        if array.size == 0:
            raise ValueError(f"{name} is empty: an instance needs at least one arm; {mend}")
        good = np.asarray(_RULES[rule](array))
        if not good.all():
            where = tuple(int(i) for i in np.argwhere(~good)[0]) if array.ndim else ()
            place = f" at index {list(where)}" if where else ""
            raise ValueError(f"{name} must be {rule}, got {array[where]!s}{place}; {mend}")
    return jnp.asarray(x, dtype=float)


def integers(name: str, x: Any, low: int, high: int, mend: str) -> Array:
    """``x`` as an int32 array with every entry in ``low..high``."""
    if is_traced(x):
        x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise TypeError(f"{name} must be an integer, got dtype {x.dtype}; {mend}")
    else:
        array = numeric(name, x, mend)
        if array.size == 0:
            raise ValueError(f"{name} is empty: an instance needs at least one arm; {mend}")
        if array.dtype.kind == "b" or (array.dtype.kind == "f" and not (array == np.floor(array)).all()):
            raise TypeError(f"{name} must be an integer, got {x!r}; {mend}")
        if not ((array >= low) & (array <= high)).all():
            raise ValueError(f"{name} must be an integer from {low} to {high}, got {x!r}; {mend}")
    return jnp.asarray(x, dtype=jnp.int32)


def whole_number(name: str, x: Any, low: int, high: int, mend: str) -> int:
    """``x`` as a Python integer in ``low..high``: for what sets a shape and so cannot be traced."""
    if isinstance(x, Tracer):
        raise TypeError(f"{name} sets an array's size and cannot be traced; mark it static in jit, or close over it")
    if isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, got {x!r}; {mend}")
    try:
        value = operator.index(x)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {x!r}; {mend}") from None
    if not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {value}; {mend}")
    return value
