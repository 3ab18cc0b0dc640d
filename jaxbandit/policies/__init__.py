"""Who chooses the arms: one file a family of policies.

``base`` has the protocol, ``observations`` what a policy may see. May import ``laws`` and ``instance``, and knows
nothing of how a run is played.
"""

from jaxbandit.policies.adaptive import AdaptPatientBandits
from jaxbandit.policies.base import ArmStatistics, Policy
from jaxbandit.policies.choice import choose
from jaxbandit.policies.ducb import DKLUCB, DUCB
from jaxbandit.policies.effective import EffectivePulls
from jaxbandit.policies.elimination import SuccessiveElimination
from jaxbandit.policies.klucb import KLUCB, DelayedKLUCB
from jaxbandit.policies.observations import Anonymous, Conversions, ConversionsByPull, Feedback
from jaxbandit.policies.odaaf import ODAAF
from jaxbandit.policies.otf import OTFLinUCB
from jaxbandit.policies.patient import PatientBandits, corollary1_alpha
from jaxbandit.policies.queued import Queued
from jaxbandit.policies.softmax import Softmax
from jaxbandit.policies.thompson import CorrectedThompson, DelayedThompson, Thompson
from jaxbandit.policies.ucb import UCB1, DelayedUCB1, Discarding
from jaxbandit.policies.uniform import Uniform
from jaxbandit.policies.wrappers import Batched, Windowed

__all__ = [
    "DKLUCB",
    "DUCB",
    "KLUCB",
    "ODAAF",
    "UCB1",
    "AdaptPatientBandits",
    "Anonymous",
    "ArmStatistics",
    "Batched",
    "Conversions",
    "ConversionsByPull",
    "CorrectedThompson",
    "DelayedKLUCB",
    "DelayedThompson",
    "DelayedUCB1",
    "Discarding",
    "EffectivePulls",
    "Feedback",
    "OTFLinUCB",
    "PatientBandits",
    "Policy",
    "Queued",
    "Softmax",
    "SuccessiveElimination",
    "Thompson",
    "Uniform",
    "Windowed",
    "choose",
    "corollary1_alpha",
]
