"""An environment for learning agents: the simulator, stepped from outside."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit import _checks
from jaxbandit._arms import one_hot, pick
from jaxbandit.engine import tape
from jaxbandit.engine.pending import Pending
from jaxbandit.engine.protocol import MAX_HORIZON, OBSERVATIONS
from jaxbandit.engine.run import draw_from_tape, pseudo_regret
from jaxbandit.engine.transforms import depending_on, path_only
from jaxbandit.instance import Instance
from jaxbandit.laws import Bernoulli, Geometric
from jaxbandit.policies.base import Policy
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback, Observation, Pull

RewardKind = Literal["arrivals", "gap"]


class Onlooker(Policy):
    """Sees what it is told to, at once; chooses nothing."""

    observes: type[Observation] = eqx.field(static=True)  # pyright: ignore

    def init(self, num_arms: int, horizon: int) -> tuple[()]:
        return ()

    def scores(self, state: tuple[()], t: Int[Array, ""], key: Array) -> Float[Array, " K"]:
        raise NotImplementedError("an onlooker chooses nothing")

    def update(self, state: tuple[()], t: Int[Array, ""], arm: Int[Array, ""], observation: Any) -> tuple[()]:
        return ()


class EnvironmentState(NamedTuple):
    """Before round ``t`` (1..T): the run's key, how often each arm has been pulled, and rewards in flight."""

    key: tape.Words
    t: Int[Array, ""]
    pulls: Int[Array, " K"]
    pending: Pending


Transition = tuple[
    Float[Array, " obs"], EnvironmentState, Float[Array, ""], Bool[Array, ""], Bool[Array, ""], dict[str, Any]
]
"""Observation, state, reward, terminated, truncated, info."""


class Environment(eqx.Module):
    """A bandit with delayed rewards, round by round; pure functions in the order of gymnax 1.0.

    ``obs, state = env.reset(key, instance)`` begins a run, and
    ``obs, state, reward, terminated, truncated, info = env.step(key, state, arm, instance)`` plays a round of it. The
    random tape is that of ``reset``'s key, as in ``simulate``: a policy played through the environment pulls the same
    arms and has the same regret, bit for bit. (``step``'s key is not used: no number is drawn in a round but those of
    the tape.) Works under ``jit``, ``vmap`` over keys, instances and arms, ``scan`` and ``shard_map``.

    ``obs`` is one float array: what ``info["observation"]`` holds (``rewards`` that arrive, K numbers, and for
    ``Feedback`` K numbers of pulls ``settled``; one number for ``Anonymous``), then the last arm, one-hot (K numbers,
    all 0 after ``reset``), then ``t / T``. It is what is known before the next round.

    ``info`` has the ``observation`` as a policy's ``update`` takes it, the ``regret`` so far and ``final_observation``.
    ``terminated`` is always false; ``truncated`` is true after round T. A step after that, or with an arm that is none
    where that cannot be seen (inside jit), has a reward and a regret of NaN.

    Args:
        num_arms: number of arms K.
        horizon: number of rounds T.
        observes: what is seen: ``Conversions``, ``Feedback`` or ``Anonymous``; or a policy, to see what it would (also
            a policy's ``wait`` and ``windows`` then apply).
        reward: ``"arrivals"``: the sum of the rewards that become known; ``"gap"``: minus the gap of the arm, the
            regret of the round, which is known at once to nobody but the trainer.
        auto_reset: begin a new run, on a tape of ``step``'s key, when one ends, as gymnax's environments do; ``obs`` is
            then the first of the new run, and ``info["final_observation"]`` the last of the old one.
        default_instance: the instance where none is given (gymnax's ``default_params``).

    Raises:
        TypeError, ValueError: an argument that is not what it should be.
    """

    observer: Policy
    default_instance: Instance | None
    num_arms: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    reward: RewardKind = eqx.field(static=True)
    auto_reset: bool = eqx.field(static=True)

    def __init__(
        self,
        num_arms: int,
        horizon: int,
        *,
        observes: type[Observation] | Policy = Conversions,
        reward: RewardKind = "arrivals",
        auto_reset: bool = False,
        default_instance: Instance | None = None,
    ):
        self.num_arms = _checks.whole_number("Environment: num_arms", num_arms, 1, 2**24, "give the number of arms")
        mend = "give the number of rounds"
        self.horizon = _checks.whole_number("Environment: horizon", horizon, 1, MAX_HORIZON, mend)
        if isinstance(observes, Policy):
            self.observer = observes
        elif observes in OBSERVATIONS and observes is not ConversionsByPull:
            self.observer = Onlooker(observes)
        else:
            raise TypeError(
                "Environment: observes must be Conversions, Feedback, Anonymous or a policy, got "
                f"{observes!r}; for ConversionsByPull give the policy, which has the windows"
            )
        if reward not in ("arrivals", "gap"):
            raise ValueError(f"Environment: reward must be 'arrivals' or 'gap', got {reward!r}")
        self.reward, self.auto_reset, self.default_instance = reward, bool(auto_reset), default_instance

    @property
    def observes(self) -> type[Observation]:
        return self.observer.observes

    def reset(self, key: Any, instance: Instance | None = None) -> tuple[Float[Array, " obs"], EnvironmentState]:
        """Before round 1 of the run that ``simulate`` makes of this key.

        Raises:
            TypeError, ValueError: an instance that is not one, or has another number of arms.
        """
        instance = self._checked(instance)
        words = tape.words(key)
        state = EnvironmentState(
            key=words,
            t=jnp.ones((), jnp.int32),
            pulls=jnp.zeros(self.num_arms, jnp.int32),
            pending=Pending.empty(self.observer, self.horizon, self.num_arms, instance.reward.binary),
        )
        state = depending_on((words, instance), state)
        nothing = jnp.asarray(self.num_arms, jnp.int32)
        return self._array(state.pending.arriving(self.observes, state.t - 1), nothing, state.t), state

    def step(self, key: Any, state: EnvironmentState, arm: Any, instance: Instance | None = None) -> Transition:
        """Pull ``arm`` in the present round.

        Args:
            key: not used, but by ``auto_reset``.
            state: of the last step, or of ``reset``.
            arm: 0..K-1.
            instance: the one of ``reset``.

        Raises:
            TypeError, ValueError: an arm or instance that is not one.
        """
        problem: Instance = path_only(self._checked(instance))
        arm = _checks.integers("Environment: arm", arm, 0, self.num_arms - 1, "give an arm's number")
        if arm.ndim != 0:
            raise ValueError(f"Environment: arm must be a single number, got shape {arm.shape}; use jax.vmap")
        t = state.t
        valid = (arm >= 0) & (arm < self.num_arms) & (t <= self.horizon)
        arm = jnp.where(valid, arm, self.num_arms)
        paid, delay = draw_from_tape(state.key, problem)(t, arm, pick(state.pulls, arm))
        pulls = state.pulls + one_hot(arm, self.num_arms)
        pending = state.pending.add(self.observer, t, Pull(arm=arm, reward=paid, delay=delay), pulls)
        seen = pending.arriving(self.observes, t + 1)
        obs = self._array(seen, arm, t + 1)
        reward = self._sum(seen) if self.reward == "arrivals" else -pick(problem.gaps, arm)
        reward = jnp.where(valid, reward, jnp.nan)
        regret = pseudo_regret(pulls[None], t[None], problem)[0]
        after = EnvironmentState(key=state.key, t=t + 1, pulls=pulls, pending=pending)
        truncated = t >= self.horizon
        info = {"observation": seen, "regret": regret, "final_observation": obs}
        if self.auto_reset:
            again = self.reset(key, problem)
            obs, after = jax.tree.map(lambda new, old: jnp.where(truncated, new, old), again, (obs, after))
        return obs, after, reward, jnp.zeros_like(truncated), truncated, info

    def _array(self, seen: Observation, arm: Int[Array, ""], t: Int[Array, ""]) -> Float[Array, " obs"]:
        fields = (seen.reward[None],) if isinstance(seen, Anonymous) else (seen.rewards,)
        if isinstance(seen, Feedback):
            fields = (*fields, seen.settled)
        progress = ((t - 1).astype(float) / self.horizon)[None]
        return jnp.concatenate([*(x.astype(float) for x in (*fields, one_hot(arm, self.num_arms))), progress])

    def _sum(self, seen: Observation) -> Float[Array, ""]:
        return (seen.reward if isinstance(seen, Anonymous) else jnp.sum(seen.rewards)).astype(float)

    def _checked(self, instance: Any) -> Instance:
        instance = self.default_instance if instance is None else instance
        if not isinstance(instance, Instance):
            raise TypeError(f"Environment: instance must be a jaxbandit.Instance, got {instance!r}")
        if instance.num_arms != self.num_arms:
            raise ValueError(f"Environment: instance has {instance.num_arms} arms, num_arms is {self.num_arms}")
        return instance

    # What gymnax's wrappers ask for.

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return self is other

    @property
    def name(self) -> str:
        return "jaxbandit"

    @property
    def num_actions(self) -> int:
        return self.num_arms

    @property
    def default_params(self) -> Instance | None:
        return self.default_instance

    def action_space(self, params: Any = None) -> Any:
        """gymnax's ``Discrete(K)``. Raises ImportError if gymnax is not installed."""
        return _spaces().Discrete(self.num_arms)

    def observation_space(self, params: Any = None) -> Any:
        """gymnax's ``Box`` from 0 to T. Raises ImportError if gymnax is not installed."""
        entries = {Anonymous: 1, Feedback: 2 * self.num_arms}.get(self.observes, self.num_arms) + self.num_arms + 1
        return _spaces().Box(0.0, float(self.horizon), (entries,), jnp.result_type(float))


def _spaces() -> Any:
    try:
        from gymnax.environments import spaces
    except ImportError as error:
        raise ImportError("spaces are gymnax's: pip install gymnax") from error
    return spaces


def uniform_instance(
    key: Any,
    num_arms: int,
    *,
    means: tuple[float, float] = (0.0, 1.0),
    mean_delays: tuple[float, float] = (0.0, 50.0),
) -> Instance:
    """An instance drawn at random: each arm's mean uniform in ``means``, its delays geometric with a mean uniform in
    ``mean_delays``, independently.

    Any function of a key that gives an instance is a prior; this is one: ``partial(uniform_instance, num_arms=5)``.
    Works under ``jit`` and ``vmap``.

    Raises:
        ValueError: means outside [0, 1], mean delays that are not finite and >= 0, the lower end above the upper one.
    """
    for name, ends, rule in (("means", means, "in [0, 1]"), ("mean_delays", mean_delays, "finite and >= 0")):
        if not ends[0] <= ends[1]:
            raise ValueError(f"uniform_instance: {name} must be (low, high), got {ends!r}")
        _checks.floats(f"uniform_instance: {name}", ends, rule, "give (low, high)")
    num_arms = _checks.whole_number("uniform_instance: num_arms", num_arms, 1, 2**24, "give the number of arms")
    words = tape.words(key)
    for_means, for_delays = jax.random.split(jax.random.wrap_key_data(words, impl="threefry2x32"))
    mean = jax.random.uniform(for_means, (num_arms,), minval=means[0], maxval=means[1])
    delay = jax.random.uniform(for_delays, (num_arms,), minval=mean_delays[0], maxval=mean_delays[1])
    return Instance(reward=Bernoulli(mean), delay=Geometric(delay))
