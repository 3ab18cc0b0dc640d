"""What a policy may see: the observation models, from least to most informative."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num, Shaped


def counts(rewards: Shaped[Array, "..."]) -> bool:
    """Whether these rewards are 0 or 1 by their law, so that they are counted, and their sums are exact."""
    return jnp.issubdtype(rewards.dtype, jnp.integer)


class Anonymous(NamedTuple):
    """Least informative: the sum of all rewards that arrive in a round, whichever arm they belong to.

    In this and the other observations rewards are int32 where each is 0 or 1 by its law, else floats: see ``counts``.
    """

    reward: Num[Array, ""]


class Conversions(NamedTuple):
    """The paper's model, partially observed: the rewards that arrive, arm by arm. A zero never announces itself."""

    rewards: Num[Array, " K"]


class Feedback(NamedTuple):
    """Fully observed: rewards and the number of pulls whose delay has passed, zeros included, arm by arm."""

    rewards: Num[Array, " K"]
    settled: Int[Array, " K"]


class Sums(NamedTuple):
    """Over the pulls of an arm that are at least w rounds old: how many, and their rewards that took w rounds or less.

    At the start of round t: ``sum over s <= t - w of 1{a_s = i}`` and of ``C_s 1{D_s <= w, a_s = i}``, for each of the
    windows w that the policy asks for (``Policy.windows``), W for each arm.
    """

    pulls: Int[Array, "W K"]
    rewards: Float[Array, "W K"]


class ConversionsByPull(NamedTuple):
    """``Conversions`` in which the learner also knows which pull each reward belongs to.

    What it learns from that is asked for as sums over old pulls, by ``Policy.windows``. All of them are of rewards that
    have arrived: a delay that has not passed is not in them.
    """

    rewards: Num[Array, " K"]
    old: Sums


Observation = Anonymous | Conversions | Feedback | ConversionsByPull


class Pull(NamedTuple):
    """The pull of a round, with its reward and delay: for the engine alone."""

    arm: Int[Array, ""]
    reward: Num[Array, ""]
    delay: Int[Array, ""]


def observation(
    observes: type[Observation], rewards: Num[Array, " K"], settled: Num[Array, " K"] | None, old: Sums | None
) -> Observation:
    """What a policy that ``observes`` so may see of what has arrived since the last pull."""
    if observes is Anonymous:
        return Anonymous(reward=jnp.sum(rewards, dtype=rewards.dtype))
    if observes is Feedback:
        assert settled is not None
        return Feedback(rewards=rewards, settled=settled.astype(jnp.int32))
    if observes is ConversionsByPull:
        assert old is not None
        return ConversionsByPull(rewards=rewards, old=old)
    return Conversions(rewards=rewards)
