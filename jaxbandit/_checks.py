"""Checks of what a user passes in: one clear error, before anything is compiled.

Values that are being traced (under ``jit``, ``vmap`` or ``grad``) have no numbers to look at yet. There, a number that
would be refused is poisoned: a float becomes NaN, and its derivative too, an integer ``INVALID``. What is computed from
it in the end is NaN: see ``sound``.
"""

import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

NEVER = 2**30
"""The delay of a reward that never arrives. Delays of this many rounds or more are the same as never."""

INVALID = -(2**31)
"""What NaN is among floats, among integers: no rule admits it."""


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


# In operators alone: for arrays of NumPy and of JAX. A NaN satisfies none.
_RULES: dict[str, Callable[[Any], Any]] = {
    "finite": lambda x: abs(x) < np.inf,
    "in [0, 1]": lambda x: (x >= 0) & (x <= 1),
    "in (0, 1]": lambda x: (x > 0) & (x <= 1),
    "in (0, 10]": lambda x: (x > 0) & (x <= 10),
    "finite and > 0": lambda x: (x > 0) & (x < np.inf),
    "finite and >= 0": lambda x: (x >= 0) & (x < np.inf),
    "finite and >= 1": lambda x: (x >= 1) & (x < np.inf),
}


def floats(name: str, x: Any, rule: str, mend: str) -> Array:
    """``x`` as an array of JAX's default float type, after the rule was checked for every entry."""
    if is_traced(x):
        array = jnp.asarray(x, dtype=float)
        return nan_unless(_RULES[rule](array), array)
    with np.errstate(over="ignore", invalid="ignore"):
        array = numeric(name, x, mend).astype(jnp.result_type(float))
    if array.size == 0:
        raise ValueError(f"{name} is empty; give a number, or one an arm")
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
        wide = x if x.dtype.itemsize >= 4 else x.astype(jnp.int32)
        return invalid_unless((wide >= low) & (wide <= high), wide.astype(jnp.int32))
    array = numeric(name, x, mend)
    if array.size == 0:
        raise ValueError(f"{name} is empty; give a number, or one an arm")
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and not (array == np.floor(array)).all()):
        raise TypeError(f"{name} must be an integer, got {x!r}; {mend}")
    if not ((array >= low) & (array <= high)).all():
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {x!r}; {mend}")
    return jnp.asarray(x, dtype=jnp.int32)


def nan_unless(good: Bool[Array | np.ndarray, "..."], x: Float[Array | np.ndarray, "..."]) -> Float[Array, "..."]:
    """``x``, bit for bit, where it is ``good``, else NaN. A product, so that its derivatives are NaN there too."""
    return jnp.where(good, 1, jnp.nan).astype(x.dtype) * x


def invalid_unless(good: Bool[Array | np.ndarray, "..."], x: Int[Array | np.ndarray, "..."]) -> Int[Array, "..."]:
    """``x`` where it is ``good``, else ``INVALID``."""
    return jnp.where(good, x, INVALID)


def sound(tree: Any) -> Bool[Array, ""]:
    """Whether no number in ``tree`` is NaN or ``INVALID``: what is computed from it is NaN otherwise.

    A comparison hides a NaN (no ``u <= nan``), so that results would be numbers if the parameters were not looked at.
    """
    good = jnp.ones((), bool)
    for leaf in map(jnp.asarray, jax.tree.leaves(tree)):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            good &= ~jnp.isnan(leaf).any()
        elif leaf.dtype in (jnp.int32, jnp.int64):
            good &= (leaf != INVALID).all()
    return good


def path(name: str, x: Any) -> Path:
    """``x`` as a path of the file system."""
    if not isinstance(x, str | os.PathLike):
        raise TypeError(f"{name} must be a path, a string or a pathlib.Path, got {type(x).__name__}")
    return Path(x)


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


def names(of: str, x: Any, num_arms: int | None = None) -> tuple[str, ...] | None:
    """``x`` as the names of arms: strings that differ, as many as there are arms. ``None`` where there are none."""
    if x is None:
        return None
    entries = [] if isinstance(x, str) else list(x) if np.iterable(x) else []
    if not entries or not all(isinstance(name, str) for name in entries):
        raise TypeError(f"{of}: names must be a list of strings, one an arm, got {x!r}")
    if len(set(entries)) < len(entries):
        twice = next(name for name in entries if entries.count(name) > 1)
        raise ValueError(f"{of}: names must differ, and {twice!r} is there twice; give every arm its own")
    if num_arms not in (None, len(entries)):
        raise ValueError(f"{of}: names has {len(entries)} entries for {num_arms} arms; give one an arm")
    return tuple(map(str, entries))


def same_names(of: str, names: tuple[str, ...] | None, other_of: str, others: tuple[str, ...] | None) -> None:
    """Refuse the arms of one thing in another order than those of another; a side without names says nothing."""
    if names is None or others is None or names == others:
        return
    first, second = (f"[{', '.join(map(repr, x[:8]))}{', ...' if len(x) > 8 else ''}]" for x in (names, others))
    at = next((i for i, (a, b) in enumerate(zip(names, others, strict=False)) if a != b), min(len(names), len(others)))
    where = f" (they differ from arm {at} on)" if at >= 8 else ""
    raise ValueError(
        f"{of} has the arms {first} and {other_of} {second}{where}; give both the same arms in the same order: "
        "read_log(..., arms=[...]) sets that of a log"
    )
