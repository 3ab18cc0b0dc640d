"""The random tape."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.engine import tape
from tests.examples import refused


def words(arm: int, n: int, key: int = 3) -> np.ndarray:
    return np.asarray(jnp.stack(tape.threefry(tape.words(key), jnp.int32(arm), jnp.int32(n))))


@pytest.mark.parametrize("n", [0, 1, 77, 10**6, 2**31 - 1])
def test_the_words_of_arm_0_are_those_of_fold_in(n):
    np.testing.assert_array_equal(words(0, n), jax.random.key_data(jax.random.fold_in(jax.random.key(3), n)))


@pytest.mark.parametrize("arm", [1, 2, 1000, 2**31 - 1])
def test_the_words_of_any_arm_are_threefry_of_arm_and_pull(arm):
    key = jax.random.key_data(jax.random.key(3))
    for n in (0, 5, 10**6):
        expected = jax.extend.random.threefry_2x32(key, jnp.array([arm, n], jnp.uint32))
        np.testing.assert_array_equal(words(arm, n), expected)


def test_a_seed_of_a_batch_is_fold_in():
    key = jax.random.key(9)
    np.testing.assert_array_equal(
        tape.seed_words(tape.words(key), jnp.int32(41)), jax.random.key_data(jax.random.fold_in(key, 41))
    )


def test_uniforms_lie_in_the_half_open_interval_and_keep_every_small_word():
    extremes = jnp.array([0, 1, 2, 2**20, 2**32 - 2, 2**32 - 1], jnp.uint32)
    u = np.asarray(tape.to_uniform(extremes), float)
    np.testing.assert_array_equal(u[:4], np.array([1, 2, 3, 2**20 + 1]) * 2.0**-32)
    assert u.max() == 1


def test_uniforms_are_uniform_and_uncorrelated():
    count = 200_000
    draw = jax.jit(jax.vmap(lambda n: jnp.stack(tape.uniforms(tape.words(1), n % 7, n // 7))))
    u = np.asarray(draw(jnp.arange(count, dtype=jnp.int32)), float)
    assert (np.abs(u.mean(axis=0) - 0.5) < 5 * np.sqrt(1 / 12 / count)).all()
    for column in (u[:, 0], u[:, 1]):
        gap = np.abs(np.sort(column) - np.arange(1, count + 1) / count).max()
        assert gap < 2.2 / np.sqrt(count)  # Kolmogorov: exceeded once in 7000 times
    assert abs(np.corrcoef(u.T)[0, 1]) < 5 / np.sqrt(count)


def test_no_two_streams_of_a_large_batch_are_the_same():
    seeds = jax.jit(jax.vmap(lambda i: tape.seed_words(tape.words(0), i)))(jnp.arange(10**6, dtype=jnp.int32))
    assert len(np.unique(np.asarray(seeds).view(np.uint64))) == 10**6


def test_the_policy_key_is_none_of_the_rewards():
    keys = {tuple(np.asarray(jax.random.key_data(tape.policy_key(tape.words(3), jnp.int32(t))))) for t in range(1, 50)}
    pulls = {tuple(words(arm, n)) for arm in range(10) for n in range(50)}
    assert len(keys) == 49
    assert not keys & pulls


def test_keys_may_be_typed_raw_or_whole_numbers():
    expected = jax.random.key_data(jax.random.key(5))
    for key in (5, np.int64(5), jnp.int32(5), jax.random.key(5), jax.random.PRNGKey(5), np.array([0, 5], np.uint32)):
        np.testing.assert_array_equal(tape.words(key), expected)
    np.testing.assert_array_equal(jax.jit(tape.words)(jnp.uint32(5)), expected)
    np.testing.assert_array_equal(tape.words(2**32 - 1), [0, 2**32 - 1])


def test_keys_of_another_generator_are_reduced_to_two_words():
    first = tape.words(jax.random.key(5, impl="rbg"))
    assert first.shape == (2,)
    assert not (np.asarray(first) == np.asarray(tape.words(jax.random.key(6, impl="rbg")))).all()


@pytest.mark.parametrize("key", [2**32, 2**40, -1])
def test_a_seed_that_does_not_fit_32_bits_is_refused(key):
    with refused(ValueError, "key must be an integer from 0 to 4294967295"):
        tape.words(key)


def test_a_traced_number_that_is_not_whole_is_refused():
    with refused(TypeError, "key must be a key or a whole number, got a traced float"):
        jax.jit(tape.words)(1.5)


def test_what_is_not_a_key_is_refused():
    for key in (1.5, "0", None, True):
        with refused(TypeError, "key must be an integer"):
            tape.words(key)
    for keys in (jax.random.split(jax.random.key(0), 3), np.zeros((4, 2), np.uint32)):
        with refused(ValueError, "key must be a single key"):
            tape.words(keys)
