"""A store: it notices changed code, opens without its build, and grows in every direction."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.sweeps import block, fingerprint
from tests.examples import refused
from tests.sweeps import test_sweep
from tests.sweeps.test_sweep import AXES, HORIZON, computed, run, runs_in, small  # noqa: F401


def policy_with(factor=1.0, **members):
    """A class of one name, whatever its code."""

    class Mine(jb.UCB1):
        def scores(self, state, t, key):
            return super().scores(state, t, key) * factor

    for name, member in members.items():
        setattr(Mine, name, member)
    return Mine()


def law_with(factor):
    class Law(jb.Pareto):
        def isf(self, u):
            return super().isf(u) + factor

    return Law


def test_changed_code_of_a_policy_is_refused_by_name(tmp_path, computed):  # noqa: F811
    def build_with(policy, law=jb.Pareto):
        return lambda gap, alpha: (
            jb.Instance(jb.Bernoulli([0.4, 0.4 + gap]), law([1.0, alpha])),
            {"T": policy, "other": jb.UCB1()},
        )

    first = run(build=build_with(policy_with()), store=tmp_path)
    xr.testing.assert_equal(run(build=build_with(policy_with()), store=tmp_path), first)
    before = len(computed)
    for changed in (policy_with(-1.0), policy_with(wait=lambda self, delay: delay + 1), jb.Uniform()):
        with refused(ValueError, "the code of policy 'T' has changed since the store was made"):
            run(build=build_with(changed), store=tmp_path)
    with refused(ValueError, "the code of the reward or delay law has changed since the store was made"):
        run(build=build_with(policy_with(), law_with(1)), store=tmp_path)
    assert len(computed) == before


@pytest.mark.parametrize("other", [lambda t: jnp.full_like(t, 0.3, float), lambda t: jnp.full_like(t, 0.4, float)])
def test_a_function_closed_over_is_code(other):
    instance, rounds = jb.Instance(jb.Bernoulli([0.4, 0.5]), jb.Pareto([1.0, 0.5])), np.arange(1, 5, dtype=np.int32)

    def of(alpha):
        return fingerprint.of_run(instance, jb.PatientBandits(alpha), 4, rounds, "cpu")

    assert of(lambda t: jnp.full_like(t, 0.3, float)) == of(lambda t: jnp.full_like(t, 0.3, float))
    assert (of(other) == of(lambda t: jnp.full_like(t, 0.3, float))) == bool(other(1) < 0.35)


@pytest.mark.parametrize("size", [3, 3000])
def test_an_array_closed_over_is_code(size):
    instance, rounds = jb.Instance(jb.Bernoulli([0.4, 0.5]), jb.Pareto([1.0, 0.5])), np.arange(1, 5, dtype=np.int32)

    def of(table):
        return fingerprint.of_run(
            instance, policy_with(wait=lambda self, delay: jnp.asarray(table)[delay % size]), 4, rounds, "cpu"
        )

    table = np.arange(size)
    assert of(table) == of(table.copy()) != of(table + 1)


PRINT = """
import jax
jax.config.update("jax_enable_x64", {x64})
jax.config.update("jax_num_cpu_devices", {devices})
from tests.sweeps import test_store
test_store.policies()
print(*test_store.fingerprints({order}))
"""


def policies():
    return {
        "UCB1": jb.UCB1(),
        "PatientBandits": jb.PatientBandits(jb.corollary1_alpha),
        "DUCB": jb.DUCB(window=10, cdf=jb.Pareto(0.7)),
        "Mine": policy_with(2.0),
    }


def fingerprints(order: int) -> list[str]:
    instance, rounds = jb.Instance(jb.Bernoulli([0.4, 0.5]), jb.Pareto([1.0, 0.5])), np.array([5, 30], np.int32)
    found = {
        name: fingerprint.of_run(instance, policy, 30, rounds, "cpu")
        for name, policy in list(policies().items())[::order]
    }
    return [*(found[name] for name in sorted(found)), fingerprint.of_instance(instance, "cpu")]


@pytest.mark.slow
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="starts CPU devices")
def test_other_processes_have_the_same_fingerprints():
    expected = fingerprints(1)
    assert fingerprints(-1) == expected
    assert len(set(expected)) == 5
    for seed, devices, order in ((1, 1, -1), (2, 4, 1)):
        code = PRINT.format(x64=jax.config.jax_enable_x64, devices=devices, order=order)
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=300
        )
        assert done.stdout.split() == expected


def test_a_store_opens_without_its_build(small, tmp_path, monkeypatch):  # noqa: F811
    """Also before it is finished: what is not done is NaN."""
    collected, left = block.collected, [20]

    def interrupted(task, running):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return collected(task, running)

    with monkeypatch.context() as patch:
        patch.setattr(block, "collected", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(curves=10, store=tmp_path / "s.zarr")
    part = jb.open_sweep(tmp_path / "s.zarr")
    assert not (tmp_path / "s.zarr" / "result").exists()
    whole = run(curves=10, store=tmp_path / "s.zarr")
    assert whole.attrs["done"] == 1
    assert 0 < part.attrs["done"] < 1
    assert part.attrs["done"] == pytest.approx(float(part.final_regret.notnull().mean()))
    complete = part.final_regret.notnull().all("seed")
    assert 0 < complete.sum() < complete.size
    for name in whole.data_vars:
        there = part[name].notnull()
        xr.testing.assert_equal(part[name], whole[name].where(there))
        if "seed" not in whole[name].dims and "curve" not in whole[name].dims:
            xr.testing.assert_equal(there, complete & whole[name].notnull())
    xr.testing.assert_identical(jb.open_sweep(tmp_path / "s.zarr"), whole)


def test_the_result_opens_with_xarray_alone(tmp_path):
    whole = run({("gap", "alpha"): [(0.1, 0.3), (0.4, 0.6)]}, curves=10, store=tmp_path / "s.zarr")
    xr.testing.assert_identical(jb.open_sweep(tmp_path / "s.zarr"), whole)
    code = f"""
import sys, warnings, xarray
warnings.simplefilter("error")
data = xarray.open_zarr({str(tmp_path / "s.zarr")!r}, group="result", consolidated=False).load()
xarray.testing.assert_identical(data, xarray.open_zarr({str(tmp_path / "s.zarr" / "result")!r}).load())
assert "jaxbandit" not in sys.modules and "jax" not in sys.modules
data.to_netcdf({str(tmp_path / "there.nc")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=100)
    with xr.open_dataset(tmp_path / "there.nc") as there:
        xr.testing.assert_equal(there, whole)


def test_a_folder_that_is_no_store_cannot_be_opened(tmp_path):
    with refused(ValueError, "open_sweep: .* is not the store of a sweep"):
        jb.open_sweep(tmp_path)


def dropped(*names):
    def build(gap, alpha):
        instance, policies = test_sweep.build(gap, alpha)
        return instance, {{"UCB1": "renamed"}.get(n, n) if "renamed" in names else n: p
                          for n, p in policies.items() if n in names or "renamed" in names}  # fmt: skip

    return build


def test_policies_come_and_go(small, computed, tmp_path):  # noqa: F811
    def same(found, expected):
        xr.testing.assert_equal(found, expected.drop_vars([n for n in expected.data_vars if n not in found]))

    whole = run()
    del computed[:]
    same(run(build=dropped("UCB1"), store=tmp_path), whole.sel(policy=["UCB1"]))
    assert runs_in(computed) == 60
    same(run(store=tmp_path), whole)
    assert runs_in(computed) == 120
    same(run(build=dropped("Discarding"), store=tmp_path), whole.sel(policy=["Discarding"]))
    same(run(store=tmp_path), whole)
    assert runs_in(computed) == 120
    renamed = run(build=dropped("renamed"), store=tmp_path)
    np.testing.assert_array_equal(renamed.final_regret, whole.final_regret)
    assert runs_in(computed) == 180


@pytest.mark.parametrize("axes", [{"gap": [0.2], "alpha": [0.6, 0.3]}, AXES])
@pytest.mark.parametrize("seeds", [4, 13, *(pytest.param(n, marks=pytest.mark.slow) for n in (7, 10))])
def test_fewer_of_anything_is_what_it_would_be_alone(computed, tmp_path, axes, seeds):  # noqa: F811
    run(curves=8, store=tmp_path)
    before = runs_in(computed)
    xr.testing.assert_equal(run(axes, seeds=seeds, curves=3, store=tmp_path), run(axes, seeds=seeds, curves=3))
    alone = 2 * seeds * len(axes["gap"]) * 2
    assert seeds != 10 or runs_in(computed) == before + alone


@pytest.mark.parametrize("policies", [("UCB1",), ("UCB1", "Discarding")])
def test_a_block_with_cells_that_are_not_asked_for_is_finished(tmp_path, monkeypatch, policies):
    """What is computed beside them is vouched for too."""
    with monkeypatch.context() as patch:
        patch.setattr(block, "collected", lambda task, running: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(build=dropped("UCB1"), store=tmp_path)
    few = {"gap": [0.2], "alpha": [0.3]}
    xr.testing.assert_equal(run(few, dropped(*policies), store=tmp_path), run(few, dropped(*policies)))
    with refused(ValueError, "build: gives"):
        run(build=test_sweep.other_build, store=tmp_path)
    xr.testing.assert_equal(run(store=tmp_path), run())


def test_a_result_that_cannot_be_written_is_given_all_the_same(tmp_path, monkeypatch):
    whole = run(store=tmp_path)
    shutil.rmtree(tmp_path / "result")
    monkeypatch.setattr(xr.Dataset, "to_zarr", lambda *args, **kwargs: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.warns(UserWarning, match="the result could not be written"):
        xr.testing.assert_identical(run(store=tmp_path), whole)
    assert Path(tmp_path).exists()
    assert whole.attrs["horizon"] == HORIZON
