"""Beta draws against their law, at fixed keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandit.policies import beta

DRAWS = 20_000
SMALL = [(0.5, 0.5), (0.5, 30.0), (1.0, 1.0), (1.0, 2.0), (3.0, 1.0), (2.5, 40.0)]
LARGE = [(300.0, 700.0), (1.0, 1e5), (1e6, 1e6)]


def draws(a: float, b: float) -> np.ndarray:
    """As many arms as draws, all of one law."""
    shapes = jnp.full(DRAWS, a), jnp.full(DRAWS, b)
    return np.asarray(jax.jit(beta.draw)(jax.random.key(0), *shapes), float)


@pytest.mark.parametrize(("a", "b"), [*SMALL, *LARGE])
def test_draws_follow_their_law(a, b):
    """Kolmogorov and Smirnov's distance at a level of 5 sigma; means and variances within 5 standard errors."""
    x, law = draws(a, b), stats.beta(a, b)
    assert stats.kstest(x, law.cdf).pvalue > 2 * stats.norm.sf(5)
    mean, variance, kurtosis = (float(m) for m in law.stats("mvk"))
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / DRAWS)
    assert abs(x.var() - variance) < 5 * variance * np.sqrt((kurtosis + 2) / DRAWS)


@pytest.mark.parametrize("shape", [1e-3, 1e-30, 1e30])
def test_extreme_shapes_give_numbers(shape):
    for a, b in ((shape, shape), (shape, 1.0), (1.0, shape)):
        x = draws(a, b)
        assert ((x >= 0) & (x <= 1)).all()


@pytest.mark.parametrize("shape", [1.0, 2.0, 100.0])
def test_proposals_fail_together_less_than_once_in_a_hundred_million(shape):
    """Of two gammas of shape 1, the worst case, a proposal is taken with probability 0.9518^2."""
    arms = jnp.arange(DRAWS, dtype=jnp.int32)
    u = beta.uniforms(jnp.zeros(2, jnp.uint32), jnp.int32(0), arms)
    *_, taken = beta.proposal(u, jnp.full(DRAWS, shape), jnp.full(DRAWS, shape))
    failed = 1 - float(jnp.mean(taken))
    worst = 1 - 0.9518**2
    assert failed < worst + 5 * np.sqrt(worst * (1 - worst) / DRAWS)
    assert worst**beta.PROPOSALS < 1e-8


def test_draws_do_not_depend_on_what_is_drawn_beside_them():
    keys = jax.random.split(jax.random.key(1), 50)
    a, b = jnp.array([1.0, 5.0, 0.7]), jnp.array([1.0, 2.0, 90.0])
    together = jax.jit(jax.vmap(beta.draw, (0, None, None)))(keys, a, b)
    for key, row in zip(keys[:10], together, strict=False):
        np.testing.assert_allclose(jax.jit(beta.draw)(key, a, b), row, rtol=16 * jnp.finfo(a.dtype).eps)


def test_a_draw_has_no_derivative():
    with pytest.raises(TypeError, match="a Beta draw has no derivative"):
        jax.jacfwd(lambda a: beta.draw(jax.random.key(0), a, jnp.ones(3)))(jnp.ones(3))
