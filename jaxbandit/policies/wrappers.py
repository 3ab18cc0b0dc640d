"""What is done to the news before a policy sees them: a time-out, or a night's rest."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxbandit import _checks
from jaxbandit._arms import one_hot
from jaxbandit._checks import NEVER
from jaxbandit.policies.base import Policy, check_single
from jaxbandit.policies.observations import (
    Conversions,
    ConversionsByPull,
    Observation,
    Sums,
)
from jaxbandit.policies.observations import observation as observation_of


def check_policy(name: str, policy: Any) -> Policy:
    if not isinstance(policy, Policy):
        raise TypeError(f"{name}: policy must be a jaxbandit.Policy, got {policy!r}")
    return policy


class WindowedState(NamedTuple):
    """The state of the policy inside, and the arm of every round."""

    policy: Any
    arms: Int[Array, "T+1"]


class Windowed(Policy):
    """``policy``, told of every pull when it is ``window`` rounds old: its reward if D <= window, else a zero.

    A time-out, as advertisers use it: from conversions alone it makes feedback. What is learned of an arm of mean μ is
    ``μ P(D <= window)``, so that arms are compared rightly where that probability is the same for all.

    Args:
        policy: a policy that sees ``Feedback`` or less.
        window: whole number of rounds >= 1.

    Raises:
        TypeError: something that is not a policy, or one that needs to know each pull's delay; a window that is not a
            whole number.
        ValueError: a window < 1.
    """

    policy: Policy
    window: Int[Array, ""]

    def __init__(self, policy: Policy, window: Any):
        self.policy = check_policy("Windowed", policy)
        if policy.observes is ConversionsByPull:
            raise TypeError(
                f"Windowed: policy {type(policy).__name__} needs to know which pull each reward belongs to, which "
                "a time-out hides; give one that sees Feedback or less"
            )
        self.window = _checks.integers("Windowed: window", window, 1, NEVER, "give a number of rounds")

    def init(self, num_arms: int, horizon: int) -> WindowedState:
        check_single(self)
        return WindowedState(policy=self.policy.init(num_arms, horizon), arms=jnp.zeros(horizon + 1, jnp.int32))

    def scores(self, state: WindowedState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return self.policy.scores(state.policy, t, key)

    def update(
        self, state: WindowedState, t: Int[Array, ""], arm: Int[Array, ""], observation: Conversions
    ) -> WindowedState:
        arms = state.arms.at[t].set(arm)
        ripe = t + 1 - self.window
        settled = jnp.where(ripe >= 1, one_hot(arms[jnp.maximum(ripe, 0)], observation.rewards.shape[0]), 0)
        seen = observation_of(self.policy.observes, observation.rewards, settled, None)
        return WindowedState(policy=self.policy.update(state.policy, t, arm, seen), arms=arms)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.where(delay <= self.window, self.policy.wait(self.window), NEVER)

    def diagnostics(self, state: WindowedState, t: Int[Array, ""]) -> dict[str, Array]:
        return self.policy.diagnostics(state.policy, t)


class BatchedState(NamedTuple):
    """The state of the policy inside, and the arm and the news of every round."""

    policy: Any
    arms: Int[Array, "T+1"]
    log: PyTree[Array]


class Batched(Policy):
    """``policy``, which learns only after every ``period``-th round, of all that has happened since: nightly updates.

    Between updates it is asked again and again as if it were the first round after the last one, with the key of the
    round: an index stays as it is, so that ties, then pulls, decide, and a draw is a new draw. With a period of 1 this
    is ``policy``, bit for bit. Chapelle and Li (2011), Section 5; Perchet, Rigollet, Chassang and Snowberg (2016).

    Args:
        policy: any policy.
        period: whole number of rounds >= 1.

    Raises:
        TypeError: something that is not a policy, a period that is not a whole number.
        ValueError: a period < 1.
    """

    policy: Policy
    period: Int[Array, ""]

    def __init__(self, policy: Policy, period: Any):
        self.policy = check_policy("Batched", policy)
        self.period = _checks.integers("Batched: period", period, 1, NEVER, "give a number of rounds")

    def windows(self, pulls: Int[Array, " K"]) -> Int[Array, "W K"]:
        return self.policy.windows(pulls)

    @property
    def observes(self) -> type[Observation]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.policy.observes

    def init(self, num_arms: int, horizon: int) -> BatchedState:
        check_single(self)
        old = None
        if self.observes is ConversionsByPull:
            shape = self.policy.windows(jnp.zeros(num_arms, jnp.int32)).shape
            old = Sums(pulls=jnp.zeros(shape, jnp.int32), rewards=jnp.zeros(shape))
        news = observation_of(self.observes, jnp.zeros(num_arms), jnp.zeros(num_arms, jnp.int32), old)
        return BatchedState(
            policy=jax.tree.map(jnp.asarray, self.policy.init(num_arms, horizon)),
            arms=jnp.zeros(horizon + 1, jnp.int32),
            log=jax.tree.map(lambda x: jnp.zeros((horizon + 1, *x.shape), x.dtype), news),
        )

    def _since(self, t: Int[Array, ""]) -> Int[Array, ""]:
        """The first round of which the policy inside knows nothing in round t.

        Not in the state, which differs from run to run: so runs side by side learn in the same rounds.
        """
        return (t - 1) // self.period * self.period + 1

    def scores(self, state: BatchedState, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        return self.policy.scores(state.policy, self._since(t), key)

    def update(self, state: BatchedState, t: Int[Array, ""], arm: Int[Array, ""], observation: Any) -> BatchedState:
        arms = state.arms.at[t].set(arm)
        log = jax.tree.map(lambda rows, new: rows.at[t].set(new.astype(rows.dtype)), state.log, observation)

        def learn(s: Any, inner: Any) -> Any:
            s = jnp.asarray(s, jnp.int32)  # without jit it is a number of Python's
            seen = jax.tree.map(lambda rows, new: rows[s].astype(new.dtype), log, observation)
            return self.policy.update(inner, s, arms[s], seen)

        policy = jax.lax.fori_loop(self._since(t), jnp.where(t % self.period == 0, t + 1, 0), learn, state.policy)
        return BatchedState(policy=policy, arms=arms, log=log)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return self.policy.wait(delay)

    def diagnostics(self, state: BatchedState, t: Int[Array, ""]) -> dict[str, Array]:
        return self.policy.diagnostics(state.policy, self._since(t))
