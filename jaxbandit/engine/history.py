"""Where a run starts from: the pulls of an earlier one, what has been seen of their rewards, and what is still out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit._checks import NEVER
from jaxbandit.engine import tape
from jaxbandit.engine.step import Carry, played
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Feedback, Pull


class History(eqx.Module):
    """The past of a run: the pulls of rounds 1..n, and what is known of them at the start of round n + 1.

    A run with this history plays rounds n + 1..n + T. It starts from the state that its policy would have, had it
    lived through rounds 1..n of a run of n + T rounds: ``update`` is run over them. What was not seen comes later, or
    not, by the laws of the instance, given that it was not seen by now: with a = n + 1 - s for a pull of round s (or
    its entry of ``ages``) and a mean reward of p,

    - if only conversions are known, rewards must be 0 or 1 by their law, and the pull still converts with probability
      ``p P(D > a) / (1 - p P(D <= a))``;
    - if what has settled is known (``settled``), its delay has not passed, and its reward is still of the reward law;

    and the delay is of the law of ``D | D > a``. All of it is drawn from the tape's numbers of that pull, so that it is
    the same for every policy. A pull that by the instance could not still be out brings nothing.

    Args:
        arms: the n arms pulled, 0..K-1.
        delays: after how many rounds each reward was known, whole numbers; -1 where nothing has been seen. One of
            round s was seen if ``s + max(delay, 1) <= n + 1``.
        rewards: what was seen, in [0, 1]; by default 1. What is not seen counts for nothing.
        settled: whether every reward has been seen whose delay has passed, zeros too. Policies that observe
            ``Feedback`` need it; a log of conversions cannot tell.
        ages: how long each pull has been waiting for its reward, >= 0, where that is not n + 1 - s: if pulls did not
            come at an even pace. Only those of what was not seen are read.
        num_arms: K, to be compared with the instance's.
        names: of the K arms, to be compared with the instance's where that has names too.

    Raises:
        TypeError: arms, delays or ages that are not whole numbers, names that are not strings.
        ValueError: arrays of different lengths, a number out of its range, a delay that has not passed, or a reward
            of 0 that was seen without ``settled``; names that repeat, or are not one an arm.
    """

    arms: Int[Array, " n"]
    delays: Int[Array, " n"]
    rewards: Float[Array, " n"]
    ages: Int[Array, " n"] | None
    settled: bool = eqx.field(static=True)
    num_arms: int | None = eqx.field(static=True)
    names: tuple[str, ...] | None = eqx.field(default=None, static=True)

    def __init__(
        self,
        arms: Any,
        delays: Any,
        rewards: Any = None,
        *,
        settled: bool = False,
        ages: Any = None,
        num_arms: int | None = None,
        names: Any = None,
    ):
        if num_arms is not None:
            num_arms = _checks.whole_number("History: num_arms", num_arms, 1, 2**31 - 1, "give the number of arms")
        self.names = _checks.names("History", names, num_arms)
        num_arms = num_arms if self.names is None else len(self.names)
        self.num_arms, self.settled = num_arms, bool(settled)
        most = (num_arms or 2**31 - 1) - 1
        self.arms = _whole("arms", arms, 0, most, "give the number of an arm, from 0")
        self.delays = _whole("delays", delays, -1, NEVER, "give rounds, -1 where no reward has been seen")
        mend = "give waiting times in rounds"
        self.ages = None if ages is None else _whole("ages", ages, 0, NEVER, mend)
        self.rewards = self._seen_rewards(rewards)
        shapes = [x.shape for x in (self.arms, self.delays, self.rewards, self.ages) if x is not None]
        if len(set(shapes)) != 1 or len(shapes[0]) != 1:
            raise ValueError(f"History: arms, delays, rewards and ages must be lists of one length, got {shapes}")
        if _checks.is_traced((self.delays, self.rewards)):
            self.delays = _checks.invalid_unless(~self._too_late() & ~self._is_zero(), self.delays)
        else:
            self._check()

    def _seen_rewards(self, rewards: Any) -> Float[Array, "..."]:
        seen = self.delays >= 0
        if rewards is None:
            return seen.astype(float)
        mend = "rescale rewards to [0, 1]"
        if np.size(rewards) == 0:
            return jnp.zeros(np.shape(rewards))
        if not _checks.is_traced((rewards, seen)) and np.shape(rewards) == seen.shape:
            rewards = np.where(seen, rewards, 0)  # what was not seen may be anything, NaN too
        rewards = _checks.floats("History: rewards", rewards, "in [0, 1]", mend)
        return jnp.where(seen, rewards, 0) if rewards.shape == seen.shape else rewards

    def _too_late(self) -> Bool[Array, " n"]:
        rounds = jnp.arange(1, len(self) + 1, dtype=jnp.int32)
        return (self.delays >= 0) & (rounds + jnp.maximum(self.delays, 1) > len(self) + 1)

    def _is_zero(self) -> Bool[Array, " n"]:
        return (self.delays >= 0) & (self.rewards == 0) & (not self.settled)

    def _check(self) -> None:
        late, zero = np.asarray(self._too_late()), np.asarray(self._is_zero())
        if late.any():
            s = int(np.argmax(late)) + 1
            raise ValueError(
                f"History: delays has {int(self.delays[s - 1])} for round {s} of {len(self)}, a reward that is not "
                "known before the next round; give -1 for what has not been seen"
            )
        if zero.any():
            raise ValueError(
                f"History: rewards has a 0 that was seen, in round {int(np.argmax(zero)) + 1}; give settled=True if "
                "every 0 is known once its delay has passed, else a delay of -1"
            )

    def __len__(self) -> int:
        return self.arms.shape[-1]

    @classmethod
    def from_trace(
        cls, trace: Any, rounds: int, *, settled: bool = True, num_arms: int | None = None, names: Any = None
    ) -> "History":
        """The first rounds of a traced run, and what was to be seen of them by then.

        Args:
            trace: of one run, from ``trace`` or ``replay``.
            rounds: how many.
            settled: whether zeros are known once their delay has passed; if not, conversions alone are.
            num_arms, names: of the arms, to be compared with the instance's.

        Raises:
            ValueError: traces of several runs, or fewer rounds than asked for.
        """
        if np.ndim(trace.arms) != 1:
            raise ValueError(f"History: trace must be of one run, got arms of shape {np.shape(trace.arms)}")
        rounds = _checks.whole_number("History: rounds", rounds, 0, len(trace.arms), "the trace has no more")
        arms, delays, rewards = (x[:rounds] for x in (trace.arms, trace.delays, trace.rewards))
        s = jnp.arange(1, rounds + 1, dtype=jnp.int32)
        seen = s + jnp.maximum(delays, 1) <= rounds + 1
        if not settled:
            seen &= rewards > 0
        return cls(arms, jnp.where(seen, delays, -1), rewards, settled=settled, num_arms=num_arms, names=names)


def _whole(name: str, x: Any, low: int, high: int, mend: str) -> Int[Array, "..."]:
    if np.size(x) == 0:
        return jnp.zeros(np.shape(x), jnp.int32)
    return _checks.integers(f"History: {name}", x, low, high, mend)


def length(history: History | None) -> int:
    return 0 if history is None else len(history)


def past(history: Any, instance: Any, policy: Any) -> History | None:
    """The history of a run, checked; ``None`` if there is none, or nothing in it."""
    if history is None:
        return None
    if isinstance(instance, Instance) and isinstance(policy, Policy):  # else they are refused later
        check_history(history, instance, policy)
    return history if len(history) else None


def check_known(history: Any, num_arms: int, names: tuple[str, ...] | None, policy: Policy, of: str) -> None:
    """Refuse a past of other arms than ``of`` has, or one that knows less than the policy observes.

    Raises:
        TypeError: something that is not a history.
        ValueError: other arms, or less known than the policy needs.
    """
    if not isinstance(history, History):
        raise TypeError(f"history must be a jaxbandit.History, got {history!r}; of a log, pass log.history()")
    if history.arms.ndim != 1:
        raise ValueError(f"history must be a single one, got arms of shape {history.arms.shape}; use jax.vmap")
    known = history.num_arms
    if known is None and len(history) and not _checks.is_traced(history.arms):
        known = max(int(np.asarray(history.arms).max()) + 1, num_arms)
    if known is not None and known != num_arms:
        raise ValueError(f"history has {known} arms and {of} {num_arms}; give both the same arms in the same order")
    _checks.same_names("history", history.names, of, names)
    if not history.settled and policy.observes is Feedback:
        raise ValueError(
            f"history knows conversions alone (settled=False), and policy {type(policy).__name__} observes Feedback, "
            "for which zeros must be known too; use a policy that observes Conversions, or History(..., settled=True)"
        )


def check_history(history: Any, instance: Instance, policy: Policy) -> None:
    """Refuse a past that this run cannot have.

    Raises:
        TypeError: something that is not a history.
        ValueError: other arms than the instance's, or less known than the policy or the reward law needs.
    """
    check_known(history, instance.num_arms, instance.names, policy, "instance")
    if not history.settled and not instance.reward.binary:
        raise ValueError(
            "history knows conversions alone (settled=False), which needs rewards that are 0 or 1 by their law, such "
            f"as Bernoulli; got {instance.reward!r}"
        )
    if instance.reward.binary and not _checks.is_traced(history.rewards):
        other = ~np.isin(np.asarray(history.rewards), (0, 1))
        if other.any():
            where = int(np.argmax(other))
            raise ValueError(
                f"history: rewards has {history.rewards[where]} in round {where + 1}, and those of the instance are 0 "
                "or 1 by their law"
            )


def lived(policy: Policy, history: History, carry: Carry) -> Carry:
    """``carry`` of a run's start, after the rounds of the history."""
    delays = jnp.where(history.delays < 0, NEVER, history.delays)

    def one_round(t: Any, carry: Carry) -> Carry:
        t = jnp.asarray(t, jnp.int32)
        pull = Pull(arm=history.arms[t - 1], reward=history.rewards[t - 1], delay=delays[t - 1])
        return played(policy, t, pull, carry)

    return jax.lax.fori_loop(1, len(history) + 1, one_round, carry)


def with_arrivals(key: tape.Words, instance: Instance, policy: Policy, history: History, carry: Carry) -> Carry:
    """``carry`` after the history, with what is still to come of it filed."""
    rounds = jnp.arange(1, len(history) + 1, dtype=jnp.int32)
    pulls = still_out(key, instance, history)
    return carry._replace(
        pending=carry.pending.add_late(policy, rounds, pulls),
        ledger=None if carry.ledger is None else carry.ledger.add_late(rounds, pulls),
    )


def still_out(key: tape.Words, instance: Instance, history: History) -> Pull:
    """The pulls of a history, with what they bring after it: nothing is a reward of 0 that never comes."""
    rounds = jnp.arange(1, len(history) + 1, dtype=jnp.int32)
    since = len(history) + 1 - rounds
    age = since if history.ages is None else history.ages
    for_reward, for_delay = jax.vmap(lambda arm, n: tape.uniforms(key, arm, n))(history.arms, _numbers(history.arms))
    survival, converted = jax.vmap(lambda arm, age: _by(instance, arm, age))(history.arms, age)
    sample_reward, sample_delay = instance.reward.sampler(), instance.delay.sampler()
    if history.settled:
        reward = jax.vmap(sample_reward)(for_reward, history.arms)
    else:
        mean = jax.vmap(lambda arm: pick(instance.means, arm))(history.arms)
        waiting = 1 - mean * converted
        chance = jnp.where(waiting > 0, mean * survival / jnp.where(waiting > 0, waiting, 1), 0)
        reward = (for_reward <= chance).astype(mean.dtype)
    # At u P(D > a) the delay is of the law of D | D > a. It comes out as a or less where the law draws its losses from
    # the large u (Lossy): then it is one of those. (Or by rounding, once in some 10^7.)
    tiny = jnp.finfo(survival.dtype).tiny
    delay = jax.vmap(sample_delay)(jnp.maximum(for_delay * survival, tiny), history.arms)
    delay = jnp.where((delay <= age) | (delay >= NEVER), NEVER, since + (delay - age))
    nothing = (history.delays >= 0) | (survival <= 0)
    return Pull(
        arm=history.arms,
        reward=jnp.where(nothing, 0, reward),
        delay=jnp.where(nothing, NEVER, jnp.minimum(delay, NEVER)),
    )


def _by(instance: Instance, arm: Int[Array, ""], age: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """``P(D > age)`` and ``P(D <= age)`` of the delay of an arm."""
    return pick(instance.delay.survival(age), arm), pick(instance.delay.cdf(age), arm)


def _numbers(arms: Int[Array, " n"]) -> Int[Array, " n"]:
    """How often the arm of each pull had been pulled before."""
    order = jnp.argsort(arms, stable=True).astype(jnp.int32)
    in_order = arms[order]
    first = jnp.searchsorted(in_order, in_order, side="left").astype(jnp.int32)
    return jnp.zeros_like(arms).at[order].set(jnp.arange(len(arms), dtype=jnp.int32) - first)
