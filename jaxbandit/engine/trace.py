"""Runs round by round: on given tables, and on the random tape."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit._checks import NEVER
from jaxbandit.engine import tape
from jaxbandit.engine.protocol import check_policy, nan_error
from jaxbandit.engine.run import draw_from_tape, start
from jaxbandit.engine.step import Carry, scan, start_of
from jaxbandit.engine.transforms import depending_on, path_only
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy


class Trace(NamedTuple):
    """The arm of every round, and what the policy reports after its choice."""

    arms: Int[Array, " T"]
    diagnostics: dict[str, Num[Array, " T"]]


class Pulled(NamedTuple):
    """The arm of every round, and how often it had been pulled before: where on the tape its reward and delay are."""

    arms: Int[Array, " T"]
    numbers: Int[Array, " T"]


def replay(rewards: Any, delays: Any, policy: Policy) -> Trace:
    """The arms that ``policy`` pulls when round and arm decide what a pull gives.

    Args:
        rewards: [T, K], in [0, 1]: the reward of arm i if it is pulled in round t.
        delays: [T, K], whole numbers >= 0: its delay; ``jaxbandit.NEVER`` or infinity if it never arrives.
        policy: how arms are chosen.

    Raises:
        TypeError: delays that are not whole numbers.
        ValueError: tables of different or wrong shapes, rewards outside [0, 1], delays that are negative.
    """
    rewards = _checks.floats("replay: rewards", rewards, "in [0, 1]", "rescale rewards to [0, 1]")
    mend = "use jaxbandit.NEVER for a lost reward"
    if not _checks.is_traced(delays):
        delays = _checks.numeric("replay: delays", delays, mend)
        delays = np.where(delays >= NEVER, NEVER, delays)
    delays = _checks.integers("replay: delays", delays, 0, NEVER, mend)
    if rewards.ndim != 2 or rewards.shape != delays.shape:
        raise ValueError(
            f"replay: rewards and delays must both have shape [T, K], got {rewards.shape} and {delays.shape}; "
            "give one row a round, one column an arm"
        )
    check_policy(policy, rewards.shape[1], rewards.shape[0], binary=False)
    trace = _replay(rewards, delays, policy)
    if not _checks.is_traced(trace) and (np.asarray(trace.arms) >= rewards.shape[1]).any():
        raise nan_error(policy)
    return trace


@jax.jit
def _replay(rewards: Float[Array, "T K"], delays: Int[Array, "T K"], policy: Policy) -> Trace:
    rewards, delays, policy = path_only((rewards, delays, policy))
    horizon, num_arms = rewards.shape

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        return pick(rewards[t - 1], arm), pick(delays[t - 1], arm)

    carry = depending_on((rewards, delays, policy), start_of(policy, horizon, num_arms, binary=False))
    key, rounds = jnp.zeros(2, jnp.uint32), jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return scan(policy, draw, _keep_arm, key, rounds, carry)


def _keep_arm(carry: Carry) -> Trace:
    return Trace(arms=carry.arm, diagnostics=carry.diagnostics)


def _keep_place(carry: Carry) -> Pulled:
    return Pulled(arms=carry.arm, numbers=pick(carry.pulls, carry.arm) - 1)


def pulled(key: tape.Words, instance: Instance, policy: Policy, horizon: int) -> Pulled:
    """One run on the random tape, round by round."""
    instance, policy = path_only((instance, policy))
    carry = depending_on((key, instance, policy), start(instance, policy, horizon=horizon))
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return scan(policy, draw_from_tape(key, instance), _keep_place, key, rounds, carry)


def drawn(key: tape.Words, instance: Instance, run: Pulled) -> tuple[Num[Array, " T"], Int[Array, " T"]]:
    """Rewards and delays of the pulls of a run, seen or not."""
    draw = draw_from_tape(key, instance)
    return jax.vmap(partial(draw, jnp.zeros((), jnp.int32)))(run.arms, run.numbers)
