"""QPM-D: a policy made for feedback without delay, fed from queues of feedback that has come late."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import is_arm, one_hot, pick
from jaxbandit.policies.base import Policy
from jaxbandit.policies.choice import choose
from jaxbandit.policies.observations import ConversionsByPull, Feedback, observation
from jaxbandit.policies.wrappers import check_policy


class Queues(NamedTuple):
    """For each arm, what has settled and not been fed: one entry a round in which something settled.

    ``means[i, j]`` is the mean of the ``counts[i, j]`` rewards of the j-th such round; ``first`` is the entry that is
    next, of which ``fed`` rewards have been fed, and ``last`` the end.
    """

    means: Float[Array, "K T"]
    counts: Int[Array, "K T"]
    first: Int[Array, " K"]
    fed: Int[Array, " K"]
    last: Int[Array, " K"]

    @classmethod
    def empty(cls, num_arms: int, horizon: int) -> "Queues":
        none = jnp.zeros(num_arms, jnp.int32)
        shape = (num_arms, horizon)
        return cls(jnp.zeros(shape), jnp.zeros(shape, jnp.int32), first=none, fed=none, last=none)

    def append(self, seen: Feedback) -> "Queues":
        arms = jnp.arange(self.last.shape[0], dtype=jnp.int32)
        mean = seen.rewards.astype(self.means.dtype) / jnp.maximum(seen.settled, 1).astype(self.means.dtype)
        return self._replace(
            means=self.means.at[arms, self.last].set(mean, mode="drop"),
            counts=self.counts.at[arms, self.last].set(seen.settled, mode="drop"),
            last=self.last + (seen.settled > 0).astype(jnp.int32),
        )

    def holds(self, arm: Int[Array, ""]) -> Bool[Array, ""]:
        return pick(self.first, arm) < pick(self.last, arm)

    def pop(self, arm: Int[Array, ""]) -> tuple["Queues", Float[Array, ""]]:
        at = pick(self.first, arm)
        fed = self.fed + one_hot(arm, self.fed.shape[0])
        over = is_arm(arm, self.fed.shape[0]) & (fed >= self.counts[arm, at])
        rest = self._replace(first=self.first + over.astype(jnp.int32), fed=jnp.where(over, 0, fed))
        return rest, self.means[arm, at]


class QueuedState(NamedTuple):
    """The state of the policy inside, how often it has been fed of each arm, and the arm that it wishes."""

    policy: Any
    pulls: Int[Array, " K"]
    wish: Int[Array, ""]
    queues: Queues


class Queued(Policy):
    """QPM-D (Joulani, György and Szepesvári, 2013, Algorithm 2): ``policy`` believes that it is never delayed.

    What settles goes to a queue of its arm. While the queue of the arm that ``policy`` wishes holds a reward, it is fed
    that reward as if it had just pulled, and wishes again; then its wish is played. Its rounds are those in which it
    was fed. Rewards of one arm that settle in the same round are fed as their mean, which is ours. Without delays this
    is ``policy``. Needs ``Feedback``.

    Args:
        policy: one that takes note of a reward at once, and does not draw: it wishes when feedback comes, where a
            policy has no key.

    Raises:
        TypeError: something that is not a policy, or one that needs to know each pull's delay.
        ValueError: a policy that waits before it takes note of a reward, or that draws.
    """

    observes: ClassVar = Feedback

    policy: Policy

    def __init__(self, policy: Policy):
        self.policy = check_policy("Queued", policy)
        name = type(policy).__name__
        if policy.observes is ConversionsByPull:
            raise TypeError(f"Queued: policy {name} needs feedback by pull; give one that sees Feedback or less")
        wait = policy.wait(jnp.ones((), jnp.int32))
        if not _checks.is_traced(wait) and int(wait) > 1:
            raise ValueError(f"Queued: policy {name} waits before it takes note of a reward; give one that does not")

    def init(self, num_arms: int, horizon: int) -> QueuedState:
        inner = jax.tree.map(jnp.asarray, self.policy.init(num_arms, horizon))
        if _draws(self.policy, inner):
            raise ValueError(
                f"Queued: policy {type(self.policy).__name__} draws, and has no key when feedback comes; give one that "
                "does not, such as UCB1 or KLUCB"
            )
        pulls = jnp.zeros(num_arms, jnp.int32)
        return QueuedState(inner, pulls, _wish(self.policy, inner, pulls), Queues.empty(num_arms, horizon))

    def scores(self, state: QueuedState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        num_arms = state.pulls.shape[0]
        return jnp.where(state.wish < num_arms, is_arm(state.wish, num_arms).astype(float), jnp.nan)

    def update(self, state: QueuedState, t: Int[Array, ""], arm: Int[Array, ""], observation: Feedback) -> QueuedState:
        start = state._replace(queues=state.queues.append(observation))
        return jax.lax.while_loop(lambda now: now.queues.holds(now.wish), lambda now: self._feed(now), start)

    def _feed(self, state: QueuedState) -> QueuedState:
        queues, reward = state.queues.pop(state.wish)
        now = one_hot(state.wish, state.pulls.shape[0])
        clock = jnp.sum(state.pulls, dtype=jnp.int32) + 1
        seen = observation(self.policy.observes, now.astype(reward.dtype) * reward, now, None)
        inner = self.policy.update(state.policy, clock, state.wish, seen)
        pulls = state.pulls + now
        return QueuedState(inner, pulls, _wish(self.policy, inner, pulls), queues)

    def diagnostics(self, state: QueuedState, t: Int[Array, ""]) -> dict[str, Array]:
        return self.policy.diagnostics(state.policy, jnp.sum(state.pulls, dtype=jnp.int32) + 1)


def _wish(policy: Policy, inner: Any, pulls: Int[Array, " K"]) -> Int[Array, ""]:
    scores = policy.scores(inner, jnp.sum(pulls, dtype=jnp.int32) + 1, _no_key())
    return choose(scores, pulls)


def _no_key() -> Array:
    return jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32), impl="threefry2x32")


def _draws(policy: Policy, inner: Any) -> bool:
    """Whether the scores depend on the key."""
    t = jnp.ones((), jnp.int32)
    program = jax.make_jaxpr(lambda key: policy.scores(inner, t, key))(_no_key()).jaxpr
    return any(used is program.invars[0] for equation in program.eqns for used in equation.invars)
