"""What a run earns: the rewards of its pulls, by whether they have arrived, are still to come, or are lost.

Sums are taken of whole numbers, so that they are exact, and the three add up to what was pulled.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Num, UInt32

from jaxbandit._checks import NEVER
from jaxbandit.engine.pending import known_from
from jaxbandit.policies.observations import Pull

PLACES = (7, 15, 23, 31)
"""A reward that is not 0 or 1 is cut into digits of so many binary places: 2^24 of one digit add up in 32 bits."""


class Rewards(NamedTuple):
    """Sums of the rewards of the pulls of rounds 1..t, at the checkpoints t. A batch has a leading axis of seeds.

    The reward of a pull of round s with delay D is known from the start of round ``s + max(D, 1)`` on. It is ``seen``
    by round t if that is t or earlier, whatever the policy takes note of (a shop earns the sale also if its policy
    censors it); ``pending`` if it is later, be it after the horizon; and ``lost`` if D is ``NEVER``.

    After a history, what its pulls bring from then on is among them, and what was seen of them before is not: ``seen``
    is what is earned in the rounds of the run, whenever the pull was made.

    Exact: int32 where each reward is 0 or 1 by its law, else floats, for which a reward is rounded down to a multiple
    of 2^-31.
    """

    seen: Num[Array, "*seeds C"]
    pending: Num[Array, "*seeds C"]
    lost: Num[Array, "*seeds C"]


class Ledger(NamedTuple):
    """``due[t]`` arrives at the start of round t, as counts or as digits (see ``PLACES``); sums so far of the rest."""

    due: UInt32[Array, "T+2 *digits"]
    seen: UInt32[Array, "*digits"]
    pending: UInt32[Array, "*digits"]
    lost: UInt32[Array, "*digits"]

    @classmethod
    def empty(cls, horizon: int, binary: bool) -> "Ledger":
        digits = () if binary else (len(PLACES),)
        nothing = jnp.zeros(digits, jnp.uint32)
        return cls(due=jnp.zeros((horizon + 2, *digits), jnp.uint32), seen=nothing, pending=nothing, lost=nothing)

    def add(self, t: Int[Array, ""], pull: Pull) -> "Ledger":
        """What is known of the rewards in round t, after its pull. Differences of sums are exact modulo 2^32."""
        amount = pull.reward.astype(jnp.uint32) if self.seen.ndim == 0 else _digits(pull.reward)
        nothing = jnp.zeros_like(amount)
        never = pull.delay >= NEVER
        when = known_from(t, pull.delay, pull.delay)
        due = self.due.at[when].add(amount, mode="drop", wrap_negative_indices=False)
        arrived = due[t]
        return Ledger(
            due=due,
            seen=self.seen + arrived,
            pending=self.pending + jnp.where(never, nothing, amount) - arrived,
            lost=self.lost + jnp.where(never, amount, nothing),
        )

    def add_late(self, rounds: Int[Array, " n"], pulls: Pull) -> "Ledger":
        """What pulls of rounds 1..n bring after these."""
        amounts = pulls.reward.astype(jnp.uint32) if self.seen.ndim == 0 else jax.vmap(_digits)(pulls.reward)
        never = (pulls.delay >= NEVER).reshape(-1, *(1,) * self.seen.ndim)
        when = known_from(rounds, pulls.delay, pulls.delay)
        return self._replace(
            due=self.due.at[when].add(amounts, mode="drop", wrap_negative_indices=False),
            pending=self.pending + jnp.sum(jnp.where(never, 0, amounts), axis=0, dtype=jnp.uint32),
            lost=self.lost + jnp.sum(jnp.where(never, amounts, 0), axis=0, dtype=jnp.uint32),
        )

    def sums(self) -> tuple[Array, Array, Array]:
        """``seen``, ``pending`` and ``lost``."""
        return self.seen, self.pending, self.lost


def _digits(reward: Num[Array, ""]) -> UInt32[Array, " digits"]:
    digits, rest, before = [], reward.astype(float), 0
    for place in PLACES:
        rest = rest * 2.0 ** (place - before)
        digits.append(jnp.floor(rest).astype(jnp.uint32))
        rest, before = rest - jnp.floor(rest), place
    return jnp.stack(digits)


def rewards_of(sums: tuple[Array, Array, Array], binary: bool) -> Rewards:
    """From the sums of a ledger at the checkpoints, [C, *digits]."""
    return Rewards(*(x.astype(jnp.int32) if binary else _value(x) for x in sums))


def _value(digits: UInt32[Array, "C digits"]) -> Num[Array, " C"]:
    total = jnp.zeros(digits.shape[:-1])
    for i, place in reversed(list(enumerate(PLACES))):
        total += digits[..., i].astype(total.dtype) * 2.0**-place
    return total
