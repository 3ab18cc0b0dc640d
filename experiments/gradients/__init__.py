"""Gradients of the expected regret at work: tuning, worst cases, sensitivities."""
