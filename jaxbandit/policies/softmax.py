"""Choices at random, the likelier the higher the score: what a policy's parameters can be differentiated through."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import pick
from jaxbandit.policies.base import Policy, check_single
from jaxbandit.policies.observations import Observation


class Softmax(Policy):
    """Arm i with probability ``exp(U_i / temperature) / sum over j of exp(U_j / temperature)``, U ``policy``'s scores.

    A score of +inf (a warm-up) is obeyed, one of -inf rules an arm out. Drawn as the argmax of ``U_i / temperature``
    plus independent Gumbel noise. As the temperature falls this becomes ``policy`` with ties broken at random.

    Args:
        policy: the policy whose scores are used.
        temperature: > 0, in the units of the scores.

    Raises:
        TypeError: something that is not a policy.
        ValueError: a temperature that is not finite and positive.
    """

    policy: Policy
    temperature: Float[Array, ""]

    def __init__(self, policy: Policy, temperature: Any):
        if not isinstance(policy, Policy):
            raise TypeError(f"Softmax: policy must be a jaxbandit.Policy, got {policy!r}")
        self.policy = policy
        mend = "use the policy itself for choices without noise"
        self.temperature = _checks.floats("Softmax: temperature", temperature, "finite and > 0", mend)

    @property
    def observes(self) -> type[Observation]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.policy.observes

    def init(self, num_arms: int, horizon: int) -> Any:
        check_single(self)
        return self.policy.init(num_arms, horizon)

    def scores(self, state: Any, t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        inner, noise = jax.random.split(key)
        scores = self.policy.scores(state, t, inner)
        return scores / self.temperature + jax.random.gumbel(noise, scores.shape, scores.dtype)

    def log_prob(self, state: Any, t: Int[Array, ""], key: Array, arm: Int[Array, ""]) -> Float[Array, ""]:
        """The logarithm of the probability of ``arm`` in round t: 0 where a score of +inf leaves no choice."""
        scores = self.policy.scores(state, t, jax.random.split(key)[0])
        finite = jnp.isfinite(scores)
        logits = jnp.where(finite, scores, 0) / self.temperature
        chosen = pick(jax.nn.log_softmax(logits, where=finite), arm)
        return jnp.where(jnp.isposinf(scores).any() | ~pick(finite, arm), 0, chosen)

    def update(self, state: Any, t: Int[Array, ""], arm: Int[Array, ""], observation: Any) -> Any:
        return self.policy.update(state, t, arm, observation)

    def wait(self, delay: Int[Array, ""]) -> Int[Array, ""]:
        return self.policy.wait(delay)

    def windows(self, pulls: Int[Array, " K"]) -> Int[Array, "W K"]:
        return self.policy.windows(pulls)

    def diagnostics(self, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
        return self.policy.diagnostics(state, t)
