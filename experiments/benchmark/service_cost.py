"""What a choice of an agent in service costs, beside a call of a compiled program that does nothing."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxbandit as jb

NUM_ARMS = 10
CHOICES = 200  # of a timing
HORIZON = 10_000
CHOICE, EMPTY = "Agent.choose, K = 10", "empty jitted call"
GOALS = ((CHOICE, EMPTY, 25.0),)


def programs() -> dict[str, tuple[Callable[[int], Any], float]]:
    """A choice and the arrival of its reward; a call."""
    agent = jb.Agent(jb.PatientBandits(0.3), NUM_ARMS, horizon=HORIZON)
    empty = jax.jit(lambda x: x)

    def choose(seed: int) -> None:
        for _ in range(CHOICES):
            agent.arrived(agent.choose().id, seed % 2)

    def call(seed: int) -> None:
        for _ in range(CHOICES):
            jax.block_until_ready(empty(np.int32(seed)))

    return {CHOICE: (choose, CHOICES), EMPTY: (call, CHOICES)}
