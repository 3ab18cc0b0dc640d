"""Reductions over seeds, and reports on many runs as tables.

``reductions`` takes arrays, ``reports`` runs by name or the dataset of a sweep. May import the rooms up to ``engine``;
pandas is imported when a table is made.
"""

from jaxbandit.statistics.reductions import MeanCI, mean_ci, paired_difference, quantiles
from jaxbandit.statistics.reports import pairwise, summary

__all__ = ["MeanCI", "mean_ci", "paired_difference", "pairwise", "quantiles", "summary"]
