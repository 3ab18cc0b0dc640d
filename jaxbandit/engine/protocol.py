"""The arguments of a run, checked: a clear error before anything is compiled."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxbandit import _checks
from jaxbandit._arms import MAX_TABLE, one_hot
from jaxbandit.engine import tape
from jaxbandit.engine.pending import Pending
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback, Pull

MAX_HORIZON = 2**24  # above, a float32 no longer counts pulls and rewards one by one

CHECKPOINTS = 200

OBSERVATIONS = (Anonymous, Conversions, ConversionsByPull, Feedback)


def plan(
    instance: Instance, policy: Policy, horizon: int, checkpoints: Sequence[int] | None, before: int = 0
) -> Int[Array, " C"]:
    """Check the arguments of a run with ``before`` rounds of history, and give its checkpoints."""
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be a jaxbandit.Instance, got {instance!r}")
    if len(instance.reward.batch_shape) > 1 or len(instance.delay.batch_shape) > 1:
        raise ValueError(
            f"instance must be a single problem, got reward laws of shape {instance.reward.batch_shape} and delay laws "
            f"of shape {instance.delay.batch_shape}; use jax.vmap over the leading axis"
        )
    if before >= MAX_HORIZON:
        raise ValueError(f"history has {before} rounds, and with the horizon it must stay within {MAX_HORIZON}")
    mend = f"give the number of rounds after the {before} of the history" if before else "give the number of rounds"
    horizon = _checks.whole_number("horizon", horizon, 1, MAX_HORIZON - before, mend)
    check_policy(policy, instance.num_arms, before + horizon, instance.reward.binary)
    if checkpoints is None:
        rounds = np.unique(np.linspace(horizon / CHECKPOINTS, horizon, CHECKPOINTS).round().astype(np.int32))
        rounds = rounds[rounds > 0]
    else:
        mend = f"give increasing rounds from 1 to {horizon}"
        if _checks.is_traced(checkpoints):
            raise TypeError(f"checkpoints cannot be traced; {mend}")
        rounds = np.asarray(checkpoints)
        if rounds.ndim != 1 or rounds.size == 0 or rounds.dtype.kind not in "iu":
            raise TypeError(f"checkpoints must be a list of whole numbers, got {checkpoints!r}; {mend}")
        if rounds[0] < 1 or rounds[-1] > horizon or (np.diff(rounds.astype(np.int64)) <= 0).any():
            raise ValueError(f"checkpoints must increase and lie in 1..{horizon}, got {checkpoints!r}; {mend}")
    return jnp.asarray(rounds, jnp.int32)


def check_policy(policy: Policy, num_arms: int, horizon: int, binary: bool) -> None:
    """Refuse what is not a policy, and one that breaks its protocol."""
    if not isinstance(policy, Policy):
        call = f"; call it: {policy.__name__}(...)" if isinstance(policy, type) else ""
        raise TypeError(f"policy must be a jaxbandit.Policy, got {policy!r}{call}")
    if horizon * num_arms >= MAX_TABLE:
        raise ValueError(
            f"horizon times the number of arms must be below 2^31 - 1, got {horizon} x {num_arms}; "
            "simulate fewer rounds or fewer arms"
        )
    name = type(policy).__name__
    if policy.observes not in OBSERVATIONS:
        raise TypeError(f"policy {name}: observes must be Anonymous, Conversions or Feedback, got {policy.observes!r}")
    one_round = partial(_one_round, num_arms=num_arms, horizon=horizon, binary=binary)
    scores, before, after = jax.eval_shape(one_round, policy)
    if scores.shape != (num_arms,):
        raise ValueError(f"policy {name} must give scores of shape ({num_arms},), one an arm, got {scores.shape}")
    if jax.tree.structure(before) != jax.tree.structure(after) or not jax.tree.all(jax.tree.map(_alike, before, after)):
        raise TypeError(f"policy {name}: update must return a state like init's, {before}, got {after}")


def _alike(x: Any, y: Any) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype


@partial(jax.jit, static_argnames=("num_arms", "horizon", "binary"))
def _one_round(policy: Policy, *, num_arms: int, horizon: int, binary: bool) -> tuple[Array, Any, Any]:
    """Scores, state before and state after a round: for its shapes only (jit remembers them)."""
    t, arm = jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32)
    state = jax.tree.map(jnp.asarray, policy.init(num_arms, horizon))
    pull = Pull(arm=arm, reward=jnp.ones(()), delay=t)
    pulls = one_hot(arm, num_arms)
    seen = Pending.empty(policy, horizon, num_arms, binary).add(policy, t, pull, pulls).arriving(policy.observes, t)
    scores = policy.scores(state, t, tape.policy_key(jnp.zeros(2, jnp.uint32), t))
    return scores, state, jax.tree.map(jnp.asarray, policy.update(state, t, arm, seen))


def sound(instance: Instance, policy: Any) -> Bool[Array, ""]:
    """Whether all parameters are numbers in their range: NaN stands for one that is not (see ``_checks``)."""
    return _checks.sound((instance, policy)) & ~jnp.isnan(instance.means).any()


def refuse_nan(final_regret: np.ndarray, policy: Policy, instance: Instance | None = None) -> None:
    """Raise the error of a run in which a round pulled no arm, or a parameter is no number: its regret is NaN."""
    if np.isnan(final_regret).any():
        raise nan_error(policy, instance)


def nan_error(policy: Policy, instance: Instance | None = None) -> ValueError:
    for path, leaf in jax.tree_util.tree_leaves_with_path({"instance": instance, "policy": policy}):
        if not _checks.sound(leaf):
            place = str(path[0].key) + jax.tree_util.keystr(path[1:])
            return ValueError(f"{place} is NaN, or was made under jit or vmap from a number out of its range")
    return ValueError(f"policy {type(policy).__name__} gave a score that is NaN; use -inf for an arm not to be pulled")
