"""Rewards in flight: a calendar with one row a round.

The calendar is written when an arm is pulled and read when the round comes, and never cleared: then XLA updates it in
place inside a scan. What is due after the horizon is dropped, so that a buffer of fixed size is exact for any delay.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped

from jaxbandit._checks import NEVER
from jaxbandit.engine.lookback import Lookback, lookback_of
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Feedback, Observation, Pull, counts, observation


def known_from(t: Int[Array, "..."], delay: Int[Array, "..."], wait: Int[Array, "..."]) -> Int[Array, "..."]:
    """The round from whose start on a pull of round t is known to a policy that waits for ``wait`` rounds: never before
    the next round, nor before its delay has passed."""
    return t + jnp.maximum(jnp.maximum(wait, delay), 1)


class Pending(NamedTuple):
    """What arrives, row by row: ``rewards[t]`` and ``settled[t]`` are known from the start of round t on."""

    rewards: Shaped[Array, "T+2 K"]
    settled: Shaped[Array, "T+2 K"] | None
    lookback: Lookback | None

    @classmethod
    def empty(cls, policy: Policy, horizon: int, num_arms: int, binary: bool) -> "Pending":
        """Counts are kept in the smallest integers that hold them: no more than T rewards arrive at once."""
        count = jnp.uint16 if horizon <= jnp.iinfo(jnp.uint16).max else jnp.uint32
        shape = (horizon + 2, num_arms)
        return cls(
            rewards=jnp.zeros(shape, count if binary else float),
            settled=jnp.zeros(shape, count) if policy.observes is Feedback else None,
            lookback=lookback_of(policy, horizon, num_arms, binary),
        )

    def add(self, policy: Policy, t: Int[Array, ""], pull: Pull, pulls: Int[Array, " K"]) -> "Pending":
        """File the pull of round t, after which there are ``pulls`` of the arms, to be seen when the policy has waited,
        and never before its delay has passed."""
        due = known_from(t, pull.delay, policy.wait(pull.delay))
        settled = None if self.settled is None else _count(self.settled, due, pull.arm, jnp.int32(1))
        if counts(self.rewards):
            # What to add does not depend on the draw, only where: both words of the tape end in one fused loop.
            rewards = _count(self.rewards, jnp.where(pull.reward == 1, due, NEVER), pull.arm, jnp.int32(1))
        else:
            rewards = _count(self.rewards, due, pull.arm, pull.reward)
        lookback = self.lookback
        if lookback is not None:
            lookback = lookback.write(t, pull._replace(delay=due - t)).advance(t + 1, policy.windows(pulls))
        return Pending(rewards=rewards, settled=settled, lookback=lookback)

    def add_late(self, policy: Policy, rounds: Int[Array, " n"], pulls: Pull) -> "Pending":
        """File what the pulls of rounds 1..n bring after these; they were added as pulls of which nothing comes."""
        due = known_from(rounds, pulls.delay, jax.vmap(policy.wait)(pulls.delay))
        lookback = self.lookback
        if lookback is not None:
            lookback = lookback.add_late(rounds, pulls._replace(delay=due - rounds))
        return Pending(
            rewards=_count(self.rewards, due, pulls.arm, pulls.reward),
            settled=None if self.settled is None else _count(self.settled, due, pulls.arm, jnp.ones_like(due)),
            lookback=lookback,
        )

    def arriving(self, observes: type[Observation], t: Int[Array, ""]) -> Observation:
        """What is new at the start of round t, the round after the last pull."""
        rewards = self.rewards[t]
        if counts(rewards):
            rewards = rewards.astype(jnp.int32)
        settled = None if self.settled is None else self.settled[t]
        return observation(observes, rewards, settled, None if self.lookback is None else self.lookback.sums())


def _count(rows: Array, due: Int[Array, "*n"], arm: Int[Array, "*n"], amount: Shaped[Array, "*n"]) -> Array:
    return rows.at[due, arm].add(amount.astype(rows.dtype), mode="drop", wrap_negative_indices=False)
