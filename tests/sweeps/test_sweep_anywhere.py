"""A sweep gives the same bits wherever it runs and however often it is killed. Each test starts other programs."""

import hashlib
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

from jaxbandit.sweeps import block
from tests.sweeps import test_sweep

pytestmark = pytest.mark.slow

CHILD = """
import os, signal
import jax

if __name__ == "__main__":
    jax.config.update("jax_enable_x64", {x64})
    jax.config.update("jax_num_cpu_devices", {devices})
    {before}
    from tests.sweeps import test_sweep_anywhere as here
    print(here.digest(here.sweep(store={store!r})))
"""


def sweep(**options) -> xr.Dataset:
    """18 blocks for each of two policies."""
    steps, block.STEPS["cpu"] = block.STEPS["cpu"], 4 * test_sweep.HORIZON
    try:
        return test_sweep.run(**options)
    finally:
        block.STEPS["cpu"] = steps


def digest(data: xr.Dataset) -> str:
    """Of every bit of the numbers and coordinates."""
    found = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        found.update(name.encode() + repr(data[name].to_numpy().tolist()).encode())
    return found.hexdigest()


@pytest.fixture(scope="module")
def expected() -> str:
    return digest(sweep())


def child(store: Path, devices: int = 1, before: str = "") -> subprocess.Popen:
    x64 = jax.config.jax_enable_x64
    code = CHILD.format(x64=x64, devices=devices, before=before, store=str(store))
    return subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def printed(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


DIE_AT = """
    from zarr.storage import _local as files
    left, replace = [{write}], files.Path.replace
    def put(path, value, exclusive=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        with files._atomic_write(path, "wb", exclusive=exclusive) as file:
            left[0] -= 1
            written = file.write(bytes(value.as_buffer_like())[: None if left[0] > 0 else 3])
            file.flush()
            if left[0] <= 0:  # or below, where threads write at the same time
                os.kill(os.getpid(), signal.SIGKILL)
            return written
    files._put = put
"""


def test_killed_five_times_and_resumed_on_other_devices(expected, tmp_path):
    """Killed in the middle of a write, whether of the attributes, of an array or of the mask of what is done."""
    rng = np.random.default_rng(0)
    for write in (2, *rng.integers(8, 30, 4)):
        process = child(tmp_path / "s.zarr", before=DIE_AT.format(write=write))
        _, err = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, (write, err)
    assert list((tmp_path / "s.zarr").rglob("*.partial"))
    assert printed(child(tmp_path / "s.zarr", devices=4)) == expected


def test_two_programs_on_one_store_with_two_devices_each(expected, tmp_path):
    both = [child(tmp_path / "s.zarr", devices=2) for _ in range(2)]
    assert [printed(process) for process in both] == [expected, expected]


def test_a_pool_of_new_processes(expected):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert digest(sweep(executor=executor)) == expected


def die(task: block.Block) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_pool_that_breaks_says_how_to_go_on(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        future = executor.submit(die, None)
        with pytest.raises(BrokenProcessPool):
            future.result()
        with pytest.raises(RuntimeError, match=r"the executor broke .*; make a new one and call again") as stop:
            sweep(executor=executor, store=tmp_path)
        assert "0 of 36 blocks were done and are stored in" in stop.value.__notes__[0]


def die_once(folder: str, task: block.Block) -> dict[str, np.ndarray]:
    """The first worker to get here dies in the middle of the task."""
    try:
        (Path(folder) / "died").touch(exist_ok=False)
    except FileExistsError:
        return block.compute(task)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_which_a_worker_is_killed(expected, tmp_path, monkeypatch):
    from dask.distributed import Client, LocalCluster

    monkeypatch.setattr(block, "launched", lambda task: pytest.fail("computed here"))
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        submit = executor.submit
        monkeypatch.setattr(executor, "submit", lambda _, task: submit(die_once, str(tmp_path), task, pure=False))
        assert digest(sweep(executor=executor)) == expected
    assert (tmp_path / "died").exists()


PROCESS_OF_TWO = """
    jax.distributed.initialize("localhost:{port}", num_processes=2, process_id={process})
    assert jax.process_count() == 2 and len(jax.local_devices()) == 2
    from jaxbandit.sweeps import block
    collected, computed = block.collected, []
    block.collected = lambda task, running: computed.append(task) or collected(task, running)
    import atexit
    atexit.register(lambda: print(len(computed)))
"""


def test_two_processes_of_jax_distributed_share_the_work(expected, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    both = [
        child(tmp_path / "s.zarr", devices=2, before=PROCESS_OF_TWO.format(port=port, process=process))
        for process in range(2)
    ]
    for process in both:
        found, computed = printed(process).split()[-2:]
        assert found == expected
        assert int(computed) == 18


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory as Linux reports it")
def test_memory_does_not_grow_with_the_runs_beyond_the_regret_of_each():
    """Two sweeps of blocks that are done at once: 40 and 400 of them."""

    def peak(seeds: int) -> float:
        code = f"""
import jaxbandit as jb
instance = jb.Instance(jb.Bernoulli([0.3, 0.7]), jb.NoDelay())
jb.sweep(lambda: (instance, jb.UCB1()), {{}}, horizon=10, seeds={seeds}, key=0, progress=False)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
        return int(done.stdout) * 1024

    few, many = peak(10**5), peak(2 * 10**6)
    assert many - few < 2**29
