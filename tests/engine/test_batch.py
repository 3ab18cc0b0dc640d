"""Many runs at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import batch as engine
from tests.examples import refused

HORIZON = 80
INSTANCE = jb.Instance(jb.Bernoulli([0.4, 0.6]), jb.Pareto([1.0, 0.5]))


def runs(seeds=7, key=0, alpha=0.3, **options) -> jb.Run:
    options = {"horizon": HORIZON} | options
    return jb.simulate_batch(key, INSTANCE, jb.PatientBandits(alpha), seeds=seeds, **options)


def test_run_i_of_a_batch_is_the_run_of_fold_in():
    batch = runs(key=11)
    for i in (0, 3, 6):
        key = jax.random.fold_in(jax.random.key(11), i)
        alone = jb.simulate(key, INSTANCE, jb.PatientBandits(0.3), horizon=HORIZON)
        np.testing.assert_array_equal(batch.pulls[i], alone.pulls)
        np.testing.assert_array_equal(batch.regret[i], alone.regret)


def test_a_batch_has_seeds_in_front_and_one_list_of_rounds():
    batch = runs(5, checkpoints=[10, 80])
    assert batch.rounds.shape == (2,)
    assert batch.pulls.shape == (5, 2, 2)
    assert batch.regret.shape == (5, 2)


def test_the_bits_do_not_depend_on_the_devices():
    """However many there are here (four in the setting ``devices``): on one alone, the runs are the same."""
    everywhere = runs(9)
    with jax.default_device(jax.local_devices()[-1]):
        alone = runs(9)
    jax.tree.map(np.testing.assert_array_equal, everywhere, alone)


def test_inputs_that_sit_on_one_device_are_no_obstacle():
    key = jax.device_put(jax.random.key(0), jax.local_devices()[-1])
    instance = jax.device_put(INSTANCE, jax.local_devices()[0])
    batch = jb.simulate_batch(key, instance, jb.PatientBandits(0.3), horizon=HORIZON, seeds=4)
    jax.tree.map(np.testing.assert_array_equal, batch, runs(4))


def test_batches_work_inside_jit_and_vmap():
    alphas = jnp.array([0.1, 0.4])
    inside = jax.jit(jax.vmap(lambda alpha: runs(3, alpha=alpha)[1:]))(alphas)
    for i in range(2):
        outside = runs(3, alpha=alphas[i])[1:]
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], inside), outside)


def test_new_numbers_compile_nothing():
    runs(6)
    compiled = engine._on_devices._cache_size()
    for alpha in (0.1, 0.25, 0.5):
        runs(6, key=int(100 * alpha), alpha=alpha)
    assert engine._on_devices._cache_size() == compiled


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("seeds", [1, 2, 400, 1000, 100_000])
@pytest.mark.parametrize("horizon", [100, 3000, 1_000_000])
def test_chunks_cover_the_seeds_and_fit(devices, seeds, horizon):
    bytes_per_run = engine.bytes_per_run(INSTANCE, jb.AdaptPatientBandits(1.0, 0.2, 0.5), horizon, 200)
    assert bytes_per_run > 16 * horizon  # a log, sums by delay for two windows and two arms, and the calendar
    layout = engine._layout(seeds, devices, engine.side_by_side(bytes_per_run, 2, "cpu"))
    assert layout.devices == devices
    total = layout.devices * layout.chunks * layout.lanes
    assert seeds <= total < seeds + devices * (layout.chunks * engine.VECTOR + 1)
    assert layout.lanes <= engine.VECTOR or layout.lanes % engine.VECTOR == 0
    assert layout.lanes * bytes_per_run <= engine.MEMORY_BYTES


def test_the_memory_of_a_batch_does_not_grow_with_its_seeds_beyond_the_result():
    inputs = (jnp.zeros(2, jnp.uint32), INSTANCE, jb.UCB1(), engine.plan(INSTANCE, jb.UCB1(), 500, [500]))

    def temporary(chunks: int) -> int:
        indices = jax.ShapeDtypeStruct((1, chunks, 64), jnp.int32)
        compiled = jax.jit(lambda i: engine._chunks(i, *inputs, horizon=500)).lower(indices).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    result = 64 * (2 * 4 + 4 + 8)
    assert temporary(40) - temporary(4) <= 3 * 36 * result


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": 0}, ValueError, "seeds must be an integer from 1"),
        ({"seeds": 2.0}, TypeError, "seeds must be an integer"),
        ({"chunk": 0}, ValueError, "chunk must be an integer from 1"),
        ({"horizon": -3}, ValueError, "horizon must be an integer from 1"),
        ({"checkpoints": [81]}, ValueError, "checkpoints must increase"),
        ({"key": -1}, ValueError, "key must be an integer from 0"),
    ],
)
def test_arguments_out_of_range_are_refused(options, error, message):
    with refused(error, message):
        runs(**options)


def test_a_bar_moves_between_the_chunks_and_changes_no_number(monkeypatch, capsys):
    monkeypatch.setattr(engine, "STEP", 8 * 40)
    expected = jb.simulate_batch(0, INSTANCE, jb.UCB1(), horizon=40, seeds=50, chunk=8, rewards=True)
    assert not capsys.readouterr().err
    shown = jb.simulate_batch(0, INSTANCE, jb.UCB1(), horizon=40, seeds=50, chunk=8, rewards=True, progress=True)
    assert "simulate_batch: 100%" in capsys.readouterr().err
    jax.tree.map(np.testing.assert_array_equal, shown, expected)


def test_a_bar_is_not_shown_unless_asked_for_where_nobody_looks(monkeypatch, capsys):
    monkeypatch.setattr(engine, "LONG", 0)
    calls = []
    monkeypatch.setattr(
        engine, "_on_devices", lambda *x, _run=engine._on_devices, **y: calls.append(1) or _run(*x, **y)
    )
    jb.simulate_batch(0, INSTANCE, jb.UCB1(), horizon=40, seeds=50, chunk=8)
    assert len(calls) == 1
    assert not capsys.readouterr().err
