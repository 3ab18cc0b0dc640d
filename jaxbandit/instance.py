"""A problem instance: a reward law and a delay law for every arm."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbandit import _checks
from jaxbandit._show import show
from jaxbandit.laws.base import DelayLaw, RewardLaw
from jaxbandit.laws.combined import all_of


def _is_mean(mean: Any) -> Any:
    """In [0, 1], but for the rounding of a mean that was computed."""
    return abs(mean - 0.5) <= 0.5 + 1e-5


def _names(x: Any) -> tuple[str, ...] | None:
    return _checks.names("Instance", x)


class Instance(eqx.Module):
    """A stochastic bandit with delayed rewards: arm i pays ``C ~ reward_i`` after ``D ~ delay_i`` rounds,
    independently (Manegueu, Vernade, Carpentier and Valko, 2020, Section 2).

    Args:
        reward: a reward law; a law with one number for all arms serves any number of arms.
        delay: a delay law, likewise.
        names: of the arms, strings that differ. A history or agent that has names too must have the same in the same
            order. They are no numbers: instances of one structure have the same.

    Raises:
        TypeError: a delay law where the reward law belongs, or the reverse; names that are not strings.
        ValueError: different numbers of arms, or no arms at all, or a mean reward outside [0, 1]; more or fewer names
            than arms, or one that is there twice.
    """

    reward: RewardLaw
    delay: DelayLaw
    names: tuple[str, ...] | None = eqx.field(default=None, static=True, converter=_names)

    def __check_init__(self) -> None:
        if not all_of(RewardLaw, self.reward):
            swapped = "; the two are swapped" if all_of(DelayLaw, self.reward) and all_of(RewardLaw, self.delay) else ""
            raise TypeError(f"Instance: reward must be a reward law such as Bernoulli, got {self.reward!r}{swapped}")
        if not all_of(DelayLaw, self.delay):
            raise TypeError(f"Instance: delay must be a delay law such as Pareto, got {self.delay!r}")
        arms = {law.batch_shape[-1] for law in (self.reward, self.delay) if law.batch_shape}
        if not arms:
            raise ValueError("Instance: reward and delay are for one unnamed arm; give a list, one number an arm")
        if len(arms) > 1:
            raise ValueError(
                f"Instance: reward has {self.reward.batch_shape[-1]} arms and delay has {self.delay.batch_shape[-1]}; "
                "give both one entry an arm"
            )
        _checks.names("Instance", self.names, self.num_arms)
        mean = self.reward.mean
        if not _checks.is_traced(mean) and not _is_mean(np.asarray(mean)).all():
            raise ValueError(f"Instance: the means of reward must lie in [0, 1], got {mean}; rescale rewards to [0, 1]")

    def __repr__(self) -> str:
        return show(self)

    @property
    def num_arms(self) -> int:
        return (self.reward.batch_shape or self.delay.batch_shape)[-1]

    @property
    def means(self) -> Float[Array, "*batch K"]:
        """Mean reward of every arm, shape [K]. NaN where one that is traced lies outside [0, 1]."""
        mean = self.reward.mean
        mean = _checks.nan_unless(_is_mean(mean), mean)
        return jnp.broadcast_to(mean, (*mean.shape[:-1], self.num_arms))

    @property
    def gaps(self) -> Float[Array, "*batch K"]:
        """``max(means) - means``, shape [K]."""
        return jnp.max(self.means, axis=-1, keepdims=True) - self.means
