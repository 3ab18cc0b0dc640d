"""What importing the package does, and what it does not."""

import subprocess
import sys

import jaxbandit as jb


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_starts_no_device_and_changes_no_setting():
    code = """
import jax
before = dict(jax.config.values)
import jaxbandit
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
changed = {k for k, v in jax.config.values.items() if before.get(k, v) != v}
assert not changed, changed
"""
    python(code)


def test_importing_needs_the_core_alone():
    code = """
import sys
before = set(sys.modules)
import jax, equinox, jaxtyping, numpy
core = {name.partition(".")[0] for name in sys.modules}
import jaxbandit
extra = {name.partition(".")[0] for name in sys.modules} - core - {"jaxbandit"}
print(sorted(extra - set(sys.stdlib_module_names)))
"""
    assert python(code) == "[]"


def test_all_names_are_there_once():
    assert all(hasattr(jb, name) for name in jb.__all__)
    assert len(set(jb.__all__)) == len(jb.__all__)
