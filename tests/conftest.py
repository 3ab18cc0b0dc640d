"""The suite passes in four settings, one a run: ``pytest --setting x64``.

``strict`` refuses implicit promotion of types and ranks, and checks every annotated shape and type at run time.
"""

import os
from collections.abc import Iterator

import jax
import jaxtyping
import pytest

SETTINGS = ("default", "x64", "strict", "devices")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--setting", choices=SETTINGS, default="default", help="how JAX is configured for the whole run")


def pytest_configure(config: pytest.Config) -> None:
    setting = config.getoption("--setting")
    if setting == "x64":
        jax.config.update("jax_enable_x64", True)
    elif setting == "strict":
        jax.config.update("jax_numpy_dtype_promotion", "strict")
        jax.config.update("jax_numpy_rank_promotion", "raise")
        jaxtyping.install_import_hook("jaxbandit", "beartype.beartype")
    elif setting == "devices":
        jax.config.update("jax_num_cpu_devices", 4)
    os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_report_header(config: pytest.Config) -> str:
    return f"setting: {config.getoption('--setting')}, jax {jax.__version__}"


@pytest.fixture(autouse=True, scope="module")
def _forget_programs() -> Iterator[None]:
    """Some thousand compiled programs are more than a process may map into its memory."""
    yield
    jax.clear_caches()
