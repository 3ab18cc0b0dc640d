"""One run: the one step, and the one scan over the rounds."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks, tape
from jaxbandit._checks import NEVER
from jaxbandit.instance import Instance
from jaxbandit.laws import one_hot, pick
from jaxbandit.pending import Anonymous, Conversions, ConversionsByPull, Feedback, Pending, Pull
from jaxbandit.policies.base import Policy

MAX_HORIZON = 2**24  # above, a float32 no longer counts pulls and rewards one by one
CHECKPOINTS = 200

Draw = Callable[[Int[Array, ""], Int[Array, ""], Int[Array, ""]], tuple[Num[Array, ""], Int[Array, ""]]]
"""``(t, arm, n) -> (reward, delay)`` of the pull of ``arm`` in round t, its n-th (from 0)."""

Report = Callable[[Int[Array, ""], Int[Array, " K"], dict[str, Array]], Any]
"""``(arm, pulls, diagnostics) -> row`` of the record."""


class Run(NamedTuple):
    """What happened, at the checkpoints. A batch has a leading axis of seeds, but for ``rounds``.

    Regret is the pseudo-regret ``sum over i of gap_i N_i(t)`` (Manegueu et al., 2020, Eq. 3), from the pull counts.
    """

    rounds: Int[Array, " C"]
    pulls: Int[Array, "*seeds C K"]
    regret: Float[Array, "*seeds C"]
    diagnostics: dict[str, Num[Array, "*seeds C"]]


class Trace(NamedTuple):
    """The arm of every round, and what the policy reports after its choice."""

    arms: Int[Array, " T"]
    diagnostics: dict[str, Num[Array, " T"]]


class Pulled(NamedTuple):
    """The arm of every round, and how often it had been pulled before: where on the tape its reward and delay are."""

    arms: Int[Array, " T"]
    numbers: Int[Array, " T"]


class Carry(NamedTuple):
    """What the scan carries: ``pulls`` are N_i(t-1), ``record`` has a row for each checkpoint."""

    state: Any
    pulls: Int[Array, " K"]
    pending: Pending
    record: dict[str, Any]


def simulate(
    key: Any, instance: Instance, policy: Policy, *, horizon: int, checkpoints: Sequence[int] | None = None
) -> Run:
    """One run of ``policy`` on ``instance``.

    Works under ``jit``, ``vmap`` (over keys, instances, hyperparameters), ``shard_map`` and inside a ``scan``. A new
    number compiles nothing; a new horizon, number of arms or number of checkpoints does.

    Args:
        key: a key of ``jax.random``, typed or raw, or a whole number below 2^32.
        instance: the problem.
        policy: how arms are chosen.
        horizon: number of rounds T >= 1.
        checkpoints: the rounds (1..T, increasing) to report; by default about 200, evenly spaced, the last is T.

    Raises:
        TypeError, ValueError: an argument that is not what it should be, named, before anything is compiled.
        ValueError: a score that is NaN (inside jit, the regret is NaN from then on).
        TypeError: an attempt to differentiate: see ``expected_regret``.
    """
    words = tape.words(key)
    rounds, slots = plan(instance, policy, horizon, checkpoints)
    return checked(Run(rounds, *_simulate(words, instance, policy, rounds, slots)), policy)


def replay(rewards: Any, delays: Any, policy: Policy) -> Trace:
    """The arms that ``policy`` pulls when round and arm decide what a pull gives.

    Args:
        rewards: [T, K], in [0, 1]: the reward of arm i if it is pulled in round t.
        delays: [T, K], whole numbers >= 0: its delay; ``jaxbandit.NEVER`` or infinity if it never arrives.
        policy: how arms are chosen.

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
    check_policy(policy, rewards.shape[1], rewards.shape[0])
    trace = _replay(rewards, delays, policy)
    if not _checks.is_traced(trace) and (np.asarray(trace.arms) >= rewards.shape[1]).any():
        raise _nan_error(policy)
    return trace


def plan(
    instance: Instance, policy: Policy, horizon: int, checkpoints: Sequence[int] | None
) -> tuple[Int[Array, " C"], Int[Array, " T"]]:
    """Check the arguments of a run. The checkpoints, and for every round the first checkpoint not before it."""
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be a jaxbandit.Instance, got {instance!r}")
    if len(instance.reward.batch_shape) > 1 or len(instance.delay.batch_shape) > 1:
        raise ValueError(
            f"instance must be a single problem, got reward laws of shape {instance.reward.batch_shape} and delay laws "
            f"of shape {instance.delay.batch_shape}; use jax.vmap over the leading axis"
        )
    horizon = _checks.whole_number("horizon", horizon, 1, MAX_HORIZON, "give the number of rounds")
    check_policy(policy, instance.num_arms, horizon)
    if checkpoints is None:
        rounds = np.unique(np.linspace(horizon / CHECKPOINTS, horizon, CHECKPOINTS).round().astype(np.int32))
        rounds = rounds[rounds > 0]
    else:
        mend = f"give increasing rounds from 1 to {horizon}"
        if _checks.is_traced(checkpoints):
            raise TypeError(f"checkpoints cannot be traced; {mend}")
        rounds = np.atleast_1d(np.asarray(checkpoints))
        if rounds.ndim != 1 or rounds.size == 0 or rounds.dtype.kind not in "iu":
            raise TypeError(f"checkpoints must be a list of whole numbers, got {checkpoints!r}; {mend}")
        if rounds[0] < 1 or rounds[-1] > horizon or (np.diff(rounds.astype(np.int64)) <= 0).any():
            raise ValueError(f"checkpoints must increase and lie in 1..{horizon}, got {checkpoints!r}; {mend}")
    every = np.arange(1, horizon + 1)
    slots = np.searchsorted(rounds, every)
    return jnp.asarray(rounds, jnp.int32), jnp.asarray(slots, jnp.int32)


def check_policy(policy: Policy, num_arms: int, horizon: int) -> None:
    """Refuse what is not a policy, and one that breaks its protocol."""
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a jaxbandit.Policy, got {policy!r}")
    name = type(policy).__name__
    if policy.observes not in (Anonymous, Conversions, ConversionsByPull, Feedback):
        raise TypeError(f"policy {name}: observes must be Anonymous, Conversions or Feedback, got {policy.observes!r}")
    scores, before, after = jax.eval_shape(partial(_one_round, num_arms=num_arms, horizon=horizon), policy)
    if scores.shape != (num_arms,):
        raise ValueError(f"policy {name} must give scores of shape ({num_arms},), one an arm, got {scores.shape}")
    if jax.tree.structure(before) != jax.tree.structure(after) or not jax.tree.all(jax.tree.map(_alike, before, after)):
        raise TypeError(f"policy {name}: update must return a state like init's, {before}, got {after}")


def _alike(x: Any, y: Any) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype


@partial(jax.jit, static_argnames=("num_arms", "horizon"))
def _one_round(policy: Policy, *, num_arms: int, horizon: int) -> tuple[Array, Any, Any]:
    """Scores, state before and state after a round: for its shapes only (jit remembers them)."""
    t, arm = jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32)
    state = jax.tree.map(jnp.asarray, policy.init(num_arms, horizon))
    pull = Pull(arm=arm, reward=jnp.ones(()), delay=policy.wait(t))
    seen = Pending.empty(policy.observes, horizon, num_arms, binary=False).arriving(policy.observes, t, pull)
    scores = policy.scores(state, t, tape.policy_key(jnp.zeros(2, jnp.uint32), t))
    return scores, state, jax.tree.map(jnp.asarray, policy.update(state, t, arm, seen))


def checked(run: Run, policy: Policy) -> Run:
    """``run``, after a look at whether every round pulled an arm."""
    if not _checks.is_traced(run) and np.isnan(np.asarray(run.regret[..., -1])).any():
        raise _nan_error(policy)
    return run


def _nan_error(policy: Policy) -> ValueError:
    return ValueError(f"policy {type(policy).__name__} gave a score that is NaN; use -inf for an arm not to be pulled")


def choose(scores: Float[Array, " K"], pulls: Int[Array, " K"]) -> Int[Array, ""]:
    """The arm with the highest score; of several, the one with the fewest pulls; of several, the lowest.

    A NaN gives K, which is no arm: nothing is pulled, and the missing pull is found out.
    """
    num_arms = scores.shape[0]
    best = scores == jnp.max(scores)
    fewest = jnp.min(jnp.where(best, pulls, NEVER))
    arms = jnp.arange(num_arms, dtype=jnp.int32)
    return jnp.min(jnp.where(best & (pulls == fewest), arms, num_arms))


def _step(policy: Policy, draw: Draw, report: Report, key: tape.Words, carry: Carry, now: tuple[Array, Array]) -> Carry:
    """Round t: score, choose, pull, file the reward, learn what arrives."""
    t, slot = now
    arm = choose(policy.scores(carry.state, t, tape.policy_key(key, t)), carry.pulls)
    reward, delay = draw(t, arm, pick(carry.pulls, arm))
    pull = Pull(arm=arm, reward=reward, delay=delay)
    pulls = carry.pulls + one_hot(arm, carry.pulls.shape[0])
    pending = carry.pending.add(t, pull, policy.wait(delay))
    row = report(arm, pulls, _diagnostics(policy, carry.state, t))
    return Carry(
        state=policy.update(carry.state, t, arm, pending.arriving(policy.observes, t + 1, pull)),
        pulls=pulls,
        pending=pending,
        record=jax.tree.map(lambda rows, row: rows.at[slot].set(row, mode="drop"), carry.record, row),
    )


def _diagnostics(policy: Policy, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in policy.diagnostics(state, t).items()}


def _start(policy: Policy, report: Report, horizon: int, num_arms: int, size: int, binary: bool) -> Carry:
    first, pulls = jnp.ones((), jnp.int32), jnp.zeros(num_arms, jnp.int32)
    state = jax.tree.map(jnp.asarray, policy.init(num_arms, horizon))
    row = report(first, pulls, _diagnostics(policy, state, first))
    return Carry(
        state=state,
        pulls=pulls,
        pending=Pending.empty(policy.observes, horizon, num_arms, binary),
        record=jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), row),
    )


def _scan(policy: Policy, draw: Draw, report: Report, key: tape.Words, slots: Int[Array, " T"], start: Carry) -> Any:
    """All rounds. Row ``slots[t-1]`` of the record is written in round t, and the last round to write it stays."""

    def body(carry: Carry, now: tuple[Array, Array]) -> tuple[Carry, None]:
        return _step(policy, draw, report, key, carry, now), None

    rounds = jnp.arange(1, slots.shape[0] + 1, dtype=jnp.int32)
    return jax.lax.scan(body, start, (rounds, slots))[0].record


def _keep_pulls(arm: Array, pulls: Array, diagnostics: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    return pulls, diagnostics


def _keep_arms(arm: Array, pulls: Array, diagnostics: dict[str, Array]) -> Trace:
    return Trace(arms=arm, diagnostics=diagnostics)


def _keep_places(arm: Array, pulls: Array, diagnostics: dict[str, Array]) -> Pulled:
    return Pulled(arms=arm, numbers=pick(pulls, arm) - 1)


@partial(jax.jit, static_argnames=("horizon", "size"))
def start(instance: Instance, policy: Policy, *, horizon: int, size: int) -> Carry:
    """What the scan of a run on ``instance`` starts from."""
    return _start(policy, _keep_pulls, horizon, instance.num_arms, size, instance.reward.binary)


def rollout(
    key: tape.Words, instance: Instance, policy: Policy, rounds: Int[Array, " C"], slots: Int[Array, " T"]
) -> tuple[Int[Array, "C K"], Float[Array, " C"], dict[str, Array]]:
    """Pulls, regret and diagnostics of one run on the random tape. Regret is NaN from the first missing pull on."""
    instance, policy = _path_only((instance, policy))
    draw = draw_from_tape(key, instance)
    carry = start(instance, policy, horizon=slots.shape[0], size=rounds.shape[0])
    carry = _depending_on((key, instance, policy), carry)
    pulls, diagnostics = _scan(policy, draw, _keep_pulls, key, slots, carry)
    # No product is negative: the maximum only keeps the compiler from fusing product and sum into one rounding, which
    # it would do in some surrounding programs and not in others.
    products = jnp.maximum(pulls.astype(instance.gaps.dtype) * instance.gaps[None], 0)
    complete = jnp.sum(pulls, axis=-1, dtype=jnp.int32) == rounds
    return pulls, jnp.where(complete, jnp.sum(products, axis=-1), jnp.nan), diagnostics


def pulled(key: tape.Words, instance: Instance, policy: Policy, horizon: int) -> Pulled:
    """One run on the random tape, round by round."""
    instance, policy = _path_only((instance, policy))
    carry = _start(policy, _keep_places, horizon, instance.num_arms, size=horizon, binary=instance.reward.binary)
    carry = _depending_on((key, instance, policy), carry)
    slots = jnp.arange(horizon, dtype=jnp.int32)
    return _scan(policy, draw_from_tape(key, instance), _keep_places, key, slots, carry)


def drawn(key: tape.Words, instance: Instance, run: Pulled) -> tuple[Num[Array, " T"], Int[Array, " T"]]:
    """Rewards and delays of the pulls of a run, seen or not."""
    draw = draw_from_tape(key, instance)
    return jax.vmap(partial(draw, jnp.zeros((), jnp.int32)))(run.arms, run.numbers)


def draw_from_tape(key: tape.Words, instance: Instance) -> Draw:
    sample_reward, sample_delay = instance.reward.sampler(), instance.delay.sampler()

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        for_reward, for_delay = tape.uniforms(key, arm, n)
        return sample_reward(for_reward, arm), sample_delay(for_delay, arm)

    return draw


_simulate = jax.jit(rollout)


@jax.jit
def _replay(rewards: Float[Array, "T K"], delays: Int[Array, "T K"], policy: Policy) -> Trace:
    rewards, delays, policy = _path_only((rewards, delays, policy))
    horizon, num_arms = rewards.shape

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        return pick(rewards[t - 1], arm), pick(delays[t - 1], arm)

    carry = _start(policy, _keep_arms, horizon, num_arms, size=horizon, binary=False)
    carry = _depending_on((rewards, delays, policy), carry)
    key, slots = jnp.zeros(2, jnp.uint32), jnp.arange(horizon, dtype=jnp.int32)
    return _scan(policy, draw, _keep_arms, key, slots, carry)


def _depending_on(inputs: Any, carry: Any) -> Any:
    """``carry``, the same numbers, but made to depend on all ``inputs``.

    Inside ``shard_map`` a scan may only carry what varies over the mesh as its result does: here, as any input does.
    """
    condition = jnp.stack([jnp.any(leaf != leaf) for leaf in jax.tree.leaves(inputs)]).any()
    return jax.tree.map(lambda x: jnp.where(condition, x, x), carry)


@jax.custom_jvp
def _path_only(inputs: Any) -> Any:
    """``inputs``, of which nothing may be differentiated."""
    return inputs


@_path_only.defjvp
def _path_only_jvp(primals: Any, tangents: Any) -> Any:
    raise TypeError(
        "a simulated run cannot be differentiated: arms are chosen by an argmax, so that the derivative of the regret "
        "along one path leaves out how choices change, and is wrong for the expected regret; differentiate "
        "jaxbandit.expected_regret instead, or put jax.lax.stop_gradient around the arguments of simulate"
    )
