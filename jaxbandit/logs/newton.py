"""Many small likelihoods maximised side by side, with exact gradients and Hessians, in double precision.

SciPy's optimisers take one problem at a time; an interval is dozens, a bootstrap thousands of problems of four numbers.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbandit.logs.families import LIMIT, SIZE, Problem, log_likelihood

BATCH = 32
"""Problems in one call: one program serves any number of arms, families and starts."""
POINTS = (128, 320, 1024, 2048)
"""Lengths to which grids are padded, for the same reason."""
STEPS = 150
TOLERANCE = 1e-9
LOW = np.array([-30.0, -20.0, -5.0, LIMIT])
HIGH = np.array([30.0, 40.0, 5.0, 20.0])


class Maximum(NamedTuple):
    """Of n problems: where, how high, the Hessian there, and whether the step that is left is too small to matter."""

    theta: Float[np.ndarray, "n P"]
    value: Float[np.ndarray, " n"]
    hessian: Float[np.ndarray, "n P P"]
    converged: Bool[np.ndarray, " n"]


class _Iterate(NamedTuple):
    theta: Float[Array, " P"]
    value: Float[Array, ""]
    gradient: Float[Array, " P"]
    hessian: Float[Array, "P P"]
    move: Float[Array, " P"]
    radius: Float[Array, ""]
    promise: Float[Array, ""]
    turn: Array


def _newton(theta: Float[Array, " P"], problem: Problem, edges: Float[Array, " G1"]) -> _Iterate:
    """Newton's method on ``-log_likelihood`` with the absolute values of the Hessian's eigenvalues, so that it leaves
    saddles, and steps no longer than a radius that shrinks where the quadratic model fails."""
    free = problem.free

    def loss(theta: Float[Array, " P"]) -> tuple[Array, Array]:
        value = -log_likelihood(theta, problem, edges)
        return value, value

    def derivatives(theta: Float[Array, " P"]) -> tuple[Array, tuple[Array, Array]]:
        gradient, value = jax.grad(loss, has_aux=True)(theta)
        return gradient, (value, gradient)

    def step(at: _Iterate) -> _Iterate:
        """Looks at ``at.move`` further on, and finds the move from there, or a shorter one from here."""
        theta = jnp.clip(at.theta + at.move, LOW, HIGH)
        hessian, (value, gradient) = jax.jacfwd(derivatives, has_aux=True)(theta)
        gradient = jnp.where(free, gradient, 0)
        hessian = jnp.where(free[:, None] & free[None, :], hessian, jnp.eye(SIZE))
        good = (value < at.value) & jnp.isfinite(gradient).all() & jnp.isfinite(hessian).all()
        length = jnp.sqrt(jnp.sum(at.move**2))
        new = at._replace(theta=theta, value=value, gradient=gradient, hessian=hessian, radius=at.radius * 2)
        old = at._replace(radius=jnp.minimum(at.radius, length) / 4)
        here: _Iterate = jax.tree.map(partial(jnp.where, good), new, old)
        values, vectors = jnp.linalg.eigh(here.hessian)
        size = jnp.maximum(jnp.abs(values), 1e-9)
        slope = here.gradient @ vectors
        full = -(vectors @ (slope / size))
        longest = jnp.maximum(jnp.sqrt(jnp.sum(full**2)), 1e-300)
        return here._replace(
            move=full * jnp.minimum(1, here.radius / longest),
            radius=jnp.minimum(here.radius, 8.0),
            promise=jnp.sum(slope**2 / size) / 2,
            turn=here.turn + 1,
        )

    def unfinished(at: _Iterate) -> Bool[Array, ""]:
        return (at.turn < STEPS) & (at.promise > TOLERANCE) & (at.radius > 1e-8)

    infinite, zero = jnp.full((), jnp.inf), jnp.zeros(SIZE)
    start = _Iterate(theta, infinite, zero, jnp.eye(SIZE), zero, jnp.ones(()), infinite, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(unfinished, step, start)


@jax.jit
def _batch(theta: Float[Array, "n P"], problems: Problem, edges: Float[Array, " G1"]) -> tuple[Array, ...]:
    at = jax.vmap(partial(_newton, edges=edges))(theta, problems)
    return at.theta, -at.value, at.hessian, at.promise


def padded(edges: np.ndarray, *counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """A grid, and counts on it with the points last, at one of a few lengths: further points have no rows."""
    size = next((size for size in POINTS if size >= len(edges)), 2 ** (len(edges) - 1).bit_length())
    longer = np.concatenate([edges, edges[-1] + 1 + np.arange(size - len(edges))]).astype(float)
    longer[0] = 1.0  # age 0, where nothing is known: not used
    shapes = [(size - 1 if count.shape[-1] < len(edges) else size) - count.shape[-1] for count in counts]
    grown = [np.pad(c, [(0, 0)] * (c.ndim - 1) + [(0, n)]).astype(float) for c, n in zip(counts, shapes, strict=True)]
    return longer, *grown


def maximise(theta: Float[np.ndarray, "n P"], problems: Problem, edges: Float[np.ndarray, " G1"]) -> Maximum:
    """From one start for each problem; whoever wants several repeats the problem. Arrays are NumPy's, as padded."""
    parts = []
    with jax.enable_x64(True):
        for first in range(0, len(theta), BATCH):
            rows = np.minimum(np.arange(first, first + BATCH), len(theta) - 1)
            here: Any = jax.tree.map(lambda x, rows=rows: jnp.asarray(x[rows]), problems)
            found = jax.device_get(_batch(jnp.asarray(theta[rows]), here, jnp.asarray(edges)))
            parts.append([x[: len(theta) - first] for x in found])
    where, value, hessian, promise = (np.concatenate(x) for x in zip(*parts, strict=True))
    return Maximum(theta=where, value=value, hessian=hessian, converged=promise <= 1e-6)
