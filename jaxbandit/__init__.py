"""A differentiable simulator of stochastic bandits whose rewards arrive late."""

from jaxbandit._checks import NEVER
from jaxbandit.batch import simulate_batch
from jaxbandit.delays import (
    Constant,
    DiscreteUniform,
    Empirical,
    Geometric,
    LogNormal,
    Lossy,
    Mixture,
    NoDelay,
    Pareto,
    Weibull,
)
from jaxbandit.differences import RoundedWindow
from jaxbandit.gradients import RegretGradient, expected_regret, regret_and_gradient
from jaxbandit.instance import Instance
from jaxbandit.laws import DelayLaw, PerArm, RewardLaw
from jaxbandit.pending import Anonymous, Conversions, ConversionsByPull, Feedback
from jaxbandit.policies import (
    DKLUCB,
    DUCB,
    UCB1,
    AdaptPatientBandits,
    ArmStatistics,
    DelayedUCB1,
    Discarding,
    PatientBandits,
    Policy,
    Softmax,
    Uniform,
    corollary1_alpha,
)
from jaxbandit.rewards import Bernoulli, Deterministic, Discrete, TruncatedNormal
from jaxbandit.simulate import Run, Trace, replay, simulate
from jaxbandit.statistics import MeanCI, mean_ci, paired_difference, quantiles

__all__ = [
    "DKLUCB",
    "DUCB",
    "NEVER",
    "UCB1",
    "AdaptPatientBandits",
    "Anonymous",
    "ArmStatistics",
    "Bernoulli",
    "Constant",
    "Conversions",
    "ConversionsByPull",
    "DelayLaw",
    "DelayedUCB1",
    "Deterministic",
    "Discarding",
    "Discrete",
    "DiscreteUniform",
    "Empirical",
    "Feedback",
    "Geometric",
    "Instance",
    "LogNormal",
    "Lossy",
    "MeanCI",
    "Mixture",
    "NoDelay",
    "Pareto",
    "PatientBandits",
    "PerArm",
    "Policy",
    "RegretGradient",
    "RewardLaw",
    "RoundedWindow",
    "Run",
    "Softmax",
    "Trace",
    "TruncatedNormal",
    "Uniform",
    "Weibull",
    "corollary1_alpha",
    "expected_regret",
    "mean_ci",
    "paired_difference",
    "quantiles",
    "regret_and_gradient",
    "replay",
    "simulate",
    "simulate_batch",
]
