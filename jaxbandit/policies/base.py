"""What every policy is: three methods. And the statistics of the arms that most of them keep."""

import abc
import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from jaxbandit._arms import one_hot
from jaxbandit._show import show
from jaxbandit.policies.contract import METHODS, checked
from jaxbandit.policies.observations import Conversions, Observation, counts


class Policy(eqx.Module):
    """How arms are chosen: the simulator plays the arm with the highest score.

    Ties go to the arm with the fewest pulls, then to the lowest index. So a warm-up is a score of +inf,
    elimination is -inf, Thompson sampling is a posterior draw, a softmax policy is logits plus Gumbel noise.

    A policy is frozen; its numbers are array leaves, so that they can be traced, vmapped and changed without compiling
    again. What it learns in a run is in the state that its methods pass on.

    The contract between a policy and whoever steps it (``simulate``, ``Agent``, or a loop by hand):

    - Rounds are t = 1..T, T the ``horizon`` of ``init``. A state is for no more: past it, what happens is undefined.
    - ``t`` and ``arm`` are int32 scalars, rewards arrays with one number an arm: int32 if each is 0 or 1 by its law,
      and then they are counted, else floats in [0, 1]. Other types are refused with a TypeError.
    - The arm that ``jaxbandit.choose(scores, pulls)`` gives is pulled.
    - Every round there is one ``update``, with what is new before round t + 1, in the form that ``observes`` names.
      What a pull of round s gives with delay D is new at the start of round ``s + max(D, wait(D), 1)``.
    """

    observes: ClassVar[type[Observation]] = Conversions
    """What ``update`` is given: ``Anonymous``, ``Conversions``, ``Feedback`` or ``ConversionsByPull``."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """The arguments of a policy's methods are checked, so that no policy has to."""
        super().__init_subclass__(**kwargs)
        for name in METHODS & vars(cls).keys():
            setattr(cls, name, checked(vars(cls)[name]))

    def __repr__(self) -> str:
        return show(self)

    @abc.abstractmethod
    def init(self, num_arms: int, horizon: int) -> Any:
        """The state before round 1: a pytree of arrays."""

    @abc.abstractmethod
    def scores(self, state: Any, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        """The score of every arm in round t (1..T), never NaN. ``key`` costs nothing unless it is used."""

    @abc.abstractmethod
    def update(self, state: Any, t: Int[Array, ""], arm: Int[Array, ""], observation: Any) -> Any:
        """The state after ``arm`` was pulled in round t; ``observation`` is what is new before round t + 1."""

    @checked
    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        """After how many rounds the policy takes note of a reward with this delay: a later one, or ``NEVER``, censors.

        An earlier round than the delay's has no effect.
        """
        return delay

    def windows(self, pulls: Int[Array, " K"]) -> Int[Array, "W K"]:
        """Of how many rounds, W for each arm, are the windows of ``ConversionsByPull``, after so many pulls.

        A window is of 1 to T/2 + 1 rounds, and grows with its arm's pulls alone, by at most one a pull.
        """
        raise NotImplementedError(f"{type(self).__name__} observes ConversionsByPull, and so must define windows")

    def diagnostics(self, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
        """Numbers worth recording of the choice made from ``state`` in round t."""
        return {}


def add_compensated(total: Array, error: Array, amount: Array, exact: bool) -> tuple[Array, Array]:
    """``total + amount``, and the rounding error to make good next time (Kahan, 1965).

    A plain float32 sum of a million rewards of 0.9 is off by almost 1 %. One of whole numbers is ``exact``.
    """
    if exact:
        return total + amount, error
    amount = amount - error
    larger = total + amount
    return larger, (larger - total) - amount


class ArmStatistics(NamedTuple):
    """Pulls and rewards seen, arm by arm: ``N_i(t-1)`` and ``S_i(t)`` at the start of round t.

    ``error`` is the rounding error of ``rewards``.
    """

    pulls: Int[Array, " K"]
    rewards: Float[Array, " K"]
    error: Float[Array, " K"]

    @classmethod
    def empty(cls, num_arms: int) -> "ArmStatistics":
        return cls(pulls=jnp.zeros(num_arms, jnp.int32), rewards=jnp.zeros(num_arms), error=jnp.zeros(num_arms))

    def observe(self, arm: Int[Array, ""], rewards: Num[Array, " K"]) -> "ArmStatistics":
        """After a pull of ``arm`` and the arrival of ``rewards``."""
        return self.add(one_hot(arm, self.pulls.shape[0]), rewards)

    def add(self, pulls: Int[Array, " K"], rewards: Num[Array, " K"]) -> "ArmStatistics":
        amount = rewards.astype(self.rewards.dtype)
        total, error = add_compensated(self.rewards, self.error, amount, counts(rewards))
        return ArmStatistics(pulls=self.pulls + pulls, rewards=total, error=error)


def check_single(policy: Policy) -> None:
    """Refuse a parameter that is an array of several numbers: it would be taken for one number an arm.

    Raises:
        ValueError: there is one.
    """
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if isinstance(value, jax.Array) and value.ndim > 0:
            raise ValueError(
                f"{type(policy).__name__}: {field.name} must be a single number, got an array of shape {value.shape}; "
                "use jax.vmap over the policy to try several"
            )


def where_pulled(pulls: Num[Array, "*K"], index: Float[Array, "*K"]) -> Float[Array, "*K"]:
    """``index``, and +inf for an arm of which nothing is known."""
    return jnp.where(pulls > 0, index, jnp.inf)
