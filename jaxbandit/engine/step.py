"""The one step, and the one loop over the rounds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from jaxbandit._arms import one_hot, pick
from jaxbandit._layout import runs_side_by_side
from jaxbandit.engine import tape
from jaxbandit.engine.ledger import Ledger
from jaxbandit.engine.pending import Pending
from jaxbandit.policies.base import Policy
from jaxbandit.policies.choice import choose
from jaxbandit.policies.observations import Pull

Draw = Callable[[Int[Array, ""], Int[Array, ""], Int[Array, ""]], tuple[Num[Array, ""], Int[Array, ""]]]
"""``(t, arm, n) -> (reward, delay)`` of the pull of ``arm`` in round t, its n-th (from 0)."""


class Details(NamedTuple):
    """The last pull, its seal broken, and the scores before it."""

    reward: Float[Array, ""]
    delay: Int[Array, ""]
    scores: Float[Array, " K"] | None

    @classmethod
    def empty(cls, num_arms: int, scores: bool) -> "Details":
        return cls(jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros(num_arms) if scores else None)

    def of(self, pull: Pull, scores: Float[Array, " K"]) -> "Details":
        """Those of another round."""
        kept = None if self.scores is None else scores.astype(self.scores.dtype)
        return Details(pull.reward.astype(self.reward.dtype), pull.delay, kept)


class Carry(NamedTuple):
    """What passes from round to round: ``pulls`` are N_i(t), ``arm`` and ``diagnostics`` those of the last choice.

    ``ledger`` and ``details`` are kept only where they are asked for.
    """

    state: Any
    pulls: Int[Array, " K"]
    pending: Pending
    arm: Int[Array, ""]
    diagnostics: dict[str, Array]
    ledger: Ledger | None = None
    details: Details | None = None


Report = Callable[[Carry], Any]
"""What is kept of a checkpoint's round."""


def step(policy: Policy, draw: Draw, key: tape.Words, t: Int[Array, ""], carry: Carry) -> Carry:
    """Round t: score, choose, pull, file the reward, learn what arrives."""
    scores = policy.scores(carry.state, t, tape.policy_key(key, t))
    arm = choose(scores, carry.pulls)
    reward, delay = draw(t, arm, pick(carry.pulls, arm))
    pull = Pull(arm=arm, reward=reward, delay=delay)
    after = played(policy, t, pull, carry)
    return after._replace(details=None if carry.details is None else carry.details.of(pull, scores))


def played(policy: Policy, t: Int[Array, ""], pull: Pull, carry: Carry) -> Carry:
    """What follows the choice of round t, whoever made it."""
    pulls = carry.pulls + one_hot(pull.arm, carry.pulls.shape[0])
    pending = carry.pending.add(policy, t, pull, pulls)
    return Carry(
        state=policy.update(carry.state, t, pull.arm, pending.arriving(policy.observes, t + 1)),
        pulls=pulls,
        pending=pending,
        arm=pull.arm,
        diagnostics=diagnostics_of(policy, carry.state, t),
        ledger=None if carry.ledger is None else carry.ledger.add(t, pull),
    )


def diagnostics_of(policy: Policy, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in policy.diagnostics(state, t).items()}


def start_of(policy: Policy, horizon: int, num_arms: int, binary: bool) -> Carry:
    state = jax.tree.map(jnp.asarray, policy.init(num_arms, horizon))
    return Carry(
        state=state,
        pulls=jnp.zeros(num_arms, jnp.int32),
        pending=Pending.empty(policy, horizon, num_arms, binary),
        arm=jnp.zeros((), jnp.int32),
        diagnostics=diagnostics_of(policy, state, jnp.ones((), jnp.int32)),
    )


def scan(
    policy: Policy,
    draw: Draw,
    report: Report,
    key: tape.Words,
    rounds: Int[Array, " C"],
    start: Carry,
    before: int = 0,
) -> Any:
    """All rounds after ``before`` up to the last checkpoint, and a row of the record for each checkpoint."""

    num_arms = start.pulls.shape[0]

    def one_round(t: Any, carry: Carry) -> Carry:
        return runs_side_by_side(step(policy, draw, key, jnp.asarray(t, jnp.int32), carry), num_arms)

    def segment(carry: Carry, bounds: tuple[Array, Array]) -> tuple[Carry, Any]:
        last, checkpoint = bounds
        carry = jax.lax.fori_loop(last + 1, checkpoint + 1, one_round, carry)
        return carry, report(carry)

    lasts = jnp.concatenate([jnp.full(1, before, jnp.int32), rounds[:-1]])
    return jax.lax.scan(segment, runs_side_by_side(start, num_arms), (lasts, rounds))[1]
