"""A problem instance: a reward law and a delay law for every arm."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbandit.laws.base import DelayLaw, RewardLaw
from jaxbandit.laws.combined import all_of


class Instance(eqx.Module):
    """A stochastic bandit with delayed rewards: arm i pays ``C ~ reward_i`` after ``D ~ delay_i`` rounds,
    independently (Manegueu, Vernade, Carpentier and Valko, 2020, Section 2).

    Args:
        reward: a reward law; a law with one number for all arms serves any number of arms.
        delay: a delay law, likewise.

    Raises:
        TypeError: a delay law where the reward law belongs, or the reverse.
        ValueError: different numbers of arms, or no arms at all.
    """

    reward: RewardLaw
    delay: DelayLaw

    def __check_init__(self) -> None:
        if not all_of(RewardLaw, self.reward):
            raise TypeError(f"Instance: reward must be a reward law such as Bernoulli, got {self.reward!r}")
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

    @property
    def num_arms(self) -> int:
        return (self.reward.batch_shape or self.delay.batch_shape)[-1]

    @property
    def means(self) -> Float[Array, "*batch K"]:
        """Mean reward of every arm, shape [K]."""
        mean = self.reward.mean
        return jnp.broadcast_to(mean, (*mean.shape[:-1], self.num_arms))

    @property
    def gaps(self) -> Float[Array, "*batch K"]:
        """``max(means) - means``, shape [K]."""
        return jnp.max(self.means, axis=-1, keepdims=True) - self.means
