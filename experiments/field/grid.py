"""The delays of the experiment ``field``, and what a policy that must be told something is told of each."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from experiments.field.shared import OneOf

MOST_LOST = 0.9
NIGHTLY = 250


class Told(NamedTuple):
    """The truth, or a factor beside it.

    ``window``: by when nine tenths of the rewards that come by T have come, at most T/10. ``tail_index``: the largest
    for which Assumption 1 holds up to T. ``expected``: by how many rounds a reward is late in the mean, those later
    than T taken for T.
    """

    law: jb.DelayLaw
    window: int
    tail_index: float
    expected: float
    lowest_mean: float


def delays(num_arms: int, factor: float = 1.0) -> Mapping[str, jb.DelayLaw]:
    """The delay families, worst arm first; ``factor`` stretches scales, shares lost and tail indexes."""
    one = np.ones(num_arms)

    def rounds(x: float) -> Any:
        return np.full(num_arms, round(x * factor), np.int32)

    def lost(share: float) -> jb.DelayLaw:
        return jb.Lossy(jb.Constant(rounds(0)), np.minimum(share * factor * one, MOST_LOST))

    def pareto(tail_index: Any) -> jb.DelayLaw:
        return jb.Pareto(tail_index * factor * one)

    return {
        "none": jb.Constant(rounds(0)),
        "fixed 250": jb.Constant(rounds(250)),
        "¼ lost": lost(0.25),
        "½ lost": lost(0.5),
        "uniform 150–299": jb.DiscreteUniform(rounds(150), rounds(299)),
        "uniform 1–250": jb.DiscreteUniform(rounds(1), rounds(250)),
        "geometric 100": jb.Geometric(100 * factor * one),
        "geometric 500": jb.Geometric(500 * factor * one),
        "Pareto .8": pareto(0.8),
        "Pareto .5": pareto(0.5),
        "Pareto .2": pareto(0.2),
        "Pareto .8 to .2": pareto(np.linspace(0.8, 0.2, num_arms)),
        "lognormal 10 to 1000": jb.LogNormal(np.geomspace(10, 1000, num_arms) * factor, one),
    }


def one_of(num_arms: int, family: str, factor: float = 1.0) -> OneOf:
    laws = delays(num_arms, factor)
    return OneOf(laws.values(), list(laws).index(family))


def told(family: str, means: Any, horizon: int, factor: float = 1.0) -> Told:
    law = delays(len(means))[family]
    ages = jnp.arange(1, horizon + 1)
    late = np.asarray(jax.vmap(law.survival)(ages), float).reshape(horizon, -1)
    seen = 1 - late
    window = 1 + (seen >= 0.9 * seen[-1]).argmax(axis=0).max()
    tail_index = min(float(np.min(jb.assumption1_tail_index(law, horizon))), 1.0)
    return Told(
        law=one_of(len(means), family, factor),
        window=max(1, round(min(int(window), horizon // 10) * factor)),
        tail_index=tail_index * factor,
        expected=float(late.sum(axis=0).max()) * factor,
        lowest_mean=float(np.min(means)),
    )


def policies(told: Told) -> Mapping[str, jb.Policy]:
    """Every public policy, by what it sees."""
    return {
        "Thompson": jb.Thompson(),
        "KL-UCB": jb.KLUCB(),
        "UCB1": jb.UCB1(),
        "softmax of UCB1": jb.Softmax(jb.UCB1(), temperature=0.1),
        "CorrectedThompson": jb.CorrectedThompson(told.law, told.window),
        "DKL-UCB": jb.DKLUCB(told.window, told.law),
        "D-UCB": jb.DUCB(told.window, told.law),
        "OTFLinUCB": jb.OTFLinUCB(told.window),
        "Windowed(Del. KL-UCB)": jb.Windowed(jb.DelayedKLUCB(), told.window),
        "Discarding": jb.Discarding(told.window),
        "PatientBandits": jb.PatientBandits(told.tail_index),
        "Adapt-PatientBandits": jb.AdaptPatientBandits(c=1.0, alpha_min=0.1, mean_min=told.lowest_mean),
        "Delayed-Thompson": jb.DelayedThompson(),
        "Delayed-KL-UCB": jb.DelayedKLUCB(),
        "Delayed-UCB1": jb.DelayedUCB1(),
        "Queued(UCB1)": jb.Queued(jb.UCB1()),
        "SuccessiveElimination": jb.SuccessiveElimination(),
        "Batched(Del. Thompson)": jb.Batched(jb.DelayedThompson(), NIGHTLY),
        "ODAAF": jb.ODAAF(told.expected),
        "uniform play": jb.Uniform(),
    }


class Problem(NamedTuple):
    """An instance, and the policies with what they are told of it."""

    instance: jb.Instance
    policies: Mapping[str, jb.Policy]


def problem(family: str, means: Any, horizon: int, factor: float = 1.0) -> Problem:
    instance = jb.Instance(jb.Bernoulli(means), one_of(len(means), family))
    return Problem(instance, policies(told(family, means, horizon, factor)))


SLOW = (
    "KL-UCB",
    "CorrectedThompson",
    "DKL-UCB",
    "Windowed(Del. KL-UCB)",
    "Adapt-PatientBandits",
    "Delayed-KL-UCB",
    "Queued(UCB1)",
)
"""Roots to find in every round, and long tables: fewer runs."""

TOLD = {
    "CorrectedThompson": "delay law, window",
    "DKL-UCB": "delay law, window",
    "D-UCB": "delay law, window",
    "OTFLinUCB": "window",
    "Windowed(Del. KL-UCB)": "window",
    "Discarding": "window",
    "PatientBandits": "tail index",
    "ODAAF": "mean delay",
}
