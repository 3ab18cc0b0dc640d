"""What a pull gives: laws of rewards on [0, 1] and of delays on {0, 1, ...} and never, one for each arm.

Read ``base`` first. May import nothing of the package but ``_arms`` and ``_checks``.
"""

from jaxbandit.laws.base import DelayLaw, RewardLaw
from jaxbandit.laws.combined import Lossy, Mixture, PerArm
from jaxbandit.laws.continuous_delays import Burr, LogNormal, Lomax, Pareto, Weibull
from jaxbandit.laws.discrete_delays import Constant, DiscreteUniform, Empirical, Geometric, NoDelay
from jaxbandit.laws.rewards import Bernoulli, Deterministic, Discrete, TruncatedNormal

__all__ = [
    "Bernoulli",
    "Burr",
    "Constant",
    "DelayLaw",
    "Deterministic",
    "Discrete",
    "DiscreteUniform",
    "Empirical",
    "Geometric",
    "LogNormal",
    "Lomax",
    "Lossy",
    "Mixture",
    "NoDelay",
    "Pareto",
    "PerArm",
    "RewardLaw",
    "TruncatedNormal",
    "Weibull",
]
