"""The score of a run: how the probability of what was seen and chosen changes with the parameters.

A run is simulated, with nothing differentiated, and its arms are recorded. Rewards and delays of all its pulls are
drawn again from the tape, and the logarithm of the probability of each pull's outcome is looked up in a table by age
and arm: no derivative goes back through the simulation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._arms import one_hot, pick
from jaxbandit.engine import tape
from jaxbandit.engine.batch import whole_vectors
from jaxbandit.engine.lookback import lookback_of
from jaxbandit.engine.pending import known_from
from jaxbandit.engine.protocol import sound
from jaxbandit.engine.traces import drawn, pulled
from jaxbandit.instance import Instance
from jaxbandit.laws.base import safe_log
from jaxbandit.policies import Policy, Softmax
from jaxbandit.policies.observations import Feedback, Observation, Pull, observation

GROUP = 256
"""Runs whose mean is each other's baseline, and which are in memory together."""

AGES = 128
"""Ages for which probabilities are computed together."""

FORWARD = 16
"""Up to so many parameters are differentiated forwards, in the memory of one state."""


class Trajectory(NamedTuple):
    """The pull of every round of one run: its reward and delay, whether it was seen by the horizon or not."""

    arms: Int[Array, " T"]
    rewards: Num[Array, " T"]
    delays: Int[Array, " T"]


def surrogate(
    instance: Instance, policy: Policy, run: Trajectory, baseline: Float[Array, " T"], key: tape.Words
) -> Float[Array, ""]:
    """The regret of ``run``, of which derivatives of every order are unbiased for those of the expected regret.

    ``sum over s of c_s box(W_s) + b_s (1 - box(W_s))``, where c_s is the gap of the arm of round s, b_s any number that
    does not depend on the run, W_s the logarithm of the probability of all that was chosen up to round s and of the
    outcomes of all pulls before it, and ``box(W) = exp(W - stop_gradient(W)) = 1`` (Foerster et al., 2018, DiCE).
    """
    cost = _gap_of(instance, run.arms)
    outcomes = log_likelihood(instance, policy.observes, run)
    log_weight = jnp.cumsum(outcomes) - outcomes
    if isinstance(policy, Softmax):
        log_weight += jnp.cumsum(log_choices(policy, run, instance.num_arms, key))
    box = jnp.exp(log_weight - jax.lax.stop_gradient(log_weight))
    return jnp.sum(cost * box + baseline * (1 - box))


def _gap_of(instance: Instance, arms: Int[Array, "..."]) -> Float[Array, "..."]:
    """The gap of each arm; NaN for K, which is no arm."""
    gaps = jnp.append(instance.gaps, jnp.nan)
    return gaps[arms]


def log_likelihood(instance: Instance, observes: type[Observation], run: Trajectory) -> Float[Array, " T"]:
    """The logarithm of the probability of what is seen of each pull by the horizon.

    That is a reward and its delay, if it arrives in time, else only that it did not: the least that a pull can tell,
    and so the score of least variance. A zero arrives for policies with ``Feedback`` only.
    """
    horizon, num_arms = run.arms.shape[0], instance.num_arms
    ages = jnp.arange(horizon, dtype=jnp.int32)
    oldest = ages[::-1]
    waited = jnp.maximum(run.delays, 1)
    feedback = observes is Feedback
    seen = waited <= oldest
    if not feedback:
        seen &= run.rewards > 0
    sure = instance.reward.binary and not feedback  # what arrives is a one

    def by_age(age: Int[Array, ""]) -> tuple[Array, Array]:
        return log_arrival(instance, age, sure=sure), log_silence(instance, age, feedback=feedback)

    # A loop, so that the compiler does not compute the logarithms again in every look-up, at fifty times the cost.
    table = jnp.concatenate(jax.lax.map(by_age, ages, batch_size=AGES)).reshape(-1)
    row = jnp.where(seen, jnp.minimum(waited, horizon - 1), horizon + oldest)
    value = table[row * num_arms + run.arms]
    if sure:
        return value
    return value + jnp.where(seen, jax.vmap(partial(_log_reward, instance))(run.rewards, run.arms), 0)


def _possible(log_probability: Array, num_arms: int) -> Float[Array, " K"]:
    """For every arm, and 0 for what cannot happen, so that nothing infinite is subtracted from itself."""
    value = jnp.broadcast_to(log_probability, (num_arms,))
    return jnp.where(jnp.isfinite(value), value, 0)


def _log_reward(instance: Instance, reward: Num[Array, ""], arm: Int[Array, ""]) -> Float[Array, ""]:
    return pick(_possible(instance.reward.log_prob(reward), instance.num_arms), arm)


def log_arrival(instance: Instance, age: Int[Array, ""], *, sure: bool = False) -> Float[Array, " K"]:
    """``log P(D = age)``, and if ``sure`` ``log P(C = 1, D = age)``.

    Delays of 0 and 1 cannot be told apart: both have age 1.
    """
    at_once = safe_log(instance.delay.cdf(jnp.ones_like(age)))
    value = jnp.where(age <= 1, at_once, instance.delay.log_prob(jnp.maximum(age, 2)))
    value = _possible(value, instance.num_arms)
    return value + _possible(instance.reward.log_prob(jnp.ones(())), instance.num_arms) if sure else value


def log_silence(instance: Instance, age: Int[Array, ""], *, feedback: bool) -> Float[Array, " K"]:
    """``log(1 - P(C > 0) P(D <= age))``: nothing has been seen of a pull that old. With feedback ``log P(D > age)``."""
    delay = instance.delay
    if feedback:
        value = jnp.where(age < 1, 0, delay.log_survival(age))
    else:
        pays = instance.reward.survival(jnp.zeros(()))
        arrived = delay.cdf(age)
        rare = arrived < 0.5  # of the two forms, the one whose derivatives do not cancel
        rest = (1 - pays) + pays * delay.survival(age)
        value = jnp.where(rare, jnp.log1p(-pays * jnp.where(rare, arrived, 0)), safe_log(jnp.where(rare, 1, rest)))
        value = jnp.where(age < 1, 0, value)
    return _possible(value, instance.num_arms)


def log_choices(policy: Softmax, run: Trajectory, num_arms: int, key: tape.Words) -> Float[Array, " T"]:
    """The logarithm of the probability of the arm of every round, given what had arrived by then."""
    horizon = run.arms.shape[0]
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    due = known_from(rounds, run.delays, jax.vmap(policy.wait)(run.delays))
    empty = jnp.zeros((horizon + 2, num_arms))

    def by_round(amounts: Num[Array, " T"]) -> Float[Array, "T K"]:
        """What has arrived when the next round starts."""
        rows = empty.at[due, run.arms].add(amounts.astype(empty.dtype), mode="drop")
        return rows[2:]

    def body(state: tuple[Any, Any, Any], now: tuple[Array, Pull, Array, Array]) -> tuple[Any, Array]:
        inner, pulls, lookback = state
        t, pull, rewards, settled = now
        chosen = policy.log_prob(inner, t, tape.policy_key(key, t), pull.arm)
        pulls = pulls + one_hot(pull.arm, num_arms)
        if lookback is not None:
            lookback = lookback.write(t, pull).advance(t + 1, policy.windows(pulls))
        old = None if lookback is None else lookback.sums()
        inner = policy.update(inner, t, pull.arm, observation(policy.observes, rewards, settled, old))
        return (inner, pulls, lookback), chosen

    start = (
        jax.tree.map(jnp.asarray, policy.init(num_arms, horizon)),
        jnp.zeros(num_arms, jnp.int32),
        lookback_of(policy, horizon, num_arms, binary=False),
    )
    pulls = Pull(arm=run.arms, reward=run.rewards, delay=due - rounds)
    return jax.lax.scan(body, start, (rounds, pulls, by_round(run.rewards), by_round(jnp.ones(horizon))))[1]


@jax.custom_jvp
def _without_score(policy: Policy) -> Policy:
    """``policy``, whose parameters have no score."""
    return policy


@_without_score.defjvp
def _without_score_jvp(primals: Any, tangents: Any) -> Any:
    raise ValueError(no_score(primals[0]))


def no_score(policy: Any) -> str:
    return (
        f"estimator='score' cannot differentiate the parameters of {type(policy).__name__}: it plays the best score, "
        "so that the expected regret is a step function of them, and its gradient 0; use estimator='crn', which "
        "smooths, or wrap the policy in Softmax"
    )


def trajectories(keys: Any, instance: Instance, policy: Policy, horizon: int) -> Trajectory:
    """Runs side by side, those of ``simulate`` with these keys; nothing of them may be differentiated."""

    def draw(now: tuple[tape.Words, Any]) -> Trajectory:
        key, run = now
        rewards, delays = drawn(key, instance, run)
        return Trajectory(arms=run.arms, rewards=rewards, delays=delays)

    runs = jax.vmap(lambda key: pulled(key, instance, policy, horizon))(keys)
    # A loop again, so that the tape is not computed afresh for every use.
    return jax.lax.map(draw, (keys, runs), batch_size=max(keys.shape[0] // 4, 1))


def group_size(horizon: int, seeds: int) -> int:
    """Runs of a group: all groups are as large, an even number for the vector units of a CPU."""
    most = max(min(GROUP, 2**24 // horizon), 8)
    size = -(-seeds // -(-seeds // most))
    return whole_vectors(size)


@partial(jax.jit, static_argnames=("horizon", "seeds", "per_run"))
def score(
    chosen: Any, rest: Any, words: tape.Words, *, horizon: int, seeds: int, per_run: bool
) -> tuple[Float[Array, "*seeds"], Any]:
    """Regret, and its gradient with respect to ``chosen``, parts of (instance, policy): of every run, or their means.

    Seeds are simulated in groups; the baseline of a run is the mean over the other runs of its group. A last group is
    filled up with runs that count for the baseline only.
    """
    size = group_size(horizon, seeds)
    groups = jnp.arange(-(-seeds // size) * size, dtype=jnp.int32).reshape(-1, size)

    def one_group(indices: Int[Array, " size"]) -> tuple[Array, Any]:
        instance, policy = eqx.combine(chosen, rest)
        policy = policy if isinstance(policy, Softmax) else _without_score(policy)
        instance, policy = jax.lax.stop_gradient((instance, policy))
        keys = jax.vmap(partial(tape.seed_words, words))(indices)
        runs = trajectories(keys, instance, policy, horizon)
        costs = _gap_of(instance, runs.arms)
        baselines = (jnp.sum(costs, axis=0)[None] - costs) / (size - 1)

        def of_run(parts: Any, run: Trajectory, baseline: Array, key: Array) -> Array:
            instance, policy = eqx.combine(parts, rest)
            return surrogate(instance, policy, run, baseline, key)

        def of_group(parts: Any) -> Array:
            values = jax.vmap(partial(of_run, parts))(runs, baselines, keys)
            return jnp.sum(jnp.where(indices < seeds, values, 0))

        regret = jax.vmap(partial(_regret, instance))(runs.arms)
        if not per_run:
            value, gradient = _differentiate(of_group, chosen)
            total = jnp.sum(jnp.where(indices < seeds, regret, 0))
            return total + (value - jax.lax.stop_gradient(value)), gradient
        by_run = lambda *run: _differentiate(lambda parts: of_run(parts, *run), chosen)[1]  # noqa: E731
        return regret, jax.vmap(by_run)(runs, baselines, keys)

    results = jax.lax.map(one_group, groups)
    good = sound(*eqx.combine(chosen, rest))
    results = jax.tree.map(partial(_checks.nan_unless, jax.lax.stop_gradient(good)), results)
    if per_run:
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:seeds], results)
    return jax.tree.map(lambda x: jnp.sum(x, axis=0) / seeds, results)


def _regret(instance: Instance, arms: Int[Array, " T"]) -> Float[Array, ""]:
    """From the pull counts, as the simulator has it."""
    pulls = jnp.sum(arms[:, None] == jnp.arange(instance.num_arms, dtype=jnp.int32)[None], axis=0, dtype=jnp.int32)
    regret = jnp.sum(pulls.astype(instance.gaps.dtype) * instance.gaps)
    return jnp.where(jnp.sum(pulls) == arms.shape[0], regret, jnp.nan)


def derivative_for(parts: Any) -> Callable[..., Any]:
    """Forwards for few parameters, else backwards."""
    return jax.jacfwd if sum(leaf.size for leaf in jax.tree.leaves(parts)) <= FORWARD else jax.grad


def _differentiate(value: Callable[[Any], Array], parts: Any) -> tuple[Array, Any]:
    """Value and gradient: of the instance's part backwards, of the policy's few parameters forwards."""
    instance, policy = parts
    total, by_instance = jax.value_and_grad(lambda part: value((part, policy)))(instance)
    if not jax.tree.leaves(policy):
        return total, (by_instance, policy)
    return total, (by_instance, derivative_for(policy)(lambda part: value((instance, part)))(policy))
