"""The one step, and the one loop over the rounds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from jaxbandit._arms import one_hot, pick
from jaxbandit.engine import tape
from jaxbandit.engine.layout import runs_side_by_side
from jaxbandit.engine.ledger import Ledger
from jaxbandit.engine.pending import Pending
from jaxbandit.engine.protocol import MAX_TABLE
from jaxbandit.policies.base import Policy
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


def choose(scores: Float[Array, " K"], pulls: Int[Array, " K"]) -> Int[Array, ""]:
    """The arm with the highest score; of several, the one with the fewest pulls; of several, the lowest.

    A NaN gives K, which is no arm: nothing is pulled, and the missing pull is found out. It is looked for in every
    score: XLA's reduction to a maximum loses a NaN where many runs lie side by side on a CPU.

    Args:
        scores: of ``Policy.scores``, one an arm.
        pulls: how often each arm has been pulled, int32.

    Raises:
        TypeError: something else than arrays of these types.
        ValueError: arrays of different shapes.
    """
    _check_choice(scores, pulls)
    num_arms = scores.shape[0]
    highest = jnp.max(_fold(jnp.maximum, scores))
    order = pulls * num_arms + jnp.arange(num_arms, dtype=jnp.int32)
    order = jnp.where(jnp.isnan(scores), -1, jnp.where(scores == highest, order, MAX_TABLE))
    first = jnp.min(_fold(jnp.minimum, order))
    return jnp.where(first < 0, num_arms, first % num_arms)


def _check_choice(scores: Any, pulls: Any) -> None:
    for name, x, kind, mend in (
        ("scores", scores, jnp.floating, "pass what Policy.scores gives"),
        ("pulls", pulls, jnp.integer, "count them in jnp.zeros(num_arms, jnp.int32)"),
    ):
        if not isinstance(x, (jax.Array, np.ndarray)) or not jnp.issubdtype(x.dtype, kind):
            raise TypeError(f"choose: {name} must be an array of {kind.__name__} numbers, got {x!r}; {mend}")
    if scores.ndim != 1 or scores.shape != pulls.shape:
        raise ValueError(f"choose: scores and pulls must both have shape [K], got {scores.shape} and {pulls.shape}")


def _fold(operation: Callable[[Array, Array], Array], x: Num[Array, " K"]) -> Num[Array, " k"]:
    """Halves laid on each other until ``k <= 32``: XLA's reduction of more takes three times the time on a CPU.

    The halves share the middle of an odd number, which a maximum or minimum does not mind.
    """
    while x.shape[0] > 32:
        half = -(-x.shape[0] // 2)
        x = operation(x[:half], x[-half:])
    return x


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
