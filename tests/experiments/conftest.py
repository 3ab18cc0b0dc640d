"""The command, in a process whose JAX is running."""

import jax
import pytest


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
    """The command sets the number of devices, which a running JAX cannot change."""
    monkeypatch.setattr(jax.config, "update", lambda name, value: None)
