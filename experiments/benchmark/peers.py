"""The job of ``simulate_batch`` for PatientBandits, done three other ways: what a benchmark compares the engine with.

All three play ``S/N + sqrt(2 L / N) + 2 N^-min(alpha, 1/2)`` with ``L = log(2 K T^3)`` (Manegueu et al., 2020,
Algorithm 1), round-robin first, ties to the fewest pulls and then to the lowest arm. Rewards are Bernoulli, delays
``ceil(U^(-1/tail_index))``: the reward of a pull in round s is known from the start of round s + max(D, 1) on, and
what would be known only after round T never is. Each program is written as a good user of its tool would write it, has
its own random numbers, uses nothing of the engine and returns the pulls of every arm after round T, ``[seeds, K]``.
"""

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

NO_ARM = np.int32(2**31 - 1)
"""More than any arm has pulls; ``T K`` must stay below it."""
MANY_ARMS = 16
"""From here on ``numba_loop`` is faster with a list of arrivals than with a look at every arm's calendar entry."""

Numbers = Sequence[float] | np.ndarray


@partial(jax.jit, static_argnames=("horizon", "seeds"))
def obvious_jax(
    key: Array, means: Any, tail_indexes: Any, alpha: Any, horizon: int, seeds: int
) -> Int[Array, "seeds K"]:
    """``jit(vmap(scan))`` as the JAX documentation teaches it: ``jax.random``, a calendar of floats, every bonus anew.

    Fair because it is compiled as a whole, once per horizon and number of seeds, draws no more than it uses, and keeps
    its calendar in place: written, read, never cleared.
    """
    means, tail_indexes = jnp.asarray(means, jnp.float32), jnp.asarray(tail_indexes, jnp.float32)
    num_arms = means.shape[0]
    log_term = math.log(2 * num_arms) + 3 * math.log(horizon)

    def step(key: Array, carry: tuple[Array, Array, Array], t: Array) -> tuple[tuple[Array, Array, Array], None]:
        calendar, pulls, rewards = carry
        rewards = rewards + calendar[t]
        n = jnp.maximum(pulls, 1).astype(jnp.float32)
        index = rewards / n + jnp.sqrt(2 * log_term / n) + 2 * n ** -jnp.minimum(alpha, 0.5)
        best = jnp.argmin(jnp.where(index == jnp.max(index), pulls, NO_ARM)).astype(jnp.int32)
        arm = jnp.where(t <= num_arms, t - 1, best)
        for_reward, for_delay = jax.random.fold_in(key, 2 * t), jax.random.fold_in(key, 2 * t + 1)
        reward = (jax.random.uniform(for_reward) < means[arm]).astype(jnp.float32)
        # 1 - u lies in (0, 1]; the delay is capped as a float, because a cast of a larger one to an integer would wrap.
        delay = jnp.ceil((1 - jax.random.uniform(for_delay)) ** (-1 / tail_indexes[arm]))
        due = t + jnp.clip(delay, 1, horizon + 1).astype(jnp.int32)
        return (calendar.at[due, arm].add(reward, mode="drop"), pulls.at[arm].add(1), rewards), None

    def run(key: Array) -> Int[Array, " K"]:
        start = (jnp.zeros((horizon + 1, num_arms)), jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms))
        (_, pulls, _), _ = jax.lax.scan(partial(step, key), start, jnp.arange(1, horizon + 1, dtype=jnp.int32))
        return pulls

    return jax.vmap(run)(jax.random.split(key, seeds))


@np.errstate(over="ignore")  # a delay that is infinite is one that is never seen
def numpy_vectorised(
    rng: np.random.Generator, means: Numbers, tail_indexes: Numbers, alpha: float, horizon: int, seeds: int
) -> Int[np.ndarray, "seeds K"]:
    """NumPy, all seeds side by side, a Python loop over the rounds.

    Fair because large arrays are allocated once, seeds lie next to each other in memory, 1/n and the bonus come from
    tables, only rewards of 1 are given a delay, and filing them needs no ``np.add.at``: a run files at most one
    a round, so that no two of a round share an entry.
    """
    mean, exponent = np.asarray(means, np.float32), -1 / np.asarray(tail_indexes, float)
    num_arms, inverse, bonus = len(mean), *_tables(len(mean), alpha, horizon)
    calendar = np.zeros((horizon + 2, num_arms * seeds), np.min_scalar_type(horizon))
    flat_calendar = calendar.reshape(-1)
    rewards, index, inverses, bonuses = (np.zeros((num_arms, seeds), np.float32) for _ in range(4))
    tied = np.empty((num_arms, seeds), bool)
    # Pulls and arm in one number, whose smallest is the arm with the fewest pulls and of several the lowest.
    order = np.repeat(np.arange(num_arms, dtype=np.int64)[:, None], seeds, axis=1)
    runs, uniform, best = np.arange(seeds), np.empty(seeds, np.float32), np.empty(seeds, np.float32)
    for t in range(1, horizon + 1):
        rewards += calendar[t].reshape(num_arms, seeds)
        if t <= num_arms:
            arm = np.full(seeds, t - 1)
        else:
            np.multiply(rewards, inverses, out=index)
            index += bonuses
            np.equal(index, index.max(axis=0, out=best), out=tied)
            arm = np.min(order, axis=0, where=tied, initial=NO_ARM) % num_arms
        pulled = arm * seeds + runs
        n = order.reshape(-1)[pulled] + num_arms
        order.reshape(-1)[pulled] = n
        n //= num_arms
        inverses.reshape(-1)[pulled], bonuses.reshape(-1)[pulled] = inverse[n], bonus[n]
        won = np.flatnonzero(rng.random(out=uniform, dtype=np.float32) < mean[arm])
        delay = np.ceil((1 - rng.random(won.size)) ** exponent[arm[won]])
        due = t + np.clip(delay, 1, horizon + 1 - t).astype(np.int64)
        flat_calendar[due * (num_arms * seeds) + pulled[won]] += 1
    return (order // num_arms).T.astype(np.int32)


def _tables(num_arms: int, alpha: float, horizon: int) -> tuple[Float[np.ndarray, " T+1"], Float[np.ndarray, " T+1"]]:
    """``1/n`` and the bonus of an arm with n pulls, n = 0..T (at 0 both are that of 1: nobody asks)."""
    n = np.maximum(np.arange(horizon + 1), 1)
    log_term = math.log(2 * num_arms) + 3 * math.log(horizon)
    bonus = np.sqrt(2 * log_term / n) + 2 * n ** -min(alpha, 0.5)
    return (1 / n).astype(np.float32), bonus.astype(np.float32)


def numba_loop(
    seed: int, means: Numbers, tail_indexes: Numbers, alpha: float, horizon: int, seeds: int
) -> Int[np.ndarray, "seeds K"]:
    """Numba: machine code for one run, a thread on every core, each with memory of its own that it uses again.

    Fair because it is what a tuned program would be: tables of 1/n and the bonus, one 64-bit draw a round (SplitMix64;
    half for the reward, half for the delay), single precision like the engine's, no power where the reward is 0, small
    integers in the calendar, and with many arms a list of arrivals instead, so that no idle arm is scored again. The
    first call compiles.

    Raises:
        ImportError: numba is not installed.
    """
    few, many, workers = _numba()
    mean, exponent = np.asarray(means, float), (-1 / np.asarray(tail_indexes, float)).astype(np.float32)
    threshold = np.round(mean * 2**32).astype(np.uint64)
    pulls = np.empty((seeds, len(mean)), np.int32)
    arguments = (np.uint64(seed), threshold, exponent, *_tables(len(mean), alpha, horizon))
    if len(mean) < MANY_ARMS:
        calendars = np.zeros((workers, horizon + 2, len(mean)), np.uint16 if horizon < 2**16 else np.uint32)
        few(*arguments, calendars, pulls)
    else:
        many(*arguments, np.zeros((workers, 3, horizon + 2), np.int32), pulls)
    return pulls


@functools.cache
def _numba() -> tuple[Callable[..., None], Callable[..., None], int]:
    """The compiled loops for few and for many arms, and the number of threads."""
    try:
        import numba
    except ImportError as error:
        raise ImportError("numba_loop needs numba, which is not installed: pip install 'jaxbandit[dev]'") from error
    mix, due = numba.njit(inline="always")(_mix), numba.njit(inline="always")(_due)
    return _few_arms(numba, mix, due), _many_arms(numba, mix, due), numba.get_num_threads()


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
HALF, LOW_HALF, SCALE, ONE = np.uint64(32), np.uint64(2**32 - 1), np.float32(2.0**-32), np.float32(1)
ORDERED = {"nnan", "nsz"}  # lets the compiler vectorise a maximum; no score is NaN, so that no result changes


def _mix(z: Any) -> Any:
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014), whose state only counts up by ``GOLDEN``."""
    z = (z ^ (z >> SHIFTS[0])) * FIRST
    z = (z ^ (z >> SHIFTS[1])) * SECOND
    return z ^ (z >> SHIFTS[2])


def _due(bits: Any, t: int, horizon: int, threshold: Any, exponent: Any) -> int:
    """The round from which the reward of a pull in round t is known: 0 if there is none or never."""
    if (bits >> HALF) >= threshold:
        return 0
    delay = np.ceil(((np.float32(bits & LOW_HALF) + ONE) * SCALE) ** exponent)
    return t + max(int(delay), 1) if delay <= horizon - t else 0


def _few_arms(numba: Any, mix: Any, due: Any) -> Callable[..., None]:
    """All arms are scored every round; arrivals lie in a calendar with a row a round."""
    prange = numba.prange

    def loop(seed, threshold, exponent, inverse, bonus, calendars, result):
        workers, horizon, num_arms = len(calendars), len(bonus) - 1, len(threshold)
        for worker in prange(workers):
            calendar, pulls = calendars[worker], np.zeros(num_arms, np.int32)
            rewards, scores = np.zeros(num_arms, np.float32), np.zeros(num_arms, np.float32)
            inverses, bonuses = np.zeros(num_arms, np.float32), np.zeros(num_arms, np.float32)
            for run in range(worker, len(result), workers):
                calendar[:], pulls[:], rewards[:], inverses[:], bonuses[:] = 0, 0, 0, 0, 0
                state = mix(seed + np.uint64(run) * FIRST)
                for t in range(1, horizon + 1):
                    best, row = np.float32(-1), calendar[t]
                    for i in range(num_arms):
                        rewards[i] += np.float32(row[i])
                        scores[i] = rewards[i] * inverses[i] + bonuses[i]
                        best = max(best, scores[i])
                    arm, fewest = t - 1, NO_ARM
                    if t > num_arms:
                        for i in range(num_arms):
                            if scores[i] == best and pulls[i] < fewest:
                                arm, fewest = i, pulls[i]
                    pulls[arm] += 1
                    inverses[arm], bonuses[arm] = inverse[pulls[arm]], bonus[pulls[arm]]
                    state += GOLDEN
                    known = due(mix(state), t, horizon, threshold[arm], exponent[arm])
                    if known > 0:
                        calendar[known, arm] += 1
                result[run] = pulls

    return numba.njit(parallel=True, fastmath=ORDERED)(loop)


def _many_arms(numba: Any, mix: Any, due: Any) -> Callable[..., None]:
    """Only arms that were pulled or rewarded are scored; the arrivals of a round are a linked list of pulls."""
    prange = numba.prange

    def loop(seed, threshold, exponent, inverse, bonus, lists, result):
        workers, horizon, num_arms = len(lists), len(bonus) - 1, len(threshold)
        for worker in prange(workers):
            first, following, pulled = lists[worker, 0], lists[worker, 1], lists[worker, 2]
            pulls, order = np.zeros(num_arms, np.int32), np.zeros(num_arms, np.int32)
            rewards, scores = np.zeros(num_arms, np.float32), np.zeros(num_arms, np.float32)
            for run in range(worker, len(result), workers):
                first[:], pulls[:], rewards[:] = 0, 0, 0
                for i in range(num_arms):
                    order[i] = i
                state = mix(seed + np.uint64(run) * FIRST)
                for t in range(1, horizon + 1):
                    s = first[t]
                    while s > 0:
                        i = pulled[s]
                        rewards[i] += ONE
                        scores[i] = rewards[i] * inverse[pulls[i]] + bonus[pulls[i]]
                        s = following[s]
                    arm = t - 1
                    if t > num_arms:
                        best, lowest = np.float32(-1), NO_ARM
                        for i in range(num_arms):
                            best = max(best, scores[i])
                        for i in range(num_arms):
                            lowest = min(lowest, order[i] if scores[i] == best else NO_ARM)
                        arm = int(lowest) % num_arms
                    pulls[arm] += 1
                    order[arm] += num_arms
                    scores[arm] = rewards[arm] * inverse[pulls[arm]] + bonus[pulls[arm]]
                    state += GOLDEN
                    known = due(mix(state), t, horizon, threshold[arm], exponent[arm])
                    if known > 0:
                        pulled[t], following[t], first[known] = arm, first[known], t
                result[run] = pulls

    return numba.njit(parallel=True, fastmath=ORDERED)(loop)
