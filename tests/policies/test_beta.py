"""Beta draws against their law, at fixed keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from jaxbandit.policies import beta
from tests.policies import gamma_quantiles

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


@pytest.mark.parametrize("shape", [1.0, 1.3, 2.0, 5.0, 30.0, 1e3, 1e6])
def test_the_quantiles_of_a_gamma_are_right_within_the_bound(shape):
    """Its distribution function at the quantile of a normal is the normal's; far out, the quantile is not far off."""
    z = np.linspace(-6.66, 6.66, 1001)  # as far as 32 bits reach
    log_x = np.asarray(jax.jit(beta.log_quantile)(jnp.asarray(z, float), jnp.full(z.shape, shape)), float)
    assert (np.diff(log_x) > 0).all()
    error = special.gammainc(shape, shape * np.exp(log_x)) - special.ndtr(z)
    assert np.abs(error).max() < beta.ERROR
    assert np.abs(log_x - gamma_quantiles.exact(np.full(z.shape, shape), z)).max() < np.log(1.08)


@pytest.mark.slow
def test_the_constants_are_those_of_the_fit():
    table = gamma_quantiles.fit()
    for i, row in enumerate(beta._LOG_QUANTILE):
        np.testing.assert_allclose(row, table[i, : len(row)], rtol=0, atol=1e-7)
        assert not table[i, len(row) :].any()


def test_draws_do_not_depend_on_what_is_drawn_beside_them():
    keys = jax.random.split(jax.random.key(1), 50)
    a, b = jnp.array([1.0, 5.0, 0.7]), jnp.array([1.0, 2.0, 90.0])
    together = jax.jit(jax.vmap(beta.draw, (0, None, None)))(keys, a, b)
    for key, row in zip(keys[:10], together, strict=False):
        np.testing.assert_allclose(jax.jit(beta.draw)(key, a, b), row, rtol=16 * jnp.finfo(a.dtype).eps)


@pytest.mark.parametrize("batched", [False, True])
def test_a_draw_has_the_derivative_of_its_quantiles(batched):
    """With respect to a shape a of 1: of X / (X + Y) as X moves along its quantile, which scipy gives."""
    a, b, h = jnp.array([1.5, 4.0]), jnp.array([3.0, 1.0]), 1e-4
    keys = jax.random.split(jax.random.key(0), 3)

    def derivatives(key):
        return jax.jacrev(lambda a: beta.draw(key, a, b))(a), jax.jacfwd(lambda a: beta.draw(key, a, b))(a)

    rows = jax.vmap(derivatives)(keys) if batched else [derivatives(key) for key in keys]
    for key, row in zip(keys, zip(*rows, strict=True) if batched else rows, strict=True):
        z, w = (np.asarray(n, float) for n in beta.normals(*beta.uniforms(jax.random.key_data(key), 0, 2)))
        shapes = [np.asarray(s, float) for s in (a + h, a - h, b)]
        up, down, y = (s * np.exp(gamma_quantiles.exact(s, n)) for s, n in zip(shapes, (z, z, w), strict=True))
        slope = (up / (up + y) - down / (down + y)) / (2 * h)
        for jacobian in row:
            np.testing.assert_allclose(jacobian, np.diag(slope), rtol=5e-3, atol=1e-5)
