"""The prior that policies are trained on, and what they are put beside."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import jaxbandit as jb

NUM_ARMS = 3
MEANS = (0.05, 0.95)
TAIL_INDEXES = (0.3, 1.0)
LOSS = (0.0, 0.3)
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5)
BONUS_SCALES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
BIAS_SCALES = (0.0, 0.1, 0.3, 1.0)
AT_ONCE = 500  # runs that are in memory together

PolicyFor = Callable[[jb.Instance], jb.Policy]


def prior(key: Any) -> jb.Instance:
    """Means, tail indexes and shares of lost rewards are uniform, and independent from arm to arm."""
    ranges = (MEANS, TAIL_INDEXES, LOSS)
    mean, tail_index, loss = (
        jax.random.uniform(one, (NUM_ARMS,), minval=low, maxval=high)
        for one, (low, high) in zip(jax.random.split(key, 3), ranges, strict=True)
    )
    return jb.Instance(reward=jb.Bernoulli(mean), delay=jb.Lossy(jb.Pareto(tail_index), loss))


def instances(key: Any, count: int) -> jb.Instance:
    """With a leading axis in the laws' parameters, as ``jb.expected_regret`` takes a prior."""
    return jax.vmap(prior)(jax.random.split(key, count))


def regrets(policy: PolicyFor, key: Any, count: int, horizon: int) -> np.ndarray:
    """Regret on each of ``count`` instances of the prior, one run each: the same luck for every policy."""

    @jax.jit
    def all_runs(keys: Any) -> Any:
        def one(now: Any) -> Any:
            instance = prior(now[0])
            return jb.simulate(now[1], instance, policy(instance), horizon=horizon, checkpoints=[horizon]).regret[-1]

        return jax.lax.map(one, keys, batch_size=AT_ONCE)

    for_instances, for_runs = jax.random.split(key)
    return np.asarray(all_runs((jax.random.split(for_instances, count), jax.random.split(for_runs, count))))


def patient_bandits(constants: Any) -> jb.PatientBandits:
    """Of ᾱ, the bonus scale and the bias scale."""
    return jb.PatientBandits(constants[0], bonus_scale=constants[1], bias_scale=constants[2])


def tuned_constants(key: Any, count: int, horizon: int) -> list[float]:
    """The best constants of PatientBandits from a grid, on ``count`` instances of the prior."""
    grid = np.array(list(itertools.product(ALPHAS, BONUS_SCALES, BIAS_SCALES)))

    @jax.jit
    def mean_regrets(grid: Any, key: Any) -> Any:
        problems, words = instances(key, count), jax.random.fold_in(key, 1)

        def one(constants: Any) -> Any:
            return jb.expected_regret(problems, patient_bandits(constants), words, horizon=horizon, seeds=1)

        return jax.lax.map(one, grid)

    return grid[int(np.argmin(mean_regrets(grid, key)))].tolist()


def told_nothing(constants: list[float]) -> Mapping[str, PolicyFor]:
    """Policies that are told nothing of an instance's delays."""
    return {
        "UCB1": lambda _: jb.UCB1(),
        "KL-UCB": lambda _: jb.KLUCB(),
        "Thompson": lambda _: jb.Thompson(),
        "PatientBandits, tuned": lambda _: patient_bandits(constants),
    }


def told_laws() -> Mapping[str, PolicyFor]:
    """Policies that are told a law: of the middle of the prior, or of each arm, its losses included."""
    middle = jb.Lossy(jb.Pareto(float(np.mean(TAIL_INDEXES))), float(np.mean(LOSS)))
    return {
        "D-UCB, one law": lambda _: jb.DUCB(None, middle),
        "D-UCB, each arm's law": lambda instance: jb.DUCB(None, instance.delay),
        "Thompson, each arm's law": lambda instance: jb.CorrectedThompson(cdf=instance.delay, window=None),
    }
