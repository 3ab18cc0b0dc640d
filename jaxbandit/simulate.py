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
from jaxbandit.layout import runs_side_by_side
from jaxbandit.pending import Anonymous, Conversions, ConversionsByPull, Feedback, Pending, Pull
from jaxbandit.policies.base import Policy

MAX_HORIZON = 2**24  # above, a float32 no longer counts pulls and rewards one by one
MAX_TABLE = 2**31 - 1  # rounds times arms: a table of all pulls is looked up by int32
CHECKPOINTS = 200

Draw = Callable[[Int[Array, ""], Int[Array, ""], Int[Array, ""]], tuple[Num[Array, ""], Int[Array, ""]]]
"""``(t, arm, n) -> (reward, delay)`` of the pull of ``arm`` in round t, its n-th (from 0)."""


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
    """What passes from round to round: ``pulls`` are N_i(t), ``arm`` and ``diagnostics`` those of the last choice."""

    state: Any
    pulls: Int[Array, " K"]
    pending: Pending
    arm: Int[Array, ""]
    diagnostics: dict[str, Array]


Report = Callable[[Carry], Any]
"""What is kept of a checkpoint's round."""


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
    rounds = plan(instance, policy, horizon, checkpoints)
    return checked(Run(rounds, *_simulate(words, instance, policy, rounds, horizon=int(horizon))), policy)


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
    check_policy(policy, rewards.shape[1], rewards.shape[0], binary=False)
    trace = _replay(rewards, delays, policy)
    if not _checks.is_traced(trace) and (np.asarray(trace.arms) >= rewards.shape[1]).any():
        raise nan_error(policy)
    return trace


def plan(instance: Instance, policy: Policy, horizon: int, checkpoints: Sequence[int] | None) -> Int[Array, " C"]:
    """Check the arguments of a run, and give its checkpoints."""
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be a jaxbandit.Instance, got {instance!r}")
    if len(instance.reward.batch_shape) > 1 or len(instance.delay.batch_shape) > 1:
        raise ValueError(
            f"instance must be a single problem, got reward laws of shape {instance.reward.batch_shape} and delay laws "
            f"of shape {instance.delay.batch_shape}; use jax.vmap over the leading axis"
        )
    horizon = _checks.whole_number("horizon", horizon, 1, MAX_HORIZON, "give the number of rounds")
    check_policy(policy, instance.num_arms, horizon, instance.reward.binary)
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
    return jnp.asarray(rounds, jnp.int32)


def check_policy(policy: Policy, num_arms: int, horizon: int, binary: bool) -> None:
    """Refuse what is not a policy, and one that breaks its protocol."""
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a jaxbandit.Policy, got {policy!r}")
    if horizon * num_arms >= MAX_TABLE:
        raise ValueError(
            f"horizon times the number of arms must be below 2^31 - 1, got {horizon} x {num_arms}; "
            "simulate fewer rounds or fewer arms"
        )
    name = type(policy).__name__
    if policy.observes not in (Anonymous, Conversions, ConversionsByPull, Feedback):
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
    pull = Pull(arm=arm, reward=jnp.ones(()), delay=policy.wait(t))
    seen = Pending.empty(policy.observes, horizon, num_arms, binary).arriving(policy.observes, t, pull)
    scores = policy.scores(state, t, tape.policy_key(jnp.zeros(2, jnp.uint32), t))
    return scores, state, jax.tree.map(jnp.asarray, policy.update(state, t, arm, seen))


def checked(run: Run, policy: Policy) -> Run:
    """``run``, after a look at whether every round pulled an arm."""
    if not _checks.is_traced(run) and np.isnan(np.asarray(run.regret[..., -1])).any():
        raise nan_error(policy)
    return run


def nan_error(policy: Policy) -> ValueError:
    return ValueError(f"policy {type(policy).__name__} gave a score that is NaN; use -inf for an arm not to be pulled")


def choose(scores: Float[Array, " K"], pulls: Int[Array, " K"]) -> Int[Array, ""]:
    """The arm with the highest score; of several, the one with the fewest pulls; of several, the lowest.

    A NaN gives K, which is no arm: nothing is pulled, and the missing pull is found out.
    """
    num_arms = scores.shape[0]
    highest = jnp.max(_fold(jnp.maximum, scores))
    order = pulls * num_arms + jnp.arange(num_arms, dtype=jnp.int32)
    first = jnp.min(_fold(jnp.minimum, jnp.where(scores == highest, order, MAX_TABLE)))
    return jnp.where(first == MAX_TABLE, num_arms, first % num_arms)


def _fold(operation: Callable[[Array, Array], Array], x: Num[Array, " K"]) -> Num[Array, " k"]:
    """Halves laid on each other until ``k <= 32``: XLA's reduction of more takes three times the time on a CPU.

    The halves share the middle of an odd number, which a maximum or minimum does not mind.
    """
    while x.shape[0] > 32:
        half = -(-x.shape[0] // 2)
        x = operation(x[:half], x[-half:])
    return x


def _step(policy: Policy, draw: Draw, key: tape.Words, t: Int[Array, ""], carry: Carry) -> Carry:
    """Round t: score, choose, pull, file the reward, learn what arrives."""
    arm = choose(policy.scores(carry.state, t, tape.policy_key(key, t)), carry.pulls)
    reward, delay = draw(t, arm, pick(carry.pulls, arm))
    pull = Pull(arm=arm, reward=reward, delay=delay)
    pending = carry.pending.add(t, pull, policy.wait(delay))
    return Carry(
        state=policy.update(carry.state, t, arm, pending.arriving(policy.observes, t + 1, pull)),
        pulls=carry.pulls + one_hot(arm, carry.pulls.shape[0]),
        pending=pending,
        arm=arm,
        diagnostics=_diagnostics(policy, carry.state, t),
    )


def _diagnostics(policy: Policy, state: Any, t: Int[Array, ""]) -> dict[str, Array]:
    return {name: jnp.asarray(value) for name, value in policy.diagnostics(state, t).items()}


def _start(policy: Policy, horizon: int, num_arms: int, binary: bool) -> Carry:
    state = jax.tree.map(jnp.asarray, policy.init(num_arms, horizon))
    return Carry(
        state=state,
        pulls=jnp.zeros(num_arms, jnp.int32),
        pending=Pending.empty(policy.observes, horizon, num_arms, binary),
        arm=jnp.zeros((), jnp.int32),
        diagnostics=_diagnostics(policy, state, jnp.ones((), jnp.int32)),
    )


def _scan(policy: Policy, draw: Draw, report: Report, key: tape.Words, rounds: Int[Array, " C"], start: Carry) -> Any:
    """All rounds up to the last checkpoint, and a row of the record for each checkpoint."""

    num_arms = start.pulls.shape[0]

    def step(t: Any, carry: Carry) -> Carry:
        return runs_side_by_side(_step(policy, draw, key, jnp.asarray(t, jnp.int32), carry), num_arms)

    def segment(carry: Carry, bounds: tuple[Array, Array]) -> tuple[Carry, Any]:
        before, checkpoint = bounds
        carry = jax.lax.fori_loop(before + 1, checkpoint + 1, step, carry)
        return carry, report(carry)

    before = jnp.concatenate([jnp.zeros(1, jnp.int32), rounds[:-1]])
    return jax.lax.scan(segment, runs_side_by_side(start, num_arms), (before, rounds))[1]


def _keep_pulls(carry: Carry) -> tuple[Array, dict[str, Array]]:
    return carry.pulls, carry.diagnostics


def _keep_arm(carry: Carry) -> Trace:
    return Trace(arms=carry.arm, diagnostics=carry.diagnostics)


def _keep_place(carry: Carry) -> Pulled:
    return Pulled(arms=carry.arm, numbers=pick(carry.pulls, carry.arm) - 1)


@partial(jax.jit, static_argnames="horizon")
def start(instance: Instance, policy: Policy, *, horizon: int) -> Carry:
    """What a run on ``instance`` starts from."""
    return _start(policy, horizon, instance.num_arms, instance.reward.binary)


def rollout(
    key: tape.Words, instance: Instance, policy: Policy, rounds: Int[Array, " C"], *, horizon: int
) -> tuple[Int[Array, "C K"], Float[Array, " C"], dict[str, Array]]:
    """Pulls, regret and diagnostics of one run on the random tape. Regret is NaN from the first missing pull on."""
    instance, policy = _path_only((instance, policy))
    draw = draw_from_tape(key, instance)
    carry = _depending_on((key, instance, policy), start(instance, policy, horizon=horizon))
    pulls, diagnostics = _scan(policy, draw, _keep_pulls, key, rounds, carry)
    # No product is negative: the maximum only keeps the compiler from fusing product and sum into one rounding, which
    # it would do in some surrounding programs and not in others.
    products = jnp.maximum(pulls.astype(instance.gaps.dtype) * instance.gaps[None], 0)
    complete = jnp.sum(pulls, axis=-1, dtype=jnp.int32) == rounds
    return pulls, jnp.where(complete, jnp.sum(products, axis=-1), jnp.nan), diagnostics


def pulled(key: tape.Words, instance: Instance, policy: Policy, horizon: int) -> Pulled:
    """One run on the random tape, round by round."""
    instance, policy = _path_only((instance, policy))
    carry = _depending_on((key, instance, policy), start(instance, policy, horizon=horizon))
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return _scan(policy, draw_from_tape(key, instance), _keep_place, key, rounds, carry)


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


_simulate = jax.jit(rollout, static_argnames="horizon")


@jax.jit
def _replay(rewards: Float[Array, "T K"], delays: Int[Array, "T K"], policy: Policy) -> Trace:
    rewards, delays, policy = _path_only((rewards, delays, policy))
    horizon, num_arms = rewards.shape

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        return pick(rewards[t - 1], arm), pick(delays[t - 1], arm)

    carry = _depending_on((rewards, delays, policy), _start(policy, horizon, num_arms, binary=False))
    key, rounds = jnp.zeros(2, jnp.uint32), jnp.arange(1, horizon + 1, dtype=jnp.int32)
    return _scan(policy, draw, _keep_arm, key, rounds, carry)


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
