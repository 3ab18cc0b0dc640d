"""Effective pulls against the sum that defines them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import NEVER
from jaxbandit.policies.effective import CHUNK, ERA, EffectivePulls

HORIZON = 3 * ERA + CHUNK + 3
LAWS = {
    "tail index 0.1": lambda: jb.Pareto(0.1),
    "tail index 0.7": lambda: jb.Pareto(0.7),
    "nothing before round 1500": lambda: jb.Constant(1500),
    "some 1000 rounds": lambda: jb.LogNormal(1000.0, 0.7),
    "next to nothing in the first chunk": lambda: jb.LogNormal(1500.0, 0.6),
    "a fifth is lost": lambda: jb.Lossy(jb.Geometric(100.0), 0.2),
}
WINDOWS = [None, 1, 5, 8, 9, 200, 1500]


def effective(arms, law: jb.DelayLaw, window, *, censored: bool):
    """Ñ at the start of every round."""

    def step(pulls, t):
        return pulls.observe(t, arms[t - 1], window, law), pulls.at(t, window, law)

    start = EffectivePulls.empty(3, len(arms), censored=censored)
    return jax.lax.scan(step, start, jnp.arange(1, len(arms) + 1, dtype=jnp.int32))[1]


def defined(arms, law: jb.DelayLaw, window: int | None) -> np.ndarray:
    ages = np.arange(1, len(arms))
    ages = jnp.asarray(ages if window is None else np.minimum(ages, window), jnp.int32)
    weights = np.asarray(jax.jit(lambda law, ages: jax.vmap(law.cdf)(ages))(law, ages), float)
    weights = np.broadcast_to(weights.reshape(len(ages), -1), (len(ages), 3))
    weights = np.concatenate([np.zeros((1, 3)), weights])
    return np.stack([np.convolve(arms == arm, weights[:, arm])[: len(arms)] for arm in range(3)], axis=1)


def arms() -> np.ndarray:
    """One arm is pulled nearly always, one only once: just long enough before an era to be transformed."""
    drawn = np.random.default_rng(0).choice(2, HORIZON, p=[0.98, 0.02]).astype(np.int32)
    drawn[ERA - CHUNK - 5] = 2
    return drawn


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("window", WINDOWS)
def test_effective_pulls_are_the_sum_that_defines_them(law, window):
    """To some ulps, of rarely pulled arms too, and 0 where it is 0: an arm is pulled at once while it is.

    A probability far below 1e-4 is itself known to more ulps only.
    """
    pulled, believed = arms(), LAWS[law]()
    threshold = jnp.asarray(NEVER if window is None else window, jnp.int32)
    found = jax.jit(partial(effective, censored=window is not None))(jnp.asarray(pulled), believed, threshold)
    exact = defined(pulled, believed, window)
    eps = 16 * jnp.finfo(found.dtype).eps
    np.testing.assert_allclose(found, exact, rtol=eps, atol=1e-4 * eps)
    assert not np.asarray(found)[exact == 0].any()


PER_ARM = {
    "tail indexes": lambda: jb.Pareto([0.1, 0.7, 2.0]),
    "families": lambda: jb.PerArm([jb.Constant(1500), jb.Pareto(0.1), jb.Lossy(jb.Geometric(100.0), 0.2)]),
}


@pytest.mark.parametrize("law", PER_ARM)
@pytest.mark.parametrize("window", [None, 1, 8, 200])
def test_with_a_law_an_arm_each_arm_has_the_sum_of_its_own(law, window):
    pulled, believed = arms(), PER_ARM[law]()
    threshold = jnp.asarray(NEVER if window is None else window, jnp.int32)
    found = jax.jit(partial(effective, censored=window is not None))(jnp.asarray(pulled), believed, threshold)
    exact = defined(pulled, believed, window)
    eps = 16 * jnp.finfo(found.dtype).eps
    np.testing.assert_allclose(found, exact, rtol=eps, atol=1e-4 * eps)
    assert not np.asarray(found)[exact == 0].any()


def test_the_structure_of_a_policy_does_not_depend_on_its_numbers():
    """A sweep may pass through equal laws."""
    equal, other = (jax.tree.structure(jb.DUCB(5, jb.Pareto(tails))) for tails in ([0.7, 0.7], [0.7, 0.6]))
    assert equal == other


@pytest.mark.parametrize("window", [None, 20])
def test_ducb_with_equal_laws_an_arm_plays_as_with_one(window):
    problem = jb.Instance(jb.Bernoulli([0.2, 0.5, 0.6]), jb.Pareto([0.3, 1.0, 2.5]))
    laws = (jb.Pareto(0.7), jb.Pareto([0.7, 0.7, 0.7]), jb.PerArm([jb.Pareto(0.7)] * 3))
    runs = [jb.simulate_batch(0, problem, jb.DKLUCB(window, law), horizon=300, seeds=20) for law in laws]
    for other in runs[1:]:
        jax.tree.map(np.testing.assert_array_equal, other, runs[0])


def test_laws_and_windows_can_be_batched():
    pulled = jnp.asarray(arms())
    laws = jb.Pareto(jnp.array([0.1, 0.7]))
    uncensored = jax.vmap(lambda law: effective(pulled, law, jnp.asarray(NEVER, jnp.int32), censored=False))(laws)
    windows = jnp.array([5, 300], jnp.int32)
    censored = jax.vmap(lambda window: effective(pulled, jb.Pareto(0.7), window, censored=True))(windows)
    eps = 16 * jnp.finfo(uncensored.dtype).eps
    for i, tail_index in enumerate((0.1, 0.7)):
        np.testing.assert_allclose(uncensored[i], defined(arms(), jb.Pareto(tail_index), None), rtol=eps, atol=0)
        np.testing.assert_allclose(censored[i], defined(arms(), jb.Pareto(0.7), int(windows[i])), rtol=eps, atol=0)


def test_without_a_window_long_horizons_use_fourier_transforms():
    """The pulls of earlier eras are convolved by Fourier transforms, once an era."""

    def transforms(horizon: int) -> int:
        start = jax.eval_shape(partial(EffectivePulls.empty, 2, horizon, censored=False))
        observe = lambda pulls, t: pulls.observe(t, t * 0, jnp.asarray(NEVER, jnp.int32), jb.Pareto(0.7))  # noqa: E731
        return jax.jit(observe).lower(start, jax.ShapeDtypeStruct((), jnp.int32)).as_text().count("stablehlo.fft")

    assert transforms(ERA) == 0
    assert transforms(ERA + 1) == transforms(10 * ERA) > 0
