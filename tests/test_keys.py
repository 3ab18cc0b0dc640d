"""Keys of every kind are taken wherever a key is taken, and give the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from tests.examples import instance

KEYS = {
    "typed": lambda: jax.random.key(3),
    "raw": lambda: jax.random.PRNGKey(3),
    "int": lambda: 3,
    "numpy": lambda: np.int64(3),
    "array": lambda: jnp.asarray(3, jnp.int32),
}


def final(key):
    return jb.simulate(key, instance(), jb.UCB1(), horizon=40).regret


@pytest.mark.parametrize("kind", [*KEYS, "rbg"])
def test_fold_in_gives_the_key_of_a_run_of_a_batch(kind):
    key = jax.random.key(3, impl="rbg") if kind == "rbg" else KEYS[kind]()
    batch = jb.simulate_batch(key, instance(), jb.UCB1(), horizon=40, seeds=5).regret
    np.testing.assert_array_equal(final(jb.fold_in(key, 3)), batch[3])
    seeds = jnp.arange(5, dtype=jnp.int32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda i: final(jb.fold_in(key, i))))(seeds), batch)


def test_a_typed_key_stays_typed_and_any_other_becomes_raw():
    typed = jb.fold_in(jax.random.key(3), 7)
    assert typed == jax.random.fold_in(jax.random.key(3), 7)
    for kind in ("raw", "int", "numpy", "array"):
        folded = jb.fold_in(KEYS[kind](), np.int32(7))
        np.testing.assert_array_equal(folded, jax.random.key_data(typed))
    np.testing.assert_array_equal(jax.jit(jb.fold_in)(3, 7), jax.random.key_data(typed))


@pytest.mark.parametrize("kind", KEYS)
def test_a_whole_number_is_a_key_everywhere(kind):
    key, one, policy = KEYS[kind](), instance(), jb.UCB1()
    calls = [
        lambda key: jb.simulate(key, one, policy, horizon=9).regret,
        lambda key: jb.trace(key, one, policy, horizon=9).arms,
        lambda key: jb.simulate_batch(key, one, policy, horizon=9, seeds=3).regret,
        lambda key: jb.expected_regret(one, policy, key, horizon=9, seeds=3),
        lambda key: jb.regret_and_gradient(one, policy, key, horizon=9, seeds=3, wrt=lambda i, p: i.reward.mean).value,
        lambda key: one.delay.sample(key, (4,)),
        lambda key: one.reward.sample(key, (4,)),
    ]
    for call in calls:
        np.testing.assert_array_equal(call(key), call(jax.random.key(3)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jb.fold_in(0, -1), ValueError, "fold_in: i must be an integer from 0"),
        (lambda: jb.fold_in(0, 1.5), TypeError, "fold_in: i must be an integer"),
        (lambda: jb.fold_in(2**32, 1), ValueError, "key must be an integer from 0"),
        (lambda: jb.fold_in("0", 1), TypeError, "key must be an integer"),
        (lambda: jax.jit(lambda i: jb.fold_in(0, i))(1.5), TypeError, "fold_in: i must be a whole number"),
    ],
)
def test_what_is_no_key_or_number_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
