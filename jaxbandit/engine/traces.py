"""Runs round by round: on the random tape, and on given tables."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit._checks import NEVER
from jaxbandit.engine import tape
from jaxbandit.engine.history import History, length, past
from jaxbandit.engine.pending import known_from
from jaxbandit.engine.protocol import check_policy, nan_error, plan, sound
from jaxbandit.engine.run import begun, draw_from_tape, start
from jaxbandit.engine.step import Carry, Details, Draw, scan, start_of
from jaxbandit.engine.transforms import depending_on, path_only
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Feedback

if TYPE_CHECKING:
    import pandas


class Trace(NamedTuple):
    """What happened, round by round: entry t - 1 is round t. Traces under ``vmap`` have a leading axis of runs.

    - ``arms``: the arm pulled, 0..K-1.
    - ``pulls``: how often it has been pulled by now, this time included: 1 for its first pull.
    - ``rewards``, ``delays``: what the pull gives, and after how many rounds (``jaxbandit.NEVER`` if it never does),
      whether that is seen or not.
    - ``known``: the round from whose start on the policy knows this reward, or 0 where it does not by round T: t + D,
      at the earliest t + 1, but later or not at all if the policy waits or censors. A reward of 0 announces itself only
      to a policy that observes ``Feedback``; for others its ``known`` is 0.
    - ``diagnostics``: what the policy reports of its choice.
    - ``scores``: of all arms, before the choice, if asked for.
    """

    arms: Int[Array, "*runs T"]
    pulls: Int[Array, "*runs T"]
    rewards: Float[Array, "*runs T"]
    delays: Int[Array, "*runs T"]
    known: Int[Array, "*runs T"]
    diagnostics: dict[str, Num[Array, "*runs T"]]
    scores: Float[Array, "*runs T K"] | None = None

    def head(self, rounds: int) -> "Trace":
        """The first rounds, with what is known by the end of them: to look at the start of a long run.

        Raises:
            TypeError, ValueError: not a whole number from 1 to T.
        """
        rounds = _checks.whole_number("Trace.head: rounds", rounds, 1, np.shape(self.arms)[-1], "the trace has no more")
        scores = None if self.scores is None else self.scores[..., :rounds, :]
        first = jax.tree.map(lambda x: x[..., :rounds], self._replace(scores=None))
        return first._replace(known=first.known * (first.known <= rounds), scores=scores)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row a round, by its number: ``arm``, ``pull``, ``reward``, ``delay``, ``known``, the diagnostics, and
        ``score_0``, ``score_1``, ... if the trace has scores.

        Raises:
            ImportError: pandas is not installed.
            ValueError: several runs.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                f"Trace.to_dataframe needs {error.name}: pip install pandas, or 'jaxbandit[sweep]'"
            ) from error
        if np.ndim(self.arms) != 1:
            raise ValueError(
                f"Trace.to_dataframe: trace must be of one run, got arms of shape {np.shape(self.arms)}; "
                "take one, jax.tree.map(lambda x: x[0], trace)"
            )
        columns = {"arm": self.arms, "pull": self.pulls, "reward": self.rewards, "delay": self.delays}
        columns |= {"known": self.known} | self.diagnostics
        if self.scores is not None:
            columns |= {f"score_{i}": self.scores[:, i] for i in range(self.scores.shape[1])}
        index = pandas.RangeIndex(1, len(self.arms) + 1, name="round")
        return pandas.DataFrame({name: np.asarray(values) for name, values in columns.items()}, index)


def trace(
    key: Any,
    instance: Instance,
    policy: Policy,
    *,
    horizon: int,
    scores: bool = False,
    history: History | None = None,
) -> Trace:
    """One run of ``policy`` on ``instance``, round by round: the same run as ``simulate`` with these arguments, bit for
    bit. That of seed i of a batch or a sweep is the one with ``jaxbandit.fold_in(key, i)``.

    Works under ``jit``, ``vmap`` and ``shard_map``, as ``simulate`` does.

    Args:
        key, instance, policy, horizon: as for ``simulate``.
        scores: also give the scores of all arms in every round, [T, K].
        history: as for ``simulate``. The rounds of the trace are those after it; ``pulls`` counts its pulls too.

    Raises:
        TypeError, ValueError: as for ``simulate`` (inside jit, a score that is NaN, or a number out of its range, gives
            the arm K, which is none).
    """
    words = tape.words(key)
    history = past(history, instance, policy)
    plan(instance, policy, horizon, None, before=length(history))
    found = _trace(words, instance, policy, history, horizon=int(horizon), scores=bool(scores))
    return _checked(found, policy, instance.num_arms)


def replay(rewards: Any, delays: Any, policy: Policy, *, scores: bool = False) -> Trace:
    """What ``policy`` does when round and arm decide what a pull gives.

    Args:
        rewards: [T, K], in [0, 1]: the reward of arm i if it is pulled in round t.
        delays: [T, K], whole numbers >= 0: its delay; ``jaxbandit.NEVER`` or infinity if it never arrives.
        policy: how arms are chosen.
        scores: also give the scores of all arms in every round, [T, K].

    Raises:
        TypeError: delays that are not whole numbers.
        ValueError: tables of different or wrong shapes, rewards outside [0, 1], delays that are negative.
    """
    rewards = _checks.floats("replay: rewards", rewards, "in [0, 1]", "rescale rewards to [0, 1]")
    mend = "use jaxbandit.NEVER for a lost reward"
    if not _checks.is_traced(delays):
        delays = _checks.numeric("replay: delays", delays, mend)
        delays = np.where(delays >= NEVER, NEVER, delays)
    delays = _checks.integers("replay: delays", delays, 0, NEVER, mend)
    if rewards.ndim != 2 or rewards.shape != delays.shape:
        raise ValueError(
            f"replay: rewards and delays must both have shape [T, K], got {rewards.shape} and {delays.shape}; "
            "give one row a round, one column an arm"
        )
    check_policy(policy, rewards.shape[1], rewards.shape[0], binary=False)
    return _checked(_replay(rewards, delays, policy, scores=bool(scores)), policy, rewards.shape[1])


def _checked(found: Trace, policy: Policy, num_arms: int) -> Trace:
    """``found``, after a look at whether every round pulled an arm."""
    if not _checks.is_traced(found) and (np.asarray(found.arms) >= num_arms).any():
        raise nan_error(policy)
    return found


@partial(jax.jit, static_argnames=("horizon", "scores"))
def _trace(
    key: tape.Words, instance: Instance, policy: Policy, history: History | None, *, horizon: int, scores: bool
) -> Trace:
    instance, policy, history = path_only((instance, policy, history))
    carry = _in_detail(start(instance, policy, history, horizon=horizon), scores)
    carry = begun(key, instance, policy, history, carry)
    found = _every_round(policy, draw_from_tape(key, instance), key, horizon, carry, length(history))
    return _no_arm_unless(sound(instance, (policy, history)), found, instance.num_arms)


@partial(jax.jit, static_argnames="scores")
def _replay(rewards: Float[Array, "T K"], delays: Int[Array, "T K"], policy: Policy, *, scores: bool) -> Trace:
    rewards, delays, policy = path_only((rewards, delays, policy))
    horizon, num_arms = rewards.shape

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        return pick(rewards[t - 1], arm), pick(delays[t - 1], arm)

    carry = _in_detail(start_of(policy, horizon, num_arms, binary=False), scores)
    carry = depending_on((rewards, delays, policy), carry)
    found = _every_round(policy, draw, jnp.zeros(2, jnp.uint32), horizon, carry)
    return _no_arm_unless(_checks.sound((rewards, delays, policy)), found, num_arms)


def _no_arm_unless(good: Bool[Array, ""], found: Trace, num_arms: int) -> Trace:
    """``found``; if a number was out of its range, the arm K, which is none, in every round."""
    return found._replace(arms=jnp.where(good, found.arms, num_arms))


def _in_detail(carry: Carry, scores: bool) -> Carry:
    return carry._replace(details=Details.empty(carry.pulls.shape[0], scores))


def _every_round(policy: Policy, draw: Draw, key: tape.Words, horizon: int, start: Carry, before: int = 0) -> Trace:
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    place, details, diagnostics = scan(policy, draw, _keep_all, key, rounds + before, start, before)
    due = known_from(rounds, details.delay, jax.vmap(policy.wait)(details.delay))
    told = due <= horizon
    if policy.observes is not Feedback:
        told &= details.reward > 0
    return Trace(
        arms=place.arms,
        pulls=place.numbers + 1,
        rewards=details.reward,
        delays=details.delay,
        known=jnp.where(told, due, 0),
        diagnostics=diagnostics,
        scores=details.scores,
    )


class Pulled(NamedTuple):
    """The arm of every round, and how often it had been pulled before: where on the tape its reward and delay are."""

    arms: Int[Array, " T"]
    numbers: Int[Array, " T"]


def _keep_all(carry: Carry) -> tuple[Pulled, Details | None, dict[str, Array]]:
    return _keep_place(carry), carry.details, carry.diagnostics


def _keep_place(carry: Carry) -> Pulled:
    return Pulled(arms=carry.arm, numbers=pick(carry.pulls, carry.arm) - 1)


def pulled(key: tape.Words, instance: Instance, policy: Policy, horizon: int) -> Pulled:
    """One run on the random tape, round by round."""
    instance, policy = path_only((instance, policy))
    carry = depending_on((key, instance, policy), start(instance, policy, horizon=horizon))
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return scan(policy, draw_from_tape(key, instance), _keep_place, key, rounds, carry)


def drawn(key: tape.Words, instance: Instance, run: Pulled) -> tuple[Num[Array, " T"], Int[Array, " T"]]:
    """Rewards and delays of the pulls of a run, seen or not."""
    draw = draw_from_tape(key, instance)
    return jax.vmap(partial(draw, jnp.zeros((), jnp.int32)))(run.arms, run.numbers)
