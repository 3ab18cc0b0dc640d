"""What is released: the wheel alone runs the README's first example, and the oldest versions it allows pass."""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.test_docs import code_blocks

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNNER = ("pytest", "pytest-xdist")
CORE = ("tests/engine/test_simulate.py", "tests/engine/test_replay.py", "tests/laws", "tests/policies/test_policies.py")
"""Tests that need no more than the core and pytest: what every other part of the package stands on."""

pytestmark = pytest.mark.slow


def done(*command: object, cwd: Path) -> str:
    """The output of a command that knows nothing of the packages of this process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def pip(python: Path, *what: object, cwd: Path) -> str:
    return done(python, "-m", "pip", "--disable-pip-version-check", *what, cwd=cwd)


@pytest.fixture
def bare(tmp_path):
    """The Python of an environment with nothing in it."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    try:
        pip(python, "download", "--quiet", "--no-deps", "--dest", tmp_path / "reached", "iniconfig", cwd=tmp_path)
    except AssertionError:
        pytest.skip("pip reaches no index of packages")
    return python


def test_the_wheel_and_the_core_dependencies_run_the_first_example(bare, tmp_path):
    done(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (source,), (wheel,) = (tmp_path / "dist").glob("*.tar.gz"), (tmp_path / "dist").glob("*.whl")
    assert source.name == f"jaxbandit-{PROJECT['version']}.tar.gz"
    files = set(zipfile.ZipFile(wheel).namelist())
    assert {"jaxbandit/py.typed", "jaxbandit/logs/data/campaigns.csv.gz"} <= files
    assert {name.partition("/")[0].partition("-")[0] for name in files} == {"jaxbandit"}

    pip(bare, "install", "--quiet", wheel, cwd=tmp_path)
    pip(bare, "check", cwd=tmp_path)
    example, plot, _ = code_blocks("README.md")[0].partition("import jaxbandit.plot")
    assert plot
    extras = (
        "import importlib.util as u; assert not any(map(u.find_spec, ('matplotlib', 'xarray', 'pandas', 'tqdm')))\n"
    )
    assert done(bare, "-W", "error", "-c", extras + example, cwd=tmp_path).startswith("MeanCI(mean=")


def test_the_core_passes_its_tests_at_the_lowest_versions_declared(bare, tmp_path):
    extras = PROJECT["optional-dependencies"]["dev"]
    wanted = [*PROJECT["dependencies"], *(found for found in extras if found.partition(">=")[0] in RUNNER)]
    assert len(wanted) == len(PROJECT["dependencies"]) + len(RUNNER)
    pip(bare, "install", "--quiet", *(wish.replace(">=", "==") for wish in wanted), cwd=tmp_path)
    options = ("-n", "2", "-p", "no:cacheprovider", "-W", "default", "-m", "not slow")  # its warnings are not ours
    done(bare, "-m", "pytest", *options, *CORE, cwd=ROOT)
