from jaxbandit.policies.adaptive import AdaptPatientBandits
from jaxbandit.policies.base import ArmStatistics, Policy
from jaxbandit.policies.ducb import DKLUCB, DUCB
from jaxbandit.policies.patient import PatientBandits, corollary1_alpha
from jaxbandit.policies.softmax import Softmax
from jaxbandit.policies.ucb import UCB1, DelayedUCB1, Discarding
from jaxbandit.policies.uniform import Uniform

__all__ = [
    "DKLUCB",
    "DUCB",
    "UCB1",
    "AdaptPatientBandits",
    "ArmStatistics",
    "DelayedUCB1",
    "Discarding",
    "PatientBandits",
    "Policy",
    "Softmax",
    "Uniform",
    "corollary1_alpha",
]
