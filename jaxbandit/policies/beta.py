"""Draws of Beta laws without a loop: from two normals, by a polynomial for the quantiles of a gamma.

``Beta(a, b) = X / (X + Y)`` of two gammas. A gamma of shape a >= 1 at the quantile of a normal z is
``a exp(L(z / sqrt(a), 1 / a))``, where L is smooth: Temme (1992) expands it in 1/a around ``p - p^2/6 + p^3/36 - ...``.
Here L is a polynomial fitted to the quantiles of all shapes from 1 to infinity at once
(``tests/policies/gamma_quantiles.py``): the distribution functions of X and Y are wrong by less than ``ERROR``
anywhere, and X itself by at most 8 % even where z is 6 or 7 standard deviations out. A shape a < 1 is drawn as that of
a + 1, times the power 1/a of a uniform.

A rejection (Marsaglia and Tsang, 2000) is exact, but among the thousands of runs of a batch some reject again and
again, and all wait for them: it takes ten times as long.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxbandit import _keys
from jaxbandit._layout import arm_by_arm

ERROR = 1e-5
"""Bound on the error of a gamma's distribution function."""

# Row i: the coefficients of p^i (1/a)^j for j = 0, 1, ...
_LOG_QUANTILE = (
    (0.0, -0.33332568, -0.036010109, 0.0023292464, 0.00075392149, -0.00024324164),
    (1.0000071, 0.13868715, 0.015633068, -0.0034915337, 0.00021297456),
    (-0.16652742, -0.036878293, -0.001652495, 0.0019864659, -0.00035185188),
    (0.027736626, 0.0072349537, -0.003028008, 0.00045483099),
    (-0.0038525735, 0.00015016158, 0.00087650595, -0.00019160887),
    (7.941103e-05, -0.00041613914, 1.7727307e-05),
    (0.00013737207, 3.6534146e-06, -4.9101003e-06),
    (-8.2962569e-06, 7.6589283e-06),
    (-2.7298296e-06, -3.5681491e-07),
    (5.6760933e-08,),
    (2.6143131e-08,),
)


def draw(
    key: Array, a: Float[Array, " K"], b: Float[Array, " K"], below_1: Bool[Array, ""] | None = None
) -> Float[Array, " K"]:
    """A draw of ``Beta(a, b)`` for each arm, a and b > 0: a smooth function of the shapes at a given key.

    Args:
        key: its words are those of ``jaxbandit._keys.words``.
        a, b: the shapes.
        below_1: false where no shape can be below 1, which saves a second hash; ``None`` looks at the shapes.
    """
    words = _keys.words(key)
    below_1 = jnp.any((a < 1) | (b < 1)) if below_1 is None else below_1

    def powers() -> Float[Array, " K"]:
        u, v = uniforms(words, 1, a.shape[0])
        return _log_power(u, a) - _log_power(v, b)

    x, y = normals(*uniforms(words, 0, a.shape[0]))
    shape, other = jnp.where(a < 1, a + 1, a), jnp.where(b < 1, b + 1, b)
    log_odds = jnp.log(shape / other) + log_quantile(x, shape) - log_quantile(y, other)
    log_odds = log_odds + jax.lax.cond(below_1, powers, lambda: jnp.zeros_like(a))
    return arm_by_arm(jax.nn.sigmoid(log_odds))


def uniforms(words: _keys.Words, i: int, num_arms: int) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """Two uniforms in (0, 1] for each arm: of the two normals (i = 0), of the powers of shapes below 1 (i = 1)."""
    arms = jnp.arange(num_arms, dtype=jnp.int32)
    first, second = _keys.threefry(words, jnp.full_like(arms, i), arms)
    return _keys.to_uniform(first), _keys.to_uniform(second)


def normals(u: Float[Array, " K"], turns: Float[Array, " K"]) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """Two independent normals from two uniforms in (0, 1] (Box and Muller, 1958), by sums that a processor vectorises:
    ``sqrt(-2 log u)`` times cosine and sine of so many turns."""
    quarters = jnp.floor(4 * turns + 0.5)
    x = 2 * math.pi * (turns - quarters / 4)
    sine, cosine = x * _series(x * x, 1), _series(x * x, 0)
    q = quarters.astype(jnp.int32)
    odd = q % 2 == 1
    radius = jnp.sqrt(-2 * jnp.log(u))
    one = jnp.where(odd, sine, cosine) * jnp.where((q == 1) | (q == 2), -radius, radius)
    other = jnp.where(odd, cosine, sine) * jnp.where((q == 2) | (q == 3), -radius, radius)
    return one, other


def _series(square: Float[Array, " K"], first: int) -> Float[Array, " K"]:
    """``cos x`` (first = 0) or ``sin x / x`` (first = 1) from x^2, for |x| up to an eighth of a turn, to 1e-10."""
    return _polynomial(square, [(-1) ** k / math.factorial(2 * k + first) for k in range(6)])


def log_quantile(z: Float[Array, " K"], a: Float[Array, " K"]) -> Float[Array, " K"]:
    """``log(X / a)`` of the quantile X of a gamma of shape a >= 1 that a standard normal has at z."""
    return _polynomial(z / jnp.sqrt(a), [_polynomial(1 / a, row) for row in _LOG_QUANTILE])


def _polynomial(x: Float[Array, " K"], coefficients: Sequence[Float[Array, " K"] | float]) -> Float[Array, " K"]:
    """``c_0 + c_1 x + c_2 x^2 + ...``"""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + x * total
    return total


def _log_power(u: Float[Array, " K"], a: Float[Array, " K"]) -> Float[Array, " K"]:
    """What a shape below 1 adds to the logarithm of the gamma of shape a + 1."""
    return jnp.where(a < 1, jnp.log(u) / a, 0)
