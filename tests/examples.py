"""One small example of every public law and policy: a class in ``__all__`` that is missing here fails the tests."""

import inspect
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import TypeCheckError

import jaxbandit as jb

NUM_ARMS = 3

MEASURED_DELAYS = Path(__file__).parents[2] / "shared" / "data" / "criteo_conversion_delays.csv"
"""Delays of a public log, in seconds, and their probabilities, which may be absent: the project does not hold them."""

REWARDS: dict[str, jb.RewardLaw] = {
    "Bernoulli": jb.Bernoulli([0.2, 0.5, 0.9]),
    "Deterministic": jb.Deterministic([0.2, 0.5, 0.9]),
    "Discrete": jb.Discrete([0.0, 0.3, 1.0], [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]),
    "TruncatedNormal": jb.TruncatedNormal([0.2, 0.5, 1.3], [0.1, 0.4, 0.2]),
    "PerArm": jb.PerArm([jb.Bernoulli(0.3), jb.TruncatedNormal(0.5, 0.2), jb.Deterministic(0.4)]),
}

DELAYS: dict[str, jb.DelayLaw] = {
    "Pareto": jb.Pareto([0.3, 1.0, 2.5]),
    "Lomax": jb.Lomax([1.0, 12.0, 300.0], [0.3, 0.8, 2.5]),
    "Burr": jb.Burr([2.0, 12.0, 300.0], [3.0, 0.6, 1.0], [0.3, 1.5, 4.0]),
    "Constant": jb.Constant([0, 7, jb.NEVER]),
    "NoDelay": jb.NoDelay(NUM_ARMS),
    "Geometric": jb.Geometric([0.0, 3.0, 500.0]),
    "DiscreteUniform": jb.DiscreteUniform([0, 3, 5], [0, 9, 500]),
    "LogNormal": jb.LogNormal([1.0, 20.0, 300.0], [0.5, 1.0, 2.0]),
    "Weibull": jb.Weibull([2.0, 20.0, 5.0], [0.5, 1.0, 0.3]),
    "Empirical": jb.Empirical(
        [0, 4, 30, jb.NEVER], [[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 0.0]]
    ),
    "Mixture": jb.Mixture([jb.Pareto([0.3, 0.6, 0.9]), jb.Geometric(3.0)], [0.3, 0.7]),
    "Lossy": jb.Lossy(jb.Pareto([0.3, 1.0, 2.5]), [0.0, 0.2, 1.0]),
    "PerArm": jb.PerArm([jb.NoDelay(1), jb.Lossy(jb.Pareto(0.3), 0.1), jb.Weibull(20.0, 0.5)]),
}

POLICIES: dict[str, jb.Policy] = {
    "UCB1": jb.UCB1(),
    "PatientBandits": jb.PatientBandits(0.3),
    "PatientBandits schedule": jb.PatientBandits(jb.corollary1_alpha, bonus_scale=0.5),
    "AdaptPatientBandits": jb.AdaptPatientBandits(c=0.8, alpha_min=0.4, mean_min=0.1, lcb_scale=0.0),
    "DUCB": jb.DUCB(window=20, cdf=jb.Pareto(0.7), warmup="window"),
    "DUCB uncensored": jb.DUCB(window=None, cdf=jb.Geometric(8.0)),
    "DKLUCB": jb.DKLUCB(window=20, cdf=jb.Pareto(0.7)),
    "Discarding": jb.Discarding(window=15),
    "DelayedUCB1": jb.DelayedUCB1(),
    "KLUCB": jb.KLUCB(),
    "DelayedKLUCB": jb.DelayedKLUCB(c=1.0),
    "Thompson": jb.Thompson(),
    "DelayedThompson": jb.DelayedThompson(successes=0.5, failures=0.5),
    "CorrectedThompson": jb.CorrectedThompson(cdf=jb.Pareto(0.7), window=20),
    "CorrectedThompson uncensored": jb.CorrectedThompson(cdf=jb.Geometric(8.0), window=None),
    "SuccessiveElimination": jb.SuccessiveElimination(),
    "OTFLinUCB": jb.OTFLinUCB(window=20),
    "ODAAF": jb.ODAAF(expected_delay=0.0),
    "Batched": jb.Batched(jb.DUCB(window=20, cdf=jb.Pareto(0.7)), period=7),
    "Queued": jb.Queued(jb.UCB1()),
    "Windowed": jb.Windowed(jb.DelayedUCB1(), window=15),
    "Uniform": jb.Uniform(),
    "Softmax": jb.Softmax(jb.PatientBandits(0.3), temperature=0.1),
}

BY_ARM: dict[str, jb.Policy] = {
    "DUCB by arm": jb.DUCB(window=20, cdf=jb.Pareto([0.7, 0.3, 2.0])),
    "DKLUCB by arm": jb.DKLUCB(window=None, cdf=DELAYS["PerArm"]),
    "CorrectedThompson by arm": jb.CorrectedThompson(cdf=jb.Pareto([0.7, 0.3, 2.0]), window=20),
}
"""Policies that are told something of each of the ``NUM_ARMS`` arms."""

AT_RANDOM = {"Softmax", "Thompson", "DelayedThompson", "CorrectedThompson", "CorrectedThompson uncensored"}
"""Policies that draw their choices: arms in another order, or ties, are not settled by a rule."""


def public(kind: type) -> set[str]:
    """Names of the concrete classes of this kind in ``jaxbandit.__all__``."""
    members = ((name, getattr(jb, name)) for name in jb.__all__)
    return {name for name, x in members if inspect.isclass(x) and issubclass(x, kind) and not inspect.isabstract(x)}


OF_EACH_KIND = (
    "UCB1",
    "AdaptPatientBandits",
    "DUCB",
    "Discarding",
    "DelayedUCB1",
    "CorrectedThompson",
    "ODAAF",
    "Batched",
)
"""Between them: every kind of observation, waiting, looking back, draws, diagnostics, and a policy in a policy."""


def each(examples: dict[str, Any], argument: str, quick: Collection[str] | None = None) -> pytest.MarkDecorator:
    """The test is run with every example; with those that are not in ``quick`` it is slow."""
    few = examples if quick is None else quick
    values = [pytest.param(x, id=name, marks=() if name in few else pytest.mark.slow) for name, x in examples.items()]
    return pytest.mark.parametrize(argument, values)


def refused(error: type[Exception], match: str) -> pytest.RaisesExc:
    """``pytest.raises``; where annotations are checked at run time (setting ``strict``), they may speak up first."""

    def check(raised: BaseException) -> bool:
        return isinstance(raised, TypeCheckError) or (
            isinstance(raised, error) and re.search(match, str(raised)) is not None
        )

    return pytest.raises((error, TypeCheckError), check=check)


def instance() -> jb.Instance:
    return jb.Instance(REWARDS["Bernoulli"], DELAYS["Pareto"])
