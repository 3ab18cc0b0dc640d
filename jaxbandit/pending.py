"""Rewards in flight: a calendar with one row a round, and what each observation model lets a policy see of it.

The calendar is written when an arm is pulled and read when the round comes, and never cleared: then XLA updates it in
place inside a scan. What is due after the horizon is dropped, so that a buffer of fixed size is exact for any delay.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, Num, Shaped

from jaxbandit._checks import NEVER


class Anonymous(NamedTuple):
    """Least informative: the sum of all rewards that arrive in a round, whichever arm they belong to.

    In this and the other observations rewards are int32 where each is 0 or 1 by its law, else floats.
    """

    reward: Num[Array, ""]


class Conversions(NamedTuple):
    """The paper's model, partially observed: the rewards that arrive, arm by arm. A zero never announces itself."""

    rewards: Num[Array, " K"]


class Feedback(NamedTuple):
    """Fully observed: rewards and the number of pulls whose delay has passed, zeros included, arm by arm."""

    rewards: Num[Array, " K"]
    settled: Int[Array, " K"]


class Pull(NamedTuple):
    """The pull of a round, sealed: its reward and delay are not known yet."""

    arm: Int[Array, ""]
    reward: Num[Array, ""]
    delay: Int[Array, ""]


class ConversionsByPull(NamedTuple):
    """``Conversions`` in which the learner also knows which pull each reward belongs to.

    ``pull`` is to be filed, not opened: a policy may use its reward only once its delay has passed (the tests of all
    policies check that none does).
    """

    rewards: Num[Array, " K"]
    pull: Pull


Observation = Anonymous | Conversions | Feedback | ConversionsByPull


class Pending(NamedTuple):
    """What arrives, row by row: ``rewards[t]`` and ``settled[t]`` are known from the start of round t on."""

    rewards: Shaped[Array, "T+2 K"]
    settled: Shaped[Array, "T+2 K"] | None

    @classmethod
    def empty(cls, observes: type[Observation], horizon: int, num_arms: int, binary: bool) -> "Pending":
        """Counts are kept in the smallest integers that hold them: no more than T rewards arrive at once."""
        count = jnp.uint16 if horizon <= jnp.iinfo(jnp.uint16).max else jnp.uint32
        shape = (horizon + 2, num_arms)
        rewards = jnp.zeros(shape, count if binary else float)
        return cls(rewards=rewards, settled=jnp.zeros(shape, count) if observes is Feedback else None)

    def add(self, t: Int[Array, ""], pull: Pull, wait: Int[Array, ""]) -> "Pending":
        """File the pull of round t, to be seen after ``wait`` rounds, and never before its delay has passed."""
        due = t + jnp.maximum(jnp.maximum(wait, pull.delay), 1)
        settled = None if self.settled is None else _count(self.settled, due, pull.arm, jnp.int32(1))
        if jnp.issubdtype(self.rewards.dtype, jnp.integer):
            # What to add does not depend on the draw, only where: both words of the tape end in one fused loop.
            rewards = _count(self.rewards, jnp.where(pull.reward == 1, due, NEVER), pull.arm, jnp.int32(1))
        else:
            rewards = _count(self.rewards, due, pull.arm, pull.reward)
        return Pending(rewards=rewards, settled=settled)

    def arriving(self, observes: type[Observation], t: Int[Array, ""], pull: Pull) -> Observation:
        """What is new at the start of round t, the round after ``pull``."""
        rewards = self.rewards[t]
        if jnp.issubdtype(rewards.dtype, jnp.integer):
            rewards, pull = rewards.astype(jnp.int32), pull._replace(reward=pull.reward.astype(jnp.int32))
        settled = None if self.settled is None else self.settled[t]
        return observation(observes, rewards, settled, pull)


def observation(
    observes: type[Observation], rewards: Num[Array, " K"], settled: Num[Array, " K"] | None, pull: Pull
) -> Observation:
    """What a policy that ``observes`` so may see of what has arrived since ``pull``."""
    if observes is Anonymous:
        return Anonymous(reward=jnp.sum(rewards, dtype=rewards.dtype))
    if observes is Feedback:
        assert settled is not None
        return Feedback(rewards=rewards, settled=settled.astype(jnp.int32))
    if observes is ConversionsByPull:
        return ConversionsByPull(rewards=rewards, pull=pull)
    return Conversions(rewards=rewards)


def _count(rows: Array, due: Int[Array, ""], arm: Int[Array, ""], amount: Num[Array, ""]) -> Array:
    return rows.at[due, arm].add(amount.astype(rows.dtype), mode="drop", wrap_negative_indices=False)
