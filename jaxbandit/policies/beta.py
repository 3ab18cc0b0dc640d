"""Draws of Beta laws by a loop of known length.

``Beta(a, b) = X / (X + Y)`` of two gammas, which Marsaglia and Tsang (2000) draw by rejection: with ``d = a - 1/3`` and
``y = z / (3 sqrt(d))``, z standard normal, ``X = d (1 + y)^3`` is taken with probability
``exp(3 d (log(1 + y) - y + y^2/2 - y^3/3))``. Both gammas are proposed and taken together. For shapes >= 1 that fails
less than once in ten times: ``PROPOSALS`` in a row fail with a probability below 1e-8, and then the last one is taken.
A shape a < 1 is drawn as that of a + 1, times the power 1/a of a uniform.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbandit._keys import Words, threefry, to_uniform

PROPOSALS = 8

SERIES_BELOW = 0.15
"""Below this the logarithm of the probability is taken by its series: its terms up to y^3 cancel."""

_TERMS = 14


def draw(key: Array, a: Float[Array, " K"], b: Float[Array, " K"]) -> Float[Array, " K"]:
    """A draw of ``Beta(a, b)`` for each arm, a and b > 0. It has no derivative: what is taken jumps with the shapes."""
    return _draw(words(key), a, b)


def words(key: Array) -> Words:
    """The two words of a key."""
    data = jax.random.key_data(key)
    return data if data.shape == (2,) else jax.random.bits(key, (2,), jnp.uint32)


def uniforms(key: Words, i: Int[Array, ""], arms: Int[Array, " K"]) -> tuple[Array, Array, Array]:
    """Three uniforms in (0, 1] of the i-th proposal for each arm: of two normals, and of whether it is taken.

    Those of i = ``PROPOSALS`` are for the powers of shapes below 1.
    """
    first, second = threefry(key, jnp.broadcast_to(2 * i, arms.shape), arms)
    third, _ = threefry(key, jnp.broadcast_to(2 * i + 1, arms.shape), arms)
    return to_uniform(first), to_uniform(second), to_uniform(third)


@jax.custom_jvp
def _draw(key: Words, a: Float[Array, " K"], b: Float[Array, " K"]) -> Float[Array, " K"]:
    arms = jnp.arange(a.shape[0], dtype=jnp.int32)
    shapes = jnp.where(a < 1, a + 1, a), jnp.where(b < 1, b + 1, b)

    def more(state: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
        i, _, _, taken = state
        return (i < PROPOSALS) & ~jnp.all(taken)

    def propose(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        i, x, y, taken = state
        new_x, new_y, good = proposal(uniforms(key, i, arms), *shapes)
        return i + 1, jnp.where(taken, x, new_x), jnp.where(taken, y, new_y), taken | good

    nothing = jnp.zeros_like(a)
    start = jnp.zeros((), jnp.int32), nothing, nothing, jnp.zeros(a.shape, bool)
    _, x, y, _ = jax.lax.while_loop(more, propose, start)
    small = jnp.any((a < 1) | (b < 1))
    powers = uniforms(key, jnp.asarray(PROPOSALS, jnp.int32), arms)
    return jnp.where(small, _with_powers(x, y, a, b, powers), x / (x + y))


@_draw.defjvp
def _draw_jvp(primals: Any, tangents: Any) -> Any:
    raise TypeError(
        "a Beta draw has no derivative here: by rejection it jumps as its shapes change; differentiate "
        "jaxbandit.expected_regret with estimator='crn', or leave the priors of Thompson sampling out of it"
    )


def proposal(
    u: tuple[Array, Array, Array], a: Float[Array, " K"], b: Float[Array, " K"]
) -> tuple[Float[Array, " K"], Float[Array, " K"], Bool[Array, " K"]]:
    """Two gammas, and whether they are taken."""
    first, second = normals(u[0], u[1])
    x, log_x = _gamma(first, a)
    y, log_y = _gamma(second, b)
    return x, y, jnp.log(u[2]) < log_x + log_y


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
    """``cos x`` (first = 0) or ``sin x / x`` (first = 1) from x^2, for |x| up to an eighth of a turn."""
    total = jnp.zeros_like(square)
    for k in range(9, -1, -1):
        total = (-1) ** k / math.factorial(2 * k + first) + square * total
    return total


def _gamma(z: Float[Array, " K"], a: Float[Array, " K"]) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """What is proposed for a gamma of shape a >= 1, and the logarithm of the probability to take it."""
    d = a - 1 / 3
    y = z / (3 * jnp.sqrt(d))
    valid = y > -1
    safe = jnp.where(valid, y, 0)
    return d * (1 + safe) ** 3, jnp.where(valid, 3 * d * _log_rest(safe), -jnp.inf)


def _log_rest(y: Float[Array, " K"]) -> Float[Array, " K"]:
    """``log(1 + y) - y + y^2/2 - y^3/3 <= 0``."""
    small = jnp.abs(y) < SERIES_BELOW
    near = jnp.where(small, y, 0)
    series = jnp.zeros_like(y)
    for k in range(_TERMS, 3, -1):
        series = (-1) ** (k + 1) / k + near * series
    far = jnp.log(1 + y) - y + y**2 / 2 - y**3 / 3
    return jnp.where(small, near**4 * series, far)


def _with_powers(x: Array, y: Array, a: Array, b: Array, u: tuple[Array, Array, Array]) -> Float[Array, " K"]:
    """``X / (X + Y)`` where a shape below 1 brings a power of a uniform, by logarithms: both may be tiny."""
    log_x = jnp.log(x) + jnp.where(a < 1, jnp.log(u[0]) / a, 0)
    log_y = jnp.log(y) + jnp.where(b < 1, jnp.log(u[1]) / b, 0)
    return jax.nn.sigmoid(log_x - log_y)
