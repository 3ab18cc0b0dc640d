"""The straight-through estimate: choices and rewards as drawn, but differentiated as if they were their probabilities.

Cheap and of little variance, and biased: pulls, rewards and arrivals are treated as amounts that can be divided.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import is_arm
from jaxbandit.engine import tape
from jaxbandit.engine.protocol import sound
from jaxbandit.engine.run import draw_from_tape
from jaxbandit.gradients.score import derivative_for
from jaxbandit.instance import Instance
from jaxbandit.policies import UCB1, PatientBandits, Policy, Softmax
from jaxbandit.policies.choice import choose
from jaxbandit.policies.patient import log_term, patient_bonus
from jaxbandit.policies.ucb import ucb1_index

AT_ONCE = 64


class Amounts(NamedTuple):
    """Pulls and rewards seen, as amounts, and what is to arrive in each round."""

    pulls: Float[Array, " K"]
    rewards: Float[Array, " K"]
    arrivals: Float[Array, "T+2 K"]
    regret: Float[Array, ""]


def check_relaxed(policy: Any, wanted: Any) -> None:
    """Refuse what has no such estimate; ``wanted`` says which parts of the instance and policy are differentiated.

    Raises:
        ValueError: a policy other than a softmax of PatientBandits or UCB1, or parameters of a delay law.
    """
    inner = policy.policy if isinstance(policy, Softmax) else None
    known = isinstance(inner, UCB1) or (isinstance(inner, PatientBandits) and not callable(inner.alpha))
    if not known:
        raise ValueError(
            "estimator='relaxed' needs a Softmax of PatientBandits (with a number for alpha) or of UCB1, got "
            f"{policy!r}; use estimator='score' or 'crn'"
        )
    if any(jax.tree.leaves(wanted[0].delay)):
        raise ValueError("estimator='relaxed' cannot differentiate a delay law; use estimator='score' or 'crn'")


def _index(policy: Policy, now: Amounts, t: Int[Array, ""], horizon: int) -> Float[Array, " K"]:
    """The scores of the policy, from amounts."""
    if isinstance(policy, PatientBandits):
        deviation = policy.bonus_scale * (2 * log_term(now.pulls.shape[0], horizon)) ** 0.5
        alpha: Any = policy.alpha
        mean = now.rewards / jnp.maximum(now.pulls, 1)
        return mean + patient_bonus(now.pulls, alpha, deviation, policy.bias_scale)
    return ucb1_index(now.rewards, now.pulls, t)


def _run(instance: Instance, policy: Softmax, key: tape.Words, horizon: int) -> Float[Array, ""]:
    """The regret of a run, in its value that of ``simulate``."""
    num_arms = instance.num_arms
    arms = jnp.arange(num_arms, dtype=jnp.int32)
    means, gaps = instance.means, instance.gaps
    draw = draw_from_tape(key, jax.lax.stop_gradient(instance))

    def body(now: Amounts, t: Int[Array, ""]) -> tuple[Amounts, None]:
        scores = _index(policy.policy, now, t, horizon)
        finite = jnp.isfinite(scores)
        logits = jnp.where(finite, scores, 0) / policy.temperature
        noise = jax.random.gumbel(jax.random.split(tape.policy_key(key, t))[1], scores.shape, scores.dtype)
        pulls = jax.lax.stop_gradient(now.pulls).astype(jnp.int32)
        arm = choose(jax.lax.stop_gradient(jnp.where(finite, logits + noise, scores)), pulls)
        likely = jnp.where(finite.all(), jax.nn.softmax(logits), 0)
        pulled = is_arm(arm, num_arms).astype(likely.dtype) + (likely - jax.lax.stop_gradient(likely))
        pulled = jnp.where(arm < num_arms, 1, jnp.nan) * pulled  # a product, so that derivatives are NaN too
        reward, delay = jax.vmap(partial(draw, t))(arms, pulls)
        reward = reward + (means - jax.lax.stop_gradient(means))
        due = t + jnp.maximum(delay, 1)
        arrivals = now.arrivals.at[due, arms].add(pulled * reward, mode="drop")
        return Amounts(
            pulls=now.pulls + pulled,
            rewards=now.rewards + arrivals[t + 1],
            arrivals=arrivals,
            regret=now.regret + jnp.sum(pulled * gaps),
        ), None

    none = jnp.zeros(num_arms)
    start = Amounts(pulls=none, rewards=none, arrivals=jnp.zeros((horizon + 2, num_arms)), regret=jnp.zeros(()))
    return jax.lax.scan(body, start, jnp.arange(1, horizon + 1, dtype=jnp.int32))[0].regret


@partial(jax.jit, static_argnames=("horizon", "seeds"))
def relaxed(chosen: Any, rest: Any, words: tape.Words, *, horizon: int, seeds: int) -> Any:
    """The gradient with respect to ``chosen``, parts of (instance, policy), of every run: one entry a seed."""

    def one_run(i: Int[Array, ""]) -> Any:
        def regret(parts: Any) -> Array:
            instance, policy = eqx.combine(parts, rest)
            return _checks.nan_unless(
                sound(instance, policy), _run(instance, policy, tape.seed_words(words, i), horizon)
            )

        return derivative_for(chosen)(regret)(chosen)

    return jax.lax.map(one_run, jnp.arange(seeds, dtype=jnp.int32), batch_size=AT_ONCE)
