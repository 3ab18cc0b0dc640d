"""What the experiments with gradients share: optax.adam with a rate that falls to zero, new seeds in every step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from experiments.report import Progress

Parameters = Float[Array, " P"]


class Path(NamedTuple):
    """Where the search went: the parameters before every step and at its end, and the estimates of the steps."""

    parameters: np.ndarray
    value: np.ndarray
    gradient: np.ndarray


def minimise(
    loss: Callable[[Parameters, Array], Float[Array, ""]],
    start: Any,
    *,
    seed: int,
    steps: int,
    rate: float,
    progress: Progress,
    runs: int,
) -> Path:
    """From ``start``. ``loss`` is given the parameters and the key of the step; ``runs`` are simulated in each."""
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    @jax.jit
    def step(parameters: Parameters, state: Any, key: Array) -> tuple[Parameters, Any, Array, Array]:
        value, gradient = jax.value_and_grad(loss)(parameters, key)
        update, state = optimiser.update(gradient, state)
        moved: Any = optax.apply_updates(parameters, update)
        return moved, state, value, gradient

    parameters = jnp.asarray(start, float)
    state = optimiser.init(parameters)
    visited, values, gradients = [np.asarray(parameters)], [], []
    for key in jax.random.split(jax.random.key(seed), steps):
        parameters, state, value, gradient = step(parameters, state, key)
        visited.append(np.asarray(parameters))
        values.append(float(value))
        gradients.append(np.asarray(gradient))
        progress.done(runs)
    return Path(np.stack(visited), np.array(values), np.stack(gradients))


def between(low: float, high: float, x: Any) -> Any:
    """A number in (low, high) for any x."""
    return low + (high - low) * jax.nn.sigmoid(x)


def unbounded(low: float, high: float, y: float) -> float:
    """The x of ``between(low, high, x) = y``."""
    share = (y - low) / (high - low)
    return float(np.log(share / (1 - share)))
