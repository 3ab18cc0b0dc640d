"""Nanoseconds per run and round, beside other programs for the same job."""
