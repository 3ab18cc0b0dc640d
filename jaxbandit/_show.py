"""How laws, policies, instances and results print: their numbers where these are few, their shapes where not."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import _checks

FEW = 8
"""Up to so many numbers of an array are printed; of more, its type and shape."""

WIDTH = 120


class _Text(str):
    """Printed as it is, without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def known(x: Any) -> bool:
    """Whether the numbers of ``x`` are at hand: not traced, not donated, not on another host, not a key."""
    if isinstance(x, jax.Array):
        if _checks.is_traced(x) or x.is_deleted() or not x.is_fully_addressable:
            return False
        return not jnp.issubdtype(x.dtype, jax.dtypes.extended)
    return isinstance(x, np.ndarray)


def show(tree: Any) -> str:
    """``tree`` as the call that makes it, on one line if it fits."""
    return eqx.tree_pformat(jax.tree.map(_leaf, tree, is_leaf=_is_plain_function), width=WIDTH)


def _is_plain_function(x: Any) -> bool:
    return isinstance(x, jax.tree_util.Partial) and not x.args and not x.keywords


def _leaf(x: Any) -> Any:
    if _is_plain_function(x):
        return _Text(getattr(x.func, "__name__", x.func))
    return _Text(_numbers(np.asarray(x))) if known(x) and x.size <= FEW else x


def _numbers(x: Any) -> str:
    if x.ndim:
        return f"[{', '.join(map(_numbers, x))}]"
    return "NEVER" if x.dtype.kind == "i" and x == _checks.NEVER else str(x)
