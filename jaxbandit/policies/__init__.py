"""Who chooses the arms: one file a family of policies.

``base`` has the protocol, ``observations`` what a policy may see. May import ``laws`` and ``instance``, and knows
nothing of how a run is played.
"""

from jaxbandit.policies.adaptive import AdaptPatientBandits
from jaxbandit.policies.base import ArmStatistics, Policy
from jaxbandit.policies.ducb import DKLUCB, DUCB
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback
from jaxbandit.policies.patient import PatientBandits, corollary1_alpha
from jaxbandit.policies.softmax import Softmax
from jaxbandit.policies.ucb import UCB1, DelayedUCB1, Discarding
from jaxbandit.policies.uniform import Uniform

__all__ = [
    "DKLUCB",
    "DUCB",
    "UCB1",
    "AdaptPatientBandits",
    "Anonymous",
    "ArmStatistics",
    "Conversions",
    "ConversionsByPull",
    "DelayedUCB1",
    "Discarding",
    "Feedback",
    "PatientBandits",
    "Policy",
    "Softmax",
    "Uniform",
    "corollary1_alpha",
]
