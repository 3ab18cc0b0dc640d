"""What value and gradient of the expected regret cost, beside the plain simulation of the same runs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import jaxbandit as jb
from experiments.paper import fig2

SEEDS = 400
PLAIN, SCORE, DIFFERENCES = "simulation alone", "score: value and gradient", "crn: value and gradient"
GOALS = ((SCORE, PLAIN, 6), (DIFFERENCES, PLAIN, 2 * 4 + 1))  # four parameters: two means, two tail indexes
"""What, compared with what, and at most how many times its cost."""


def programs(horizon: int = fig2.HORIZON, seeds: int = SEEDS) -> Mapping[str, tuple[Callable[[int], Any], float]]:
    """By name: a compiled program of a seed, and the rounds it stands for. All on one device."""
    policy = jb.PatientBandits(0.3)
    means, tails = jnp.array(fig2.MEANS), jnp.array(fig2.TAIL_INDEXES)

    def problem(means: Any, tails: Any) -> jb.Instance:
        return jb.Instance(jb.Bernoulli(means), jb.Pareto(tails))

    def plain(key: Any, means: Any, tails: Any) -> Any:
        options = {"horizon": horizon, "seeds": seeds, "checkpoints": [horizon]}
        return jnp.mean(jb.simulate_batch(key, problem(means, tails), policy, **options).regret)

    def differentiated(estimator: Any) -> Callable[..., Any]:
        def value(means: Any, tails: Any, key: Any) -> Any:
            options = {"horizon": horizon, "seeds": seeds, "estimator": estimator}
            return jb.expected_regret(problem(means, tails), policy, key, **options)

        both = jax.value_and_grad(value, argnums=(0, 1))
        return lambda key, means, tails: both(means, tails, key)

    def compiled(function: Callable[..., Any]) -> Callable[[int], Any]:
        run = jax.jit(function)
        return lambda seed: jax.block_until_ready(run(jax.random.key(seed), means, tails))

    functions = {PLAIN: plain, SCORE: differentiated("score"), DIFFERENCES: differentiated("crn")}
    return {name: (compiled(function), float(horizon * seeds)) for name, function in functions.items()}
