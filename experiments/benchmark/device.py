"""Run-rounds a second by number of runs and arms on this machine's accelerator, beside its processor."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.benchmark.benchmark import ALPHA, instance
from experiments.report import Claim, Options, Progress, save
from jaxbandit.engine.batch import bytes_per_run, side_by_side

ARMS = (2, 10, 100)
RUNS = (10, 1000, 10_000, 100_000, 1_000_000)
QUICK_RUNS = (10, 1000, 10_000)
HORIZON = 300
FEWEST = 8
"""So few runs that a round takes as long as its kernels need to be launched."""
BUDGET = 12.0
"""Seconds that a call may take, as predicted from one with fewer runs; a longer one is not made, and that is said."""
LEAST = 0.2
"""Seconds for which a call is repeated."""
COMPARED = 10_000
"""Runs whose pulls are compared with those of the processor, at the most."""
GOAL = 3e9
"""Run-rounds a second with a million runs of two arms."""


class Timed(NamedTuple):
    """``seconds`` of a warm call, ``compile_seconds`` that the first one took longer; NaN where it was not made."""

    runs: int
    seconds: float
    compile_seconds: float
    why_not: str = ""

    def rate(self, horizon: int) -> float:
        return self.runs * horizon / self.seconds


def batch(key: Any, num_arms: int, runs: int, horizon: int) -> jb.Run:
    """What is timed."""
    return jb.simulate_batch(
        key,
        instance(num_arms),
        jb.PatientBandits(ALPHA),
        horizon=horizon,
        seeds=runs,
        checkpoints=[horizon],
        progress=False,
    )


def pulls(num_arms: int, runs: int, horizon: int, seed: int) -> jax.Array:
    """Of every arm after the last round, [runs, K]."""
    return jax.block_until_ready(batch(seed, num_arms, runs, horizon).pulls)[:, -1]


def on(platform: str) -> AbstractContextManager[None]:
    """All devices of a platform."""
    return jax.default_device(platform)  # pyright: ignore


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of a call that has been made before, and how much longer the first took."""
    seconds = []
    while len(seconds) < 2 or sum(seconds[1:]) < LEAST:
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    warm = float(np.median(seconds[1:]))
    return warm, max(seconds[0] - warm, 0.0)


def measured(
    platform: str, num_arms: int, sizes: tuple[int, ...], horizon: int, seed: int, progress: Progress
) -> list[Timed]:
    """From few runs to many; those that would take more than the budget are named, not made."""
    found: list[Timed] = []
    for runs in sizes:
        progress.say(f"{platform}, K = {num_arms}, {runs} runs")
        why_not = found[-1].why_not if found else ""
        if len(found) > 1 and found[-1].seconds * runs / found[-1].runs > BUDGET:
            why_not = f"more than {BUDGET:g} s"
        seconds = math.nan, math.nan
        if not why_not:
            try:
                with on(platform):
                    seconds = timed(lambda runs=runs: pulls(num_arms, runs, horizon, seed))
            except jax.errors.JaxRuntimeError as error:  # such as RESOURCE_EXHAUSTED; what was measured is kept
                why_not = str(error).splitlines()[0][:80]
        found.append(Timed(runs, *seconds, why_not))
        progress.done(1)
    return found


def side_by_side_on(platform: str, num_arms: int, horizon: int) -> tuple[int, int]:
    """Bytes that a run carries, and how many runs a device has in memory together."""
    of_run = bytes_per_run(instance(num_arms), jb.PatientBandits(ALPHA), horizon, checkpoints=1)
    return of_run, side_by_side(of_run, num_arms, platform)


def launch_share(few: float, many: Timed, width: int, devices: int) -> float:
    """The time of a round of ``FEWEST`` runs, over that of a round of as many as a call has side by side.

    A round is the same kernels for any number of runs; of so few, the time is that of starting them. So this is the
    share of the time that a faster processor would not save.
    """
    chunks = math.ceil(many.runs / (width * devices))
    return few * chunks / many.seconds


def crossover(device: list[Timed], host: list[Timed]) -> int | None:
    """The least number of runs, of those measured, from which on the device was nowhere slower than the processor.

    A call that was too long to be made on the processor is none on which the device is slower.
    """
    slower = [a.runs for a, b in zip(device, host, strict=True) if a.seconds >= b.seconds]
    return next((x.runs for x in device if not x.why_not and x.runs > max(slower, default=0)), None)


def differing(one: np.ndarray, other: np.ndarray) -> int:
    """Of how many runs the pulls are not the same."""
    return int((one != other).any(axis=1).sum())


def peak_bytes(platform: str) -> int | None:
    """At the most in use on a device since the process began, where it tells."""
    stats = jax.local_devices(backend=platform)[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use")


def main(options: Options) -> None:
    started = time.perf_counter()
    device = jax.local_devices()[0].platform
    host_only = device == "cpu"
    sizes = QUICK_RUNS if options.quick or host_only else RUNS
    if options.seeds is not None:
        sizes = (options.seeds,)
    horizon = options.horizon or HORIZON
    platforms = ("cpu",) if host_only else (device, "cpu")
    timings: dict[tuple[str, int], list[Timed]] = {}
    few: dict[int, float] = {}
    unlike: dict[int, tuple[int, int]] = {}
    with Progress("device", len(ARMS) * (len(platforms) * len(sizes) + 2), unit="calls") as progress:
        for num_arms in ARMS:
            for platform in platforms:
                timings[platform, num_arms] = measured(platform, num_arms, sizes, horizon, options.seed, progress)
            progress.say(f"K = {num_arms}, {FEWEST} runs")
            with on(device):
                few[num_arms] = timed(lambda k=num_arms: pulls(k, FEWEST, horizon, options.seed))[0]
            progress.done(1)
            if not host_only:
                progress.say(f"K = {num_arms}, pulls beside those of the processor")
                runs, found = min(max(sizes), COMPARED), []
                for platform in platforms:
                    with on(platform):
                        found.append(np.asarray(pulls(num_arms, runs, horizon, options.seed)))
                unlike[num_arms] = differing(*found), runs
            progress.done(1)
    rows = table(timings, few, device, horizon)
    show(rows)
    settings = {"horizon": horizon, "alpha": ALPHA, "sizes": sizes, "budget_s": BUDGET, "device": device}
    settings |= {"device_kind": jax.local_devices()[0].device_kind, "peak_bytes": peak_bytes(device)}
    said = claims(timings, unlike, device, horizon)
    save("device", draw(timings, horizon), rows, said, settings, started, options)
    if host_only:
        print("\nThis machine has no accelerator that JAX can use: nothing was measured on a GPU or TPU.")


def table(
    timings: dict[tuple[str, int], list[Timed]], few: dict[int, float], device: str, horizon: int
) -> list[dict[str, Any]]:
    rows = []
    for (platform, num_arms), found in timings.items():
        devices = len(jax.local_devices(backend=platform))
        of_run, width = side_by_side_on(platform, num_arms, horizon)
        for x in found:
            row: dict[str, Any] = {"platform": platform, "arms": num_arms, "runs": x.runs, "horizon": horizon}
            row |= {"run_rounds_per_second": x.rate(horizon), "seconds": x.seconds}
            row |= {"compile_seconds": x.compile_seconds, "bytes_per_run": of_run, "runs_side_by_side": width}
            enough = platform == device and x.runs >= 100 * FEWEST
            share = launch_share(few[num_arms], x, width, devices) if enough else math.nan
            rows.append(row | {"launch_share": share, "not_measured": x.why_not})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    print(
        f"\n{'platform':10}{'K':>5}{'runs':>9}{'run-rounds/s':>15}{'compile, s':>12}{'bytes a run':>13}{'launches':>10}"
    )
    for row in rows:
        start = f"{row['platform']:10}{row['arms']:5}{row['runs']:9}"
        if row["not_measured"]:
            print(f"{start}  not measured: {row['not_measured']}")
        else:
            numbers = f"{row['run_rounds_per_second']:15.3g}{row['compile_seconds']:12.2f}{row['bytes_per_run']:13}"
            share = "" if math.isnan(row["launch_share"]) else f"{row['launch_share']:10.0%}"
            print(f"{start}{numbers}{share}")


def claims(
    timings: dict[tuple[str, int], list[Timed]], unlike: dict[int, tuple[int, int]], device: str, horizon: int
) -> list[Claim]:
    if device == "cpu":
        return []
    found = [
        Claim(
            f"with {num_arms} arms the pulls of every run are those of the processor",
            different == 0,
            f"{different} of {runs} runs differ",
        )
        for num_arms, (different, runs) in unlike.items()
    ]
    fastest = max((x.rate(horizon) for x in timings[device, 2] if x.runs == max(RUNS)), default=math.nan)
    if not math.isnan(fastest):
        found.append(
            Claim(f"{GOAL:.0e} run-rounds a second", fastest >= GOAL, f"{fastest:.2e} at {max(RUNS)} runs, K = 2")
        )
    for num_arms in ARMS:
        runs = crossover(timings[device, num_arms], timings["cpu", num_arms])
        where = "at no number of runs" if runs is None else f"from {runs} runs on"
        found.append(Claim(f"with {num_arms} arms faster than the processor", runs is not None, where))
    return found


def draw(timings: dict[tuple[str, int], list[Timed]], horizon: int) -> Figure:
    figure, axes = plt.subplots(1, len(ARMS), figsize=(4.5 * len(ARMS), 4), layout="constrained", sharey=True)
    for ax, num_arms in zip(axes, ARMS, strict=True):
        for (platform, arms), found in timings.items():
            if arms == num_arms:
                made = [x for x in found if not x.why_not]
                ax.loglog([x.runs for x in made], [x.rate(horizon) for x in made], marker="o", label=platform)
        ax.set(xlabel="number of runs", title=f"PatientBandits, K = {num_arms}, T = {horizon}")
        ax.legend()
    axes[0].set_ylabel("run-rounds a second")
    return figure
