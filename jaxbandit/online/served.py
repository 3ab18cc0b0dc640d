"""What an agent has learned, on the device: brought up to date from the log of its pulls, round after round."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit._arms import one_hot
from jaxbandit._checks import NEVER
from jaxbandit.engine import tape
from jaxbandit.engine.lookback import Lookback, lookback_of
from jaxbandit.engine.pending import known_from
from jaxbandit.policies.base import Policy
from jaxbandit.policies.choice import choose
from jaxbandit.policies.observations import Pull, observation


class Rounds(NamedTuple):
    """Rounds of the log, in a row: the arm of each, the reward and delay of its pull (``NEVER``: not known), and per
    arm the rewards and the number of the pulls that became known before the next round."""

    arms: Int[Array, " R"]
    reward: Float[Array, " R"]
    delay: Int[Array, " R"]
    rewards: Float[Array, "R K"]
    settled: Int[Array, "R K"]


class Served(NamedTuple):
    """At the start of a round: the policy's state, pulls of each arm, and what is known by the age of pulls."""

    state: Any
    pulls: Int[Array, " K"]
    lookback: Lookback | None


@partial(jax.jit, static_argnames=("num_arms", "horizon"))
def start(policy: Policy, *, num_arms: int, horizon: int) -> Served:
    return Served(
        state=jax.tree.map(jnp.asarray, policy.init(num_arms, horizon)),
        pulls=jnp.zeros(num_arms, jnp.int32),
        lookback=lookback_of(policy, horizon, num_arms, binary=False),
    )


@partial(jax.jit, donate_argnames="served")
def learn(policy: Policy, served: Served, rounds: Rounds, first: Int[Array, ""], count: Int[Array, ""]) -> Served:
    """From the start of round ``first`` to that of ``first + count``, by the same loop however many rounds it takes."""
    num_arms = served.pulls.shape[0]

    def one_round(i: Any, served: Served) -> Served:
        now: Rounds = jax.tree.map(lambda x: x[i], rounds)
        t, pulls, lookback = first + i, served.pulls + one_hot(now.arms, num_arms), served.lookback
        if lookback is not None:
            pull = Pull(arm=now.arms, reward=now.reward, delay=now.delay)
            lookback = lookback.write(t, pull).advance(t + 1, policy.windows(pulls))
        old = None if lookback is None else lookback.sums()
        seen = observation(policy.observes, now.rewards, now.settled, old)
        return Served(policy.update(served.state, t, now.arms, seen), pulls, lookback)

    return jax.lax.fori_loop(0, count, one_round, served)


@partial(jax.jit, donate_argnames="served")
def file_late(served: Served, t: Int[Array, ""], s: Int[Array, ""], pull: Pull) -> Served:
    """At the start of round t, tell of the reward of round s, which was learned without it and is known from t + 1 on.

    Windows in which the pull is old enough already have passed it by: there its reward is filed now.
    """
    lookback = served.lookback
    assert lookback is not None
    which = jnp.arange(lookback.window.shape[0], dtype=jnp.int32)
    passed = s <= t - lookback.window[:, pull.arm]
    at = jnp.where(passed & (pull.reward > 0), pull.delay, NEVER)
    amount = jnp.broadcast_to(pull.reward.astype(lookback.by_delay.dtype), at.shape)
    by_delay = lookback.by_delay.at[which, pull.arm, at].add(amount, mode="drop", wrap_negative_indices=False)
    return served._replace(lookback=lookback.write(s, pull)._replace(by_delay=by_delay))


@jax.jit
def next_arm(policy: Policy, served: Served, key: tape.Words, t: Int[Array, ""]) -> Int[Array, ""]:
    return choose(policy.scores(served.state, t, tape.policy_key(key, t)), served.pulls)


@jax.jit
def due(policy: Policy, s: Int[Array, ""], delay: Int[Array, ""]) -> Int[Array, ""]:
    """The round from whose start on the policy takes note of a reward."""
    return known_from(s, delay, policy.wait(delay))
