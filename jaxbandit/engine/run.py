"""One run on the random tape."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from jaxbandit import _checks
from jaxbandit._show import known, show
from jaxbandit.engine import tape
from jaxbandit.engine.history import History, length, lived, past, with_arrivals
from jaxbandit.engine.ledger import Ledger, Rewards, rewards_of
from jaxbandit.engine.protocol import plan, refuse_nan, sound
from jaxbandit.engine.step import Carry, Draw, scan, start_of
from jaxbandit.engine.transforms import depending_on, path_only
from jaxbandit.instance import Instance
from jaxbandit.policies.base import Policy


class Run(NamedTuple):
    """What happened, at the checkpoints. A batch has a leading axis of seeds, but for ``rounds``.

    Regret is the pseudo-regret ``sum over i of gap_i N_i(t)`` (Manegueu et al., 2020, Eq. 3), from the pull counts.
    ``rewards``, what the run has earned, is there if it was asked for.
    """

    rounds: Int[Array, " C"]
    pulls: Int[Array, "*seeds C K"]
    regret: Float[Array, "*seeds C"]
    diagnostics: dict[str, Num[Array, "*seeds C"]]
    rewards: Rewards | None = None

    def __repr__(self) -> str:
        """One line; inside ``jit`` and the like, where there are no numbers yet, the shapes."""
        if not known(self.rounds) or not known(self.pulls) or not known(self.regret):
            return show(self)
        *seeds, _, arms = self.pulls.shape
        runs = f"{' x '.join(map(str, seeds))} seeds" if seeds else "1 seed"
        horizon, regret = np.max(np.asarray(self.rounds)), np.mean(np.asarray(self.regret[..., -1]))
        return f"<Run: {runs}, horizon {horizon}, {arms} arms, mean final regret {regret:.6g}>"


def simulate(
    key: Any,
    instance: Instance,
    policy: Policy,
    *,
    horizon: int,
    checkpoints: Sequence[int] | None = None,
    rewards: bool = False,
    history: History | None = None,
) -> Run:
    """One run of ``policy`` on ``instance``.

    Works under ``jit``, ``vmap`` (over keys, instances, hyperparameters), ``shard_map`` and inside a ``scan``. A new
    number compiles nothing; a new horizon, number of arms or number of checkpoints does.

    Traced values, those inside ``jit``, ``vmap`` or ``grad``, cannot be refused with an error. Where one is out of its
    range (a mean of 1.7, a negative scale or window, probabilities that do not sum to 1), the regret is NaN at every
    checkpoint, and so are ``expected_regret`` and its derivatives; the pulls of such a run mean nothing.

    Args:
        key: a key of ``jax.random``, typed or raw, or a whole number below 2^32.
        instance: the problem.
        policy: how arms are chosen.
        horizon: number of rounds T >= 1.
        checkpoints: the rounds (1..T, increasing) to report; by default about 200, evenly spaced, the last is T.
        rewards: also report the rewards that have been seen by each checkpoint, those still to come, and those lost:
            see ``Rewards``. It changes no other number.
        history: what came before round 1, see ``History``. Rounds, pulls and regret are those after it; a policy is
            told, and its constants are for, all rounds.

    Raises:
        TypeError, ValueError: an argument that is not what it should be, named, before anything is compiled.
        ValueError: a score that is NaN (inside jit, the regret is NaN from then on).
        TypeError: an attempt to differentiate: see ``expected_regret``.
    """
    words = tape.words(key)
    history = past(history, instance, policy)
    rounds = plan(instance, policy, horizon, checkpoints, before=length(history))
    result = _simulate(words, instance, policy, rounds, history, horizon=int(horizon), rewards=bool(rewards))
    return checked(Run(rounds, *result), policy, instance)


def checked(run: Run, policy: Policy, instance: Instance) -> Run:
    """``run``, after a look at whether every round pulled an arm."""
    if not _checks.is_traced(run):
        refuse_nan(np.asarray(run.regret[..., -1]), policy, instance)
    return run


@partial(jax.jit, static_argnames=("horizon", "rewards"))
def start(
    instance: Instance, policy: Policy, history: History | None = None, *, horizon: int, rewards: bool = False
) -> Carry:
    """What a run on ``instance`` starts from, but for what is still to come of its history."""
    total = horizon + length(history)
    carry = start_of(policy, total, instance.num_arms, instance.reward.binary)
    if history is not None:
        carry = lived(policy, history, depending_on((policy, history), carry))
    return carry._replace(ledger=Ledger.empty(total, instance.reward.binary)) if rewards else carry


def keep(carry: Carry) -> tuple[Array, dict[str, Array], Any]:
    """What is reported of a checkpoint."""
    return carry.pulls, carry.diagnostics, None if carry.ledger is None else carry.ledger.sums()


def rollout(
    key: tape.Words,
    instance: Instance,
    policy: Policy,
    rounds: Int[Array, " C"],
    history: History | None = None,
    *,
    horizon: int,
    rewards: bool = False,
) -> tuple[Int[Array, "C K"], Float[Array, " C"], dict[str, Array], Rewards | None]:
    """Pulls, regret, diagnostics and rewards of one run on the random tape. Regret is NaN from the first missing pull
    on, and everywhere if a parameter is out of its range."""
    instance, policy, history = path_only((instance, policy, history))
    draw = draw_from_tape(key, instance)
    carry = start(instance, policy, history, horizon=horizon, rewards=rewards)
    carry = begun(key, instance, policy, history, carry)
    before = length(history)
    pulls, diagnostics, sums = scan(policy, draw, keep, key, rounds + before if before else rounds, carry, before)
    earned = None if sums is None else rewards_of(sums, instance.reward.binary)
    if history is not None:
        pulls = pulls - carry.pulls[None]
    return pulls, pseudo_regret(pulls, rounds, instance, (policy, history)), diagnostics, earned


def begun(key: tape.Words, instance: Instance, policy: Policy, history: History | None, carry: Carry) -> Carry:
    """``carry`` from ``start``, for one key."""
    carry = depending_on((key, instance, policy), carry)
    return carry if history is None else with_arrivals(key, instance, policy, history, carry)


def pseudo_regret(
    pulls: Int[Array, "C K"], rounds: Int[Array, " C"], instance: Instance, policy: Any = None
) -> Float[Array, " C"]:
    """From the pulls after these rounds; NaN where there are fewer than rounds, or a parameter is out of its range."""
    # No product is negative: the maximum only keeps the compiler from fusing product and sum into one rounding, which
    # it would do in some surrounding programs and not in others.
    products = jnp.maximum(pulls.astype(instance.gaps.dtype) * instance.gaps[None], 0)
    complete = (jnp.sum(pulls, axis=-1, dtype=jnp.int32) == rounds) & sound(instance, policy)
    return jnp.where(complete, jnp.sum(products, axis=-1), jnp.nan)


def draw_from_tape(key: tape.Words, instance: Instance) -> Draw:
    sample_reward, sample_delay = instance.reward.sampler(), instance.delay.sampler()

    def draw(t: Array, arm: Array, n: Array) -> tuple[Array, Array]:
        for_reward, for_delay = tape.uniforms(key, arm, n)
        return sample_reward(for_reward, arm), sample_delay(for_delay, arm)

    return draw


_simulate = jax.jit(rollout, static_argnames=("horizon", "rewards"))
