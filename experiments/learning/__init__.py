"""Policies that were learned: trained on a prior of instances, put to instances they have not seen."""
