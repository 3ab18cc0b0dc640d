"""The measurement of an accelerator, on a machine that may have none."""

import csv
import math

import jax
import numpy as np
import pytest
from jax import export

from experiments import __main__ as command
from experiments.benchmark import device
from experiments.benchmark.device import Timed
from experiments.report import Progress


@pytest.mark.slow
def test_without_an_accelerator_it_says_that_nothing_was_measured_on_one(tmp_path, capsys):
    assert command.main(["device", "--seeds", "64", "--horizon", "20", "--out", str(tmp_path)]) == 0
    with (tmp_path / "device.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["arms"]), int(row["runs"])) for row in rows] == [(k, 64) for k in device.ARMS]
    assert all(float(row["run_rounds_per_second"]) > 0 and int(row["bytes_per_run"]) > 0 for row in rows)
    if jax.default_backend() == "cpu":
        assert "nothing was measured on a GPU or TPU" in capsys.readouterr().out


def test_calls_that_would_take_too_long_or_fail_are_named_and_not_made(monkeypatch):
    made = []

    def pulls(num_arms, runs, horizon, seed):
        made.append(runs)
        if num_arms == 100:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(device, "pulls", pulls)
    monkeypatch.setattr(device, "timed", lambda call: (call(), (1.0 if made[-1] < 1000 else 5.0, 0.5))[1])
    with Progress("device", 8) as progress:
        slow = device.measured("cpu", 2, (10, 1000, 10_000, 100_000), 20, 0, progress)
        full = device.measured("cpu", 100, (10, 1000), 20, 0, progress)
    assert made == [10, 1000, 10]
    assert [x.why_not for x in slow] == ["", "", "more than 12 s", "more than 12 s"]
    assert [x.why_not for x in full] == ["RESOURCE_EXHAUSTED: out of memory"] * 2
    assert math.isnan(slow[-1].rate(20))


def test_from_how_many_runs_on_the_device_is_faster():
    def on(platform, *seconds):
        return [
            Timed(runs, s, 0.0, "more than 12 s" if math.isnan(s) else "")
            for runs, s in zip((10, 1000, 10_000), seconds, strict=True)
        ]

    host = on("cpu", 1.0, 2.0, 3.0)
    assert device.crossover(on("gpu", 2.0, 1.0, 1.0), host) == 1000
    assert device.crossover(on("gpu", 0.5, 3.0, 1.0), host) == 10_000
    assert device.crossover(on("gpu", 2.0, 3.0, 4.0), host) is None
    assert device.crossover(on("gpu", 2.0, 3.0, math.nan), host) is None
    assert device.crossover(on("gpu", 2.0, 3.0, 4.0), on("cpu", 1.0, 2.0, math.nan)) == 10_000


def test_runs_that_differ_are_counted_and_said():
    one = np.array([[1, 2], [3, 0], [2, 1]])
    assert device.differing(one, one) == 0
    assert device.differing(one, one + np.array([[0, 0], [0, 1], [1, 0]])) == 2
    timings = {
        (platform, k): [Timed(runs, runs / 1e7 / speed, 0.0) for runs in device.RUNS]
        for platform, speed in (("gpu", 9.0), ("cpu", 1.0))
        for k in device.ARMS
    }
    unlike = {2: (0, 99), 10: (1, 99), 100: (0, 99)}
    claims = device.claims(timings, unlike, "gpu", 300)
    assert [claim.holds for claim in claims] == [True, False, True, True, True, True, True]
    assert claims[1].measured == "1 of 99 runs differ"
    assert claims[3].measured == "2.70e+10 at 1000000 runs, K = 2"
    assert device.claims(timings, unlike, "cpu", 300) == []


def test_the_share_of_launches():
    many = Timed(4000, 8.0, 0.0)
    assert device.launch_share(1.0, many, width=1000, devices=2) == 2 / 8


def test_what_is_timed_lowers_for_cuda():
    timed = jax.jit(lambda key: device.batch(key, 2, 16, 12).pulls)
    assert export.export(timed, platforms=("cuda",))(jax.random.key(0)).platforms == ("cuda",)
