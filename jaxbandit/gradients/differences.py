"""Differences of regret between two values of a parameter, on the same random tape."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit.engine import tape
from jaxbandit.engine.batch import simulate_batch
from jaxbandit.engine.run import simulate
from jaxbandit.laws.base import Law
from jaxbandit.policies import Policy

SMOOTHING = 0.03

DIRECTIONS = 16
"""Up to so many parameters each has a central difference of its own; more are shaken together."""

AT_ONCE = 256


class RoundedWindow(eqx.Module):
    """A policy whose window is a real number: in each run it is rounded at random, to ``floor(window + U)``.

    The expected regret J(m) of whole windows m becomes ``(1 - f) J(floor(m)) + f J(floor(m) + 1)``, f the fraction of
    m, and its derivative by ``estimator="crn"`` with a smoothing of 0.5, the default here, a difference of two windows
    one round apart, on the same tape. For ``expected_regret`` and ``regret_and_gradient`` only.

    Args:
        make: from a whole window to a policy: ``lambda m: jb.DUCB(m, cdf)``.
        window: a number of rounds >= 1.

    Raises:
        ValueError: a window that is not finite and >= 1.
    """

    make: Callable[[Int[Array, ""]], Policy] = eqx.field(static=True)
    window: Float[Array, ""]

    def __init__(self, make: Callable[[Int[Array, ""]], Policy], window: Any):
        mend = "give a number of rounds, 1 or more"
        self.make = make
        self.window = _checks.floats("RoundedWindow: window", window, "finite and > 0", mend)
        if _checks.is_traced(window):
            self.window = _checks.nan_unless(self.window >= 1, self.window)
        elif self.window.ndim or float(self.window) < 1:
            raise ValueError(f"RoundedWindow: window must be one number >= 1, got {window!r}; {mend}")

    def at(self, key: tape.Words) -> Policy:
        """The policy of one run."""
        u = jax.random.uniform(tape.policy_key(key, jnp.zeros((), jnp.int32)), (), self.window.dtype)
        whole = jnp.floor(self.window + u).astype(jnp.int32)
        return self.make(_checks.invalid_unless(_checks.sound(self), whole))


def _policy_of(policy: Policy | RoundedWindow, key: tape.Words) -> Policy:
    return policy.at(key) if isinstance(policy, RoundedWindow) else policy


def regrets(instance: Any, policy: Any, words: tape.Words, horizon: int, seeds: int) -> Float[Array, " seeds"]:
    """Regret of every run at the horizon."""
    if isinstance(policy, RoundedWindow):

        def one_run(i: Int[Array, ""]) -> Array:
            key = tape.seed_words(words, i)
            return simulate(key, instance, policy.at(key), horizon=horizon, checkpoints=[horizon]).regret[-1]

        return jax.lax.map(one_run, jnp.arange(seeds, dtype=jnp.int32), batch_size=AT_ONCE)
    runs = simulate_batch(words, instance, policy, horizon=horizon, seeds=seeds, checkpoints=[horizon])
    return runs.regret[:, -1]


@partial(jax.jit, static_argnames="regret")
def differences(chosen: Any, rest: Any, smoothing: Float[Array, ""], regret: Callable[..., Array], *extra: Any) -> Any:
    """Central differences ``(R(v + h e_j) - R(v - h e_j)) / 2h`` for every number v_j in ``chosen``.

    ``regret`` gives, from (instance, policy, *extra), one number or one a run; its axes follow those of ``chosen``.
    """
    point, unravel = ravel_pytree(chosen)
    steps = smoothing.astype(point.dtype) * jnp.eye(point.size, dtype=point.dtype)

    def at(vector: Array) -> Array:
        pair = eqx.combine(unravel(vector), rest)
        rebuilt = jax.tree.map(_rebuilt, pair, is_leaf=_is_built)
        return _checks.nan_unless(_checks.sound(rebuilt), regret(*pair, *extra))

    values = jax.lax.map(at, jnp.concatenate([point[None] + steps, point[None] - steps]))
    slopes = (values[: point.size] - values[point.size :]) / (2 * smoothing).astype(values.dtype)
    for _ in range(slopes.ndim - 1):
        unravel = jax.vmap(unravel, in_axes=-1)
    return unravel(slopes.astype(point.dtype))


@partial(jax.jit, static_argnames=("horizon", "seeds"))
def shaken(chosen: Any, rest: Any, smoothing: Float[Array, ""], words: tape.Words, *, horizon: int, seeds: int) -> Any:
    """``(R(v + h z) - R(v - h z)) z / 2h``, z normal, another one for every run: antithetic evolution strategies.

    Two runs a seed, whatever the number of parameters (Salimans et al., 2017). One entry a seed.
    """
    point, unravel = ravel_pytree(chosen)
    step = smoothing.astype(point.dtype)

    def one_run(i: Int[Array, ""]) -> Any:
        key = tape.seed_words(words, i)
        direction = jax.random.normal(tape.policy_key(key, jnp.zeros_like(i)), point.shape, point.dtype)

        def at(vector: Array) -> Array:
            instance, policy = eqx.combine(unravel(vector), rest)
            run = simulate(key, instance, _policy_of(policy, key), horizon=horizon, checkpoints=[horizon])
            return run.regret[-1]

        slope = (at(point + step * direction) - at(point - step * direction)) / (2 * step)
        return unravel(slope * direction)

    return jax.lax.map(one_run, jnp.arange(seeds, dtype=jnp.int32), batch_size=AT_ONCE)


def check_range(chosen: Any, rest: Any, smoothing: Array) -> None:
    """Refuse a smoothing that takes a parameter where its law or policy refuses it.

    Raises:
        ValueError: it does.
    """
    if _checks.is_traced((chosen, rest, smoothing)):
        return
    for sign in (1, -1):
        moved = jax.tree.map(lambda x, sign=sign: x + sign * smoothing.astype(x.dtype), chosen)
        try:
            jax.tree.map(_rebuilt, eqx.combine(moved, rest), is_leaf=_is_built)
        except ValueError as error:
            raise ValueError(
                f"smoothing {float(smoothing):.3g} takes a parameter out of its range: {error}. "
                "Give a smaller smoothing, or estimator='score', which does not smooth"
            ) from None


def _is_built(x: Any) -> bool:
    return isinstance(x, Law | Policy | RoundedWindow)


def _rebuilt(x: Any) -> Any:
    """``x`` as its constructor makes it from its fields, so that it checks them again."""
    if not _is_built(x):
        return x
    fields = {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}
    if set(inspect.signature(type(x)).parameters) != set(fields):
        return x
    try:
        return type(x)(**{name: jax.tree.map(_rebuilt, value, is_leaf=_is_built) for name, value in fields.items()})
    except jax.errors.ConcretizationTypeError:  # a constructor that looks at numbers, which are traced here
        return x
