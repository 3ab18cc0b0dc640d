"""What is known by the age of pulls, in O(K) work a round: the sums behind ``ConversionsByPull``.

The engine knows the delay of a pull from its round on, and files it here; a policy sees sums of rewards that have
arrived, and nothing else.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit._checks import NEVER
from jaxbandit.policies.base import Policy, add_compensated
from jaxbandit.policies.observations import ConversionsByPull, Pull, Sums


class Log(NamedTuple):
    """The pull of every round: ``code`` is its delay and its arm, so that both are one look-up.

    A reward of 0 is logged as one that never comes; ``reward`` is ``None`` where rewards are 0 or 1 by their law.
    """

    code: Int[Array, "T+1"]
    reward: Float[Array, "T+1"] | None

    @classmethod
    def empty(cls, horizon: int, binary: bool) -> "Log":
        return cls(code=jnp.zeros(horizon + 1, jnp.int32), reward=None if binary else jnp.zeros(horizon + 1))

    def write(self, t: Int[Array, "*n"], pull: Pull, num_arms: int) -> "Log":
        """Of one round or several; beyond the last nothing is written.

        A delay of half the horizon or more is longer than any window, and shortened to that.
        """
        longest = longest_window(self.code.shape[0] - 1) + 1
        delay = jnp.where(pull.reward > 0, jnp.minimum(pull.delay, longest), longest)
        code = self.code.at[t].set((delay << _bits(num_arms)) | pull.arm, mode="drop")
        if self.reward is None:
            return self._replace(code=code)
        return Log(code=code, reward=self.reward.at[t].set(pull.reward.astype(self.reward.dtype), mode="drop"))

    def read(self, t: Int[Array, "..."], num_arms: int) -> tuple[Int[Array, "..."], Int[Array, "..."]]:
        """Delays and arms."""
        code = self.code[t]
        return code >> _bits(num_arms), code & (2 ** _bits(num_arms) - 1)


def longest_window(horizon: int) -> int:
    """Half the horizon, and one: what a policy looks back at grows with every second pull, not faster."""
    return horizon // 2 + 1


def _bits(num_arms: int) -> int:
    """Bits of an arm. Beside it a delay fits, unless (T + 5) (K - 1) reaches 2^31: far more than a memory holds."""
    return (num_arms - 1).bit_length()


class Lookback(NamedTuple):
    """For windows of w rounds, W of them for each arm: the arm's pulls of rounds s <= t - w, at the start of round t.

    ``seen`` is the sum of C_s 1{D_s <= w} over these pulls, and ``error`` its rounding error. ``by_delay[..., i, d]``
    is the sum of C_s over those with D_s = d; it is read at d = w + 1 only, when the window grows to it, and by then
    each of these pulls is that old.
    """

    log: Log
    window: Int[Array, "W K"]
    pulls: Int[Array, "W K"]
    seen: Float[Array, "W K"]
    error: Float[Array, "W K"]
    by_delay: Float[Array, "W K H"]

    @classmethod
    def empty(cls, windows: Int[Array, "W K"], horizon: int, binary: bool) -> "Lookback":
        shape = windows.shape
        return cls(
            log=Log.empty(horizon, binary),
            window=windows,
            pulls=jnp.zeros(shape, jnp.int32),
            seen=jnp.zeros(shape),
            error=jnp.zeros(shape),
            by_delay=jnp.zeros((*shape, longest_window(horizon) + 1)),
        )

    def write(self, t: Int[Array, ""], pull: Pull) -> "Lookback":
        """Log the pull of round t."""
        return self._replace(log=self.log.write(t, pull, self.window.shape[1]))

    def advance(self, t: Int[Array, ""], windows: Int[Array, "W K"]) -> "Lookback":
        """To the start of round t, with the windows of that round: each as before, or grown by one.

        Of a window that stayed, pull t - w is now old enough. Of one that grew, the set of old pulls stayed, and
        rewards with a delay of exactly the new window have become visible. Windows that move otherwise give NaN.
        """
        num_windows, num_arms = windows.shape
        which, arms = jnp.arange(num_windows, dtype=jnp.int32)[:, None], jnp.arange(num_arms, dtype=jnp.int32)[None]
        exact = self.log.reward is None
        grown = windows > self.window
        s = t - windows
        at = jnp.maximum(s, 0)
        delay, arm = self.log.read(at, num_arms)
        ripe = ~grown & (s >= 1) & (arm == arms)
        reward = jnp.where(ripe, 1 if self.log.reward is None else self.log.reward[at], 0).astype(self.seen.dtype)
        filed = jnp.where(ripe, delay, NEVER)  # what never comes is beyond the last entry, and not added
        by_delay = self.by_delay.at[which, arms, filed].add(reward, mode="drop", wrap_negative_indices=False)
        arrived = jnp.where(grown, by_delay[which, arms, windows], jnp.where(delay <= windows, reward, 0))
        seen, error = add_compensated(self.seen, self.error, arrived, exact)
        pulls = self.pulls + ripe.astype(jnp.int32)
        astray = (windows - self.window).astype(jnp.uint32) > 1
        seen = jnp.where(astray | (windows >= self.by_delay.shape[-1]), jnp.nan, seen)
        return Lookback(log=self.log, window=windows, pulls=pulls, seen=seen, error=error, by_delay=by_delay)

    def add_late(self, rounds: Int[Array, " n"], pulls: Pull) -> "Lookback":
        """At the start of round n + 1, make known what comes of pulls of rounds 1..n of which nothing was known.

        Pulls that are outside of a window have waited longer than it is, so that ``seen`` stays.
        """
        num_arms = self.window.shape[1]
        some = (pulls.reward > 0) & (pulls.delay < NEVER)
        which = jnp.arange(self.window.shape[0], dtype=jnp.int32)[:, None]
        ripe = some[None] & (rounds[None] <= rounds.shape[0] + 1 - self.window[:, pulls.arm])
        filed = jnp.where(ripe, pulls.delay[None], NEVER)
        reward = pulls.reward.astype(self.by_delay.dtype)[None]
        return self._replace(
            log=self.log.write(jnp.where(some, rounds, NEVER), pulls, num_arms),
            by_delay=self.by_delay.at[which, pulls.arm[None], filed].add(
                reward, mode="drop", wrap_negative_indices=False
            ),
        )

    def sums(self) -> Sums:
        """What a policy may see."""
        return Sums(pulls=self.pulls, rewards=self.seen)


def lookback_of(policy: Policy, horizon: int, num_arms: int, binary: bool) -> Lookback | None:
    """At the start of a run, if the policy needs one."""
    if policy.observes is not ConversionsByPull:
        return None
    return Lookback.empty(policy.windows(jnp.zeros(num_arms, jnp.int32)), horizon, binary)
