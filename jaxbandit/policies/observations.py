"""What a policy may see: the observation models, from least to most informative."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, Num, Shaped


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
