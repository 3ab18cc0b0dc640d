"""The rooms of the package: who may import whom, and where their tests are."""

import shutil
import subprocess
import sys
from pathlib import Path

import jaxbandit

ROOT = Path(__file__).parents[1]


def test_imports_between_rooms_go_one_way():
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert lint is not None, "pip install -e '.[dev]'"
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_says_what_it_is_for_and_has_its_tests():
    for package in ("jaxbandit", "experiments"):
        for room in (path.parent for path in (ROOT / package).glob("*/__init__.py")):
            assert (room / "__init__.py").read_text().startswith('"""'), room
            tests = ROOT / "tests" / (room.name if package == "jaxbandit" else "experiments")
            assert list(tests.glob("test_*.py")), tests


def test_no_public_function_hides_a_module_of_its_name():
    for name in jaxbandit.__all__:
        for room in (ROOT / "jaxbandit", *(path.parent for path in (ROOT / "jaxbandit").glob("*/__init__.py"))):
            assert not (room / f"{name}.py").exists(), f"{room.name}/{name}.py"
