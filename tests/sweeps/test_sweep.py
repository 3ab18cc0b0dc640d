"""Sweeps: labelled, the same numbers as single runs, resumable, and clear about what they cannot do."""

import errno
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import _local as files

import jaxbandit as jb
from jaxbandit.sweeps import block, exact
from jaxbandit.sweeps import run as run_module
from jaxbandit.sweeps.plan import extended
from tests.examples import refused

HORIZON = 40
AXES = {"gap": [0.1, 0.2, 0.4], "alpha": [0.3, 0.6]}


class Lead(jb.UCB1):
    """UCB1 that reports how much better the best arm looks."""

    def diagnostics(self, state, t):
        return {"lead": jnp.ptp(state.rewards / jnp.maximum(state.pulls, 1).astype(float))}


def build(gap, alpha):
    instance = jb.Instance(jb.Bernoulli([0.4, 0.4 + gap]), jb.Pareto([1.0, alpha]))
    return instance, {"UCB1": Lead(), "Discarding": jb.Discarding(window=20 * alpha // 1 + 1)}


def alone():
    return build(0.4, 0.6)[0], Lead()


def run(axes=AXES, build=build, **options) -> xr.Dataset:
    return jb.sweep(build, axes, **({"horizon": HORIZON, "seeds": 10, "key": 3} | options))


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """The whole sweep in one block."""
    return run(curves=10)


@pytest.fixture
def small(monkeypatch):
    """Many blocks: four runs, so one cell and four seeds at most, of a policy."""
    monkeypatch.setitem(block.STEPS, "cpu", 4 * HORIZON)


@pytest.fixture
def computed(monkeypatch) -> list[tuple[int, int]]:
    """Cells and seeds of every block that is computed."""
    blocks = []
    collected = block.collected

    def counting(task, running):
        blocks.append((task.cells, task.used))
        return collected(task, running)

    monkeypatch.setattr(block, "collected", counting)
    return blocks


def runs_in(blocks: list[tuple[int, int]]) -> int:
    return sum(cells * seeds for cells, seeds in blocks)


def batch(gap: float, alpha: float, policy: str) -> jb.Run:
    instance, policies = build(gap, alpha)
    return jb.simulate_batch(3, instance, policies[policy], horizon=HORIZON, seeds=10)


@pytest.mark.parametrize("policy", ["UCB1", "Discarding"])
def test_every_cell_is_a_batch_with_the_same_key(data, policy):
    for gap, alpha in ((0.1, 0.3), (0.2, 0.6)):
        alone, cell = batch(gap, alpha, policy), data.sel(gap=gap, alpha=alpha, policy=policy)
        regret = np.asarray(alone.regret)
        np.testing.assert_array_equal(cell.final_regret, regret[:, -1])
        np.testing.assert_array_equal(cell.regret_curve, regret)
        np.testing.assert_array_equal(cell.pulls_mean, np.asarray(alone.pulls).mean(axis=0))
        exact = regret.astype(float)
        np.testing.assert_allclose(cell.regret_mean, exact.mean(axis=0), rtol=1e-6)
        error = exact.std(axis=0, ddof=1) / np.sqrt(10)
        np.testing.assert_allclose(cell.regret_standard_error, error, rtol=1e-6, atol=1e-7)
        q = [0.05, 0.25, 0.5, 0.75, 0.95]
        np.testing.assert_allclose(cell.regret_quantile, np.quantile(exact, q, axis=0).T, rtol=1e-6)
        for name, values in alone.diagnostics.items():
            np.testing.assert_allclose(cell[f"{name}_mean"], np.mean(values, axis=0), atol=1e-6)


def test_a_diagnostic_is_nan_for_a_policy_without(data):
    assert data.lead_mean.sel(policy="UCB1").notnull().all()
    assert data.lead_mean.sel(policy="Discarding").isnull().all()


def test_the_default_quantiles_can_be_selected(data):
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert data.regret_quantile.sel(quantile=q).notnull().all()


def test_blocks_stay_small_with_many_arms_and_few_seeds(monkeypatch):
    """The sums of a cell, which it has whatever its runs, count too."""
    monkeypatch.setattr(block, "RESULT_BYTES", 2**20)

    def wide(shift):
        means = np.linspace(0.2, 0.4 + shift, 50)
        return jb.Instance(jb.Bernoulli(means), jb.Pareto(np.full(50, 0.5))), jb.UCB1()

    axes = {"shift": np.linspace(0.1, 0.5, 100)}
    spec = run_module._spec(wide, axes, 200, 2, 0, None, None)
    plan = extended(None, spec.ask(with_code=False))
    assert sum(array.bytes for array in spec.arrays(plan, "UCB1").values()) <= 1.1 * block.RESULT_BYTES


def test_everything_has_a_label(data):
    assert dict(data.sizes) == {
        "gap": 3, "alpha": 2, "policy": 2, "round": 40, "arm": 2, "seed": 10, "quantile": 5, "curve": 10
    }  # fmt: skip
    assert data.regret_mean.dims == ("gap", "alpha", "policy", "round")
    assert data.pulls_mean.dims == ("gap", "alpha", "policy", "round", "arm")
    assert data.final_regret.dims == ("gap", "alpha", "policy", "seed")
    assert data.gap.values.tolist() == AXES["gap"]
    assert data.policy.values.tolist() == ["UCB1", "Discarding"]
    assert data["round"].values[[0, -1]].tolist() == [1, HORIZON]
    assert all(array.attrs["long_name"] for array in data.variables.values())
    assert {data[name].units for name in data if "regret" in name} == {"reward"}
    (line,) = data.regret_mean.sel(gap=0.4, alpha=0.3, policy="UCB1").plot()
    assert (line.axes.get_xlabel(), line.axes.get_ylabel()) == ("round t", "mean regret [reward]")


def test_the_attributes_say_how_to_run_it_again(data):
    assert data.attrs["key"] == [0, 3]
    assert (data.attrs["horizon"], data.attrs["seeds"]) == (HORIZON, 10)
    assert "jb.Pareto([1.0, alpha])" in data.attrs["build"]
    assert data.attrs["jax"] == jax.__version__
    assert data.attrs["x64"] == jax.config.jax_enable_x64
    assert data.attrs["device"].startswith(jax.default_backend())


@pytest.mark.parametrize("ending", ["zarr", "nc"])
def test_a_dataset_can_be_written_and_read(data, tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    if ending == "zarr":
        data.to_zarr(path, consolidated=False)
        again = xr.open_zarr(path, consolidated=False)
    else:
        data.to_netcdf(path)
        again = xr.open_dataset(path)
    with again:
        xr.testing.assert_equal(again, data)
        assert again.attrs["build"] == data.attrs["build"]


def test_zipped_axes_are_one_dimension():
    pairs = [(0.1, 0.3), (0.4, 0.6), (0.2, 0.3), (0.1, 0.6), (0.4, 0.3), (0.2, 0.7)]
    zipped = run({("gap", "alpha"): pairs}, curves=10)
    assert zipped.final_regret.dims == ("gap_alpha", "policy", "seed")
    assert list(zip(zipped.gap.values, zipped.alpha.values, strict=True)) == pairs
    np.testing.assert_array_equal(zipped.regret_curve[1, 0], batch(0.4, 0.6, "UCB1").regret)


def test_a_single_policy_and_no_axes():
    cell = run({}, alone)
    assert cell.final_regret.dims == ("policy", "seed")
    assert cell.policy.item() == "Lead"
    np.testing.assert_array_equal(cell.final_regret[0], batch(0.4, 0.6, "UCB1").regret[:, -1])


def test_a_single_run_has_no_standard_error():
    assert run({}, alone, seeds=1).regret_standard_error.isnull().all()


def test_curves_that_are_not_kept_give_no_quantiles_but_the_last(monkeypatch, data):
    monkeypatch.setattr("jaxbandit.sweeps.block.CURVE_BYTES", 6 * 2 * HORIZON * data.final_regret.dtype.itemsize * 4)
    few = run()
    first = data.regret_curve.isel(curve=slice(4)).quantile([0.5], "curve").squeeze("quantile")
    np.testing.assert_allclose(few.regret_quantile.sel(quantile=0.5)[..., :-1], first[..., :-1], rtol=1e-6)
    np.testing.assert_array_equal(few.regret_quantile[..., -1, :], data.regret_quantile[..., -1, :])
    monkeypatch.setattr("jaxbandit.sweeps.block.CURVE_BYTES", 0)
    none = run()
    assert none.regret_quantile[..., :-1, :].isnull().all()
    np.testing.assert_array_equal(none.regret_quantile[..., -1, :], data.regret_quantile[..., -1, :])


def test_differences_between_selections_are_paired(data):
    first, second = (data.final_regret.sel(policy=policy, alpha=0.3) for policy in ("UCB1", "Discarding"))
    paired = jb.paired_difference(first, second)
    plain = jb.paired_difference(first.to_numpy().T, second.to_numpy().T)
    jax.tree.map(np.testing.assert_array_equal, paired, plain)
    assert paired.mean.shape == (3,)
    assert jb.mean_ci(data.regret_curve).mean.shape == (3, 2, 2, 40)
    with refused(ValueError, "paired_difference: values need a dimension seed"):
        jb.paired_difference(data.regret_mean, data.regret_mean)


def test_the_cut_into_blocks_changes_nothing(small, computed, data):
    xr.testing.assert_identical(run(curves=10), data)
    assert len(computed) == 2 * 6 * 3


@pytest.mark.parametrize(("cells", "seeds"), [(1, 1), (1, 1000), (5, 3), (5, 300), (40, 7), (3, 64)])
@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("width", [1, 32, 1024])
def test_bricks_cover_a_block(cells, seeds, devices, width):
    shape = block.bricks(cells, seeds, devices, width)
    assert shape.rows * shape.cells >= cells
    assert shape.columns * shape.seeds >= seeds
    assert shape.cells == 1 or shape.columns == 1
    assert shape.rows * shape.columns >= min(devices, cells * seeds) / 2
    assert shape.cells * shape.seeds <= max(width, 8) + 7


class Tabled(jb.UCB1):
    """UCB1 with numbers of which it makes others, which do not depend on the run."""

    table: jax.Array

    def scores(self, state, t, key):
        return super().scores(state, t, key) + 0 * jnp.sum(jnp.sin(self.table))


@pytest.mark.parametrize("shared", [True, False])
def test_cells_with_one_policy_compute_once_what_it_makes_of_its_numbers(shared, monkeypatch):
    """The program has no sine of a table a cell, unless tables differ."""
    texts = []
    on_devices = block._on_devices

    def lowered(*inputs, **static):
        texts.append(on_devices.lower(*inputs, **static).as_text())
        return on_devices(*inputs, **static)

    monkeypatch.setattr(block, "_on_devices", lowered)

    def build(gap):
        table = jnp.linspace(0, 1 if shared else gap, 37)
        return jb.Instance(jb.Bernoulli([0.4, 0.4 + gap]), jb.Pareto([1.0, 0.5])), Tabled(table=table)

    data = jb.sweep(build, {"gap": [0.1, 0.2, 0.4]}, horizon=HORIZON, seeds=5, key=3)
    (text,) = texts
    sines = {re.search(r"tensor<(.*?)xf", line)[1] for line in text.splitlines() if "stablehlo.sine" in line}
    cells = 3 if len(jax.local_devices()) == 1 else 1
    assert sines == {"37"} if shared or cells == 1 else {"3x37"}
    for gap in (0.1, 0.4):
        alone = jb.simulate_batch(3, *build(gap), horizon=HORIZON, seeds=5)
        np.testing.assert_array_equal(data.final_regret.sel(gap=gap)[0], alone.regret[:, -1])


def test_policies_are_one_only_if_all_their_bits_are():
    nan = np.full((2, 3), np.nan, np.float32)
    assert block._alike((nan, np.ones((2, 1))))
    assert block._alike(())
    assert not block._alike((nan, np.array([0.0, -0.0])))


def test_blocks_of_one_policy_share_a_program(small):
    before = block._on_devices._cache_size()
    run({"gap": [0.1, 0.2, 0.3, 0.4, 0.45]}, lambda gap: (build(gap, 0.6)[0], jb.Discarding(7)), seeds=2)
    assert block._on_devices._cache_size() == before + 1


@pytest.mark.parametrize("runs", [1, 8, 5000, 3 * exact.AT_ONCE + 5])
def test_sums_of_regret_are_exact(runs):
    """Against Python's integers, where the squares of many large regrets overflow 64 bits."""
    rng = np.random.default_rng(0)
    rounds = np.array([1, 1000, 2**24])
    regret = jnp.asarray(rng.uniform(0.99, 1, (3, runs)) * rounds[:, None])
    used = np.arange(runs) < max(runs - 3, 1)
    sums = jax.jit(exact.regret_sums)(regret, used, jnp.asarray(2.0 ** exact.regret_bits(rounds)))
    limbs = exact.regret_limbs(jax.device_get(sums))
    squares = exact.whole(limbs[:, 1], limbs[:, 2])
    for c, bits in enumerate(exact.regret_bits(rounds)):
        q = [round(float(x) * 2.0 ** int(bits)) for x in regret[c, used]]
        assert max(q) <= 2**31
        assert limbs[c, 0] == sum(q)
        assert squares[c] == sum(x * x for x in q)
    assert runs < 5000 or squares[0] > 2**63
    if runs > 1:
        error = exact.standard_error(limbs, rounds, int(used.sum()))
        expected = np.asarray(regret[:, used], float).std(axis=1, ddof=1) / np.sqrt(used.sum())
        np.testing.assert_allclose(error, expected, rtol=1e-6)


@pytest.mark.parametrize("runs", [1, 9, exact.AT_ONCE + 1])
def test_sums_of_diagnostics_are_exact(runs):
    rng = np.random.default_rng(1)
    values = jnp.asarray(rng.normal(size=(4, runs)) * 10.0 ** np.array([[-6], [0], [5], [9]]))
    values = values.at[3, 0].set(jnp.inf)
    used = np.arange(runs) < max(runs - 1, 1)
    limbs = exact.diagnostic_limbs(jax.device_get(jax.jit(exact.diagnostic_sums)(values, used)))
    kept = [[float(x) for x in row[used] if np.isfinite(x)] for row in values]
    expected = [sum(round(x * 2.0**exact.DIAGNOSTIC_BITS) for x in row) for row in kept]
    assert exact.whole(limbs[:, 0], limbs[:, 1]).tolist() == expected
    assert limbs[:, 2].tolist() == [0, 0, 0, 1]


def test_a_killed_sweep_goes_on_where_it_was(small, computed, data, tmp_path, monkeypatch):
    collected = block.collected

    def interrupted(task, running):
        if len(computed) == 7:
            raise KeyboardInterrupt
        return collected(task, running)

    with monkeypatch.context() as patch:
        patch.setattr(block, "collected", interrupted)
        with pytest.raises(KeyboardInterrupt) as stop:
            run(curves=10, store=tmp_path / "s.zarr")
    assert "7 of 36 blocks were done and are stored in" in stop.value.__notes__[0]
    for _ in range(2):
        xr.testing.assert_identical(run(curves=10, store=tmp_path / "s.zarr"), data)
        assert len(computed) == 36


def test_more_seeds_and_longer_axes_compute_only_what_is_new(small, computed, data, tmp_path):
    store = tmp_path / "s.zarr"
    run({"gap": [0.4], "alpha": [0.3]}, seeds=4, curves=10, store=store)
    assert runs_in(computed) == 2 * 4
    run({"gap": [0.4], "alpha": [0.3]}, curves=10, store=store)
    assert runs_in(computed) == 2 * 10
    run({"gap": [0.1, 0.4], "alpha": [0.3, 0.6]}, curves=10, store=store)
    assert runs_in(computed) == 2 * 40
    xr.testing.assert_identical(run(curves=10, store=store), data)
    assert runs_in(computed) == 2 * 60


def test_a_store_with_room_for_more_seeds_takes_them(computed, data, tmp_path):
    cell = {"gap": [0.2], "alpha": [0.3]}
    run(cell, seeds=4, store=tmp_path)
    more = run(cell, seeds=8, store=tmp_path)
    np.testing.assert_array_equal(more.final_regret, data.final_regret.sel(gap=[0.2], alpha=[0.3], seed=slice(7)))
    assert computed == [(1, 4)] * 4


def other_build(gap, alpha):
    return build(gap, alpha + 0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": 4}, r"key: \[0, 3\] in the store, \[0, 4\] in the call"),
        ({"horizon": 41}, "What differs: horizon: 40 in the store, 41 in the call$"),
        ({"checkpoints": [3, 40]}, r"differs: checkpoints: 'those by default' in the store, \[3, 40\] in the call$"),
        ({"curves": 4, "seeds": 30}, "differs: curves: 3 in the store, 4 in the call$"),
        ({"axes": {"alpha": [0.3, 0.6], "gap": [0.1, 0.2, 0.4]}}, r"axes: \['gap', 'alpha'\] in the store"),
        ({"build": other_build}, "build: gives an instance with other numbers than what was stored, at 6 cells"),
        ({"key": 4, "horizon": 41}, "horizon: .*; key: "),
    ],
)
def test_a_store_made_with_other_arguments_is_refused(options, message, finished, computed):
    with refused(ValueError, "was made with other arguments.*" + message):
        run(**{"store": finished} | options)
    assert not computed


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("store") / "finished.zarr"
    run(store=path, curves=3)
    return path


def test_a_folder_that_is_no_store_of_ours_is_refused(tmp_path, computed):
    (tmp_path / "thesis.tex").write_text("")
    with refused(ValueError, "is not the store of a sweep .it holds thesis.tex"):
        run(store=tmp_path)
    zarr.create_group(tmp_path / "other.zarr")
    with refused(ValueError, "is not the store of a sweep, but another zarr group"):
        run(store=tmp_path / "other.zarr")
    zarr.create_group(tmp_path / "old.zarr", attributes={"format": "jaxbandit sweep 2"})
    with refused(ValueError, "is the store of another version of jaxbandit"):
        run(store=tmp_path / "old.zarr")
    for path in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "below"):
        with refused(OSError, "cannot be written"):
            run(store=path)
    assert not computed


def test_a_full_disk_loses_nothing(small, computed, data, tmp_path, monkeypatch):
    put, writes = files._put, []

    def full(*args, **kwargs):
        writes.append(args)
        if len(writes) > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return put(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_put", full)
        with pytest.raises(OSError, match=r"No space left on device.; make room") as stop:
            run(curves=10, store=tmp_path)
        assert "blocks were done and are stored in" in stop.value.__notes__[0]
        before = len(computed)
        with pytest.raises(OSError, match=r"No space left on device"):  # found out before the first run
            run(curves=10, store=tmp_path, seeds=30)
        assert len(computed) == before
    xr.testing.assert_identical(run(curves=10, store=tmp_path), data)


def test_any_executor_gives_the_same(small, data, tmp_path):
    with ThreadPoolExecutor(3) as executor:
        xr.testing.assert_identical(run(curves=10, executor=executor), data)


def test_a_task_that_fails_does_not_take_the_others_with_it(small, data, tmp_path, monkeypatch):
    compute, seen = block.compute, []

    def failing(task):
        seen.append(task)
        if len(seen) == 4:
            raise RuntimeError("out of luck")
        return compute(task)

    monkeypatch.setattr(block, "compute", failing)
    with ThreadPoolExecutor(2) as executor:
        with pytest.raises(RuntimeError, match="out of luck") as stop:
            run(curves=10, executor=executor, store=tmp_path)
        done = sum(int(zarr.open_array(path)[:].sum()) for path in tmp_path.glob("policy-*/done"))
        assert done == len(seen) - 1 >= 3
        assert f"{done} of 36 blocks" in stop.value.__notes__[0]
        xr.testing.assert_identical(run(curves=10, executor=executor, store=tmp_path), data)
    assert len(seen) == 37


def test_threads_that_share_a_store_do_not_corrupt_it(small, data, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        for result in threads.map(lambda _: run(curves=10, store=tmp_path), range(2)):
            xr.testing.assert_identical(result, data)


def test_what_an_executor_pickles_only_later_is_found_out_too(monkeypatch):
    def unsent(task):
        raise AttributeError("Can't pickle local object 'build.<locals>.Mine'")

    monkeypatch.setattr(block, "compute", unsent)
    with ThreadPoolExecutor(1) as executor, refused(TypeError, "cannot pickle what build returns .*define the classes"):
        run(executor=executor)


def test_what_cannot_be_pickled_is_found_out_before_a_worker_starts():
    class Local(jb.UCB1):
        pass

    with (
        ProcessPoolExecutor(1) as executor,
        refused(TypeError, "cannot pickle what build returns .*define the classes"),
    ):
        run({}, lambda: (build(0.4, 0.6)[0], Local()), executor=executor)


def ones(**others):
    return {"gap": [0.1], "alpha": [0.3]} | others


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ([0.1], TypeError, "axes must map names to values"),
        (ones(gap=[]), ValueError, "axis gap must be a list of at least one number"),
        (ones(gap=0.1), ValueError, "axis gap must be a list of at least one number"),
        (ones(gap=[0.1, 0.2, 0.1]), ValueError, r"axis gap has 0.1 twice \(index 0 and 2\)"),
        (ones(gap=[0.1, np.nan]), ValueError, "axis gap has a NaN at index 1"),
        (ones(gap=["a"]), TypeError, "axis gap must be numbers"),
        (ones(gap=[[0.1], [0.1, 0.2]]), ValueError, "axis gap is not a rectangular array"),
        (ones(seed=[1]), ValueError, "axis 'seed' is named like an array or dimension of the result"),
        (ones(regret_mean=[1]), ValueError, "axis 'regret_mean' is named like an array or dimension"),
        (ones(beta=[1]), TypeError, r"build must take the axes .* unexpected keyword argument 'beta'"),
        ({"gap": [0.1]}, TypeError, "build must take the axes .*missing a required argument: 'alpha'"),
        ({1: [0.1]}, TypeError, "an axis needs the name of an argument of build, got 1"),
        ({"gap": [0.1], ("gap", "alpha"): [(0.1, 0.3)]}, ValueError, "axis 'gap' is there twice"),
        ({("gap", "alpha"): [(0.1, 0.3), (0.2,)]}, ValueError, r"axis \(gap, alpha\) needs 2 numbers a step"),
        ({("gap", "alpha"): [(0.1, 0.3)] * 2}, ValueError, r"axis gap, alpha has \(0.1, 0.3\) twice"),
        (ones(gap=[0.1, 0.7]), ValueError, r"Bernoulli: mean must be in \[0, 1\]"),
    ],
)
def test_axes_that_make_no_grid_are_refused(axes, error, message, computed):
    with refused(error, message):
        run(axes)
    assert not computed


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (3, TypeError, "build must be a function"),
        (lambda x: 3, TypeError, "build must return an Instance and policies, got 3 at {'x': 1}"),
        (lambda x: (build(0.1, 0.3)[0], {}), TypeError, "build must return a policy or a dict of policies"),
        (lambda x: (build(0.1, 0.3)[0], {1: jb.UCB1()}), TypeError, "policies need names that are strings"),
        (
            lambda x: (jb.Instance(jb.Bernoulli([0.5] * x), jb.NoDelay()), jb.UCB1()),
            ValueError,
            "build gives 1 arms at {'x': 1} and 2 at {'x': 2}",
        ),
        (
            lambda x: (build(0.1, 0.3)[0], {f"UCB{x}": jb.UCB1()}),
            ValueError,
            r"build gives the policies \['UCB1'\] at {'x': 1} and \['UCB2'\] at {'x': 2}",
        ),
        (
            lambda x: (build(0.1, 0.3)[0], {"p": jb.UCB1() if x == 1 else jb.Uniform()}),
            ValueError,
            "and another structure",
        ),
        (
            lambda x: (build(0.1, 0.3)[0], jb.PatientBandits(lambda t: 0.3)),
            ValueError,
            "functions must be defined outside build",
        ),
    ],
)
def test_a_build_that_makes_no_grid_is_refused(build, error, message, computed):
    with refused(error, message):
        run({"x": [1, 2]}, build)
    assert not computed


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": 0}, ValueError, "seeds must be an integer from 1"),
        ({"horizon": 0}, ValueError, "horizon must be an integer from 1"),
        ({"key": -1}, ValueError, "key must be an integer from 0"),
        ({"checkpoints": [50]}, ValueError, "checkpoints must increase"),
        ({"quantiles": [50]}, ValueError, r"quantiles must be in \[0, 1\]"),
        ({"curves": 0}, ValueError, "curves must be an integer from 1"),
        ({"executor": 3}, TypeError, "executor must be a concurrent.futures.Executor"),
    ],
)
def test_options_out_of_range_are_refused(options, error, message, computed):
    with refused(error, message):
        run(**options)
    assert not computed


def test_a_score_that_is_nan_is_refused():
    class Broken(jb.UCB1):
        def scores(self, state, t, key):
            return jnp.where(t > 5, jnp.nan, super().scores(state, t, key))

    with refused(ValueError, "policy Broken gave a score that is NaN"):
        run({}, lambda: (build(0.4, 0.6)[0], Broken()))


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"sweep needs zarr: pip install 'jaxbandit\[sweep\]'"):
        run()


def test_progress_is_for_terminals(capsys, monkeypatch):
    run()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run(progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run()
    assert re.search(r"100%.*120/120 .*runs/s", capsys.readouterr().err)


def test_a_sweep_goes_on_from_a_past_and_gives_the_rewards_of_every_run(tmp_path):
    past = jb.History([0, 1, 0, 1, 1], [2, -1, -1, 1, -1])

    def build(mean):
        return jb.Instance(jb.Bernoulli([0.3, mean]), jb.Pareto([1.0, 0.5])), jb.PatientBandits(0.3)

    options = {"horizon": 30, "seeds": 4, "key": 0, "rewards": True, "store": tmp_path / "runs"}
    data = jb.sweep(build, {"mean": [0.2, 0.6]}, history=past, **options)
    for mean in (0.2, 0.6):
        instance, policy = build(mean)
        runs = jb.simulate_batch(0, instance, policy, horizon=30, seeds=4, rewards=True, history=past)
        cell = data.sel(mean=mean, policy="PatientBandits")
        np.testing.assert_array_equal(cell.final_regret, runs.regret[:, -1])
        np.testing.assert_array_equal(cell.final_rewards, runs.rewards.seen[:, -1])
        for name, of_runs in runs.rewards._asdict().items():
            np.testing.assert_array_equal(cell[f"rewards_{name}_mean"], np.mean(of_runs, axis=0, dtype=float))
    np.testing.assert_array_equal(jb.open_sweep(tmp_path / "runs").final_rewards, data.final_rewards)
    with refused(ValueError, "history"):
        jb.sweep(build, {"mean": [0.2]}, **options)
    with refused(ValueError, "rewards"):
        jb.sweep(build, {"mean": [0.2]}, history=past, **(options | {"rewards": False}))
