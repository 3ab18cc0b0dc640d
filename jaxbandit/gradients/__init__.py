"""Derivatives of the expected regret, each by an estimator that is named and proved in the tests.

``estimate`` has the public calls; ``score``, ``differences`` and ``relaxed`` are the estimators, ``prior`` is for many
instances at once. May import the rooms up to ``engine``.
"""

from jaxbandit.gradients.differences import RoundedWindow
from jaxbandit.gradients.estimate import RegretGradient, expected_regret, regret_and_gradient

__all__ = ["RegretGradient", "RoundedWindow", "expected_regret", "regret_and_gradient"]
