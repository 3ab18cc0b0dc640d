"""Which tail index and which constant a delay law allows in Assumptions 1 and 2."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit.engine.protocol import MAX_HORIZON
from jaxbandit.laws.base import DelayLaw, safe_log
from jaxbandit.laws.combined import all_of
from jaxbandit.theory import checks
from jaxbandit.theory.checks import BLOCK, KNOWN, Numbers


def assumption1_tail_index(delay: DelayLaw, horizon: int) -> Float[Array, "*K"]:
    """The largest α with ``P(D > m) <= m^-α`` for m = 1..T, arm by arm: Assumption 1 holds up to T for their minimum.

    0 where it holds for no α > 0, as for a constant delay of 3 rounds or more; infinite if D <= 2 always. The
    assumption has no constant before m^-α: a law of light tails and long delays fails it as one of heavy tails does.

    Args:
        delay: a delay law.
        horizon: T, a whole number from 2 to 2^24, not traced.

    Raises:
        TypeError: something that is not a delay law with a known survival function.
        ValueError: a horizon outside its range.
    """
    return _least("assumption1_tail_index", _local_tail_index, delay, jnp.ones(()), first=2, last=horizon)


def assumption2_constant(delay: DelayLaw, tail_index: Any, horizon: int) -> Float[Array, "*K"]:
    """The largest c with ``P(D > m) >= c m^-α`` for m = 1..T, arm by arm.

    Assumption 2 holds up to T with α and the least of them over the arms, if that is > 0 and Assumption 1 holds with
    the same α, which is one for all arms: arms of different tail indexes fail it.

    Args:
        delay: a delay law.
        tail_index: α > 0; the smallest ``assumption1_tail_index`` of an arm is the only choice for T to infinity.
        horizon: T, a whole number from 2 to 2^24, not traced.

    Raises:
        TypeError: something that is not a delay law with a known survival function.
        ValueError: a number outside its range.
    """
    tail_index = checks.tail_index("assumption2_constant", tail_index)
    return _least("assumption2_constant", _local_constant, delay, tail_index, first=1, last=horizon)


def _local_tail_index(m: Float[Array, ""], survival: Float[Array, "*K"], tail_index: Numbers) -> Float[Array, "*K"]:
    return -safe_log(survival) / jnp.log(m)


def _local_constant(m: Float[Array, ""], survival: Float[Array, "*K"], tail_index: Numbers) -> Float[Array, "*K"]:
    return survival * jnp.exp(tail_index * jnp.log(m))


def _least(
    name: str, of: Callable[..., Array], delay: Any, tail_index: Numbers, *, first: int, last: Any
) -> Float[Array, "*K"]:
    """The minimum of ``of(m, P(D > m), tail_index)`` over m = first..last; -inf if a probability is NaN."""
    if not all_of(DelayLaw, delay):
        raise TypeError(f"{name}: delay must be a delay law, whose survival function is known, got {delay!r}; {KNOWN}")
    last = _checks.whole_number(f"{name}: horizon", last, 2, MAX_HORIZON, "give the number of rounds")
    with checks.known_survival(name, delay):
        least = _least_of_blocks(of, delay, tail_index, first=first, last=last)
    if not _checks.is_traced(least) and np.isneginf(np.asarray(least)).any():
        raise ValueError(f"{name}: the survival function of delay {delay!r} is NaN at some m; mend the law")
    return least


@partial(jax.jit, static_argnames=("of", "first", "last"))
def _least_of_blocks(
    of: Callable[..., Array], delay: DelayLaw, tail_index: Numbers, *, first: int, last: int
) -> Float[Array, "*K"]:
    def add(block: Int[Array, ""], least: Float[Array, "*K"]) -> Float[Array, "*K"]:
        ages = jnp.minimum(first + block * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32), last).astype(float)
        survival = jax.vmap(delay.survival)(ages)
        values = jax.vmap(partial(of, tail_index=tail_index))(ages, survival)
        # XLA's minimum may lose a NaN.
        return jnp.minimum(least, jnp.min(jnp.where(jnp.isnan(survival), -jnp.inf, values), axis=0))

    blocks = -(-(last - first + 1) // BLOCK)
    return jax.lax.fori_loop(0, blocks, add, jnp.full(delay.batch_shape, jnp.inf))
