"""Benchmark: the engine beside other programs for the same job, in one run, interleaved; not part of ``all``."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxbandit as jb
from experiments.benchmark import gradient_cost, peers, service_cost
from experiments.report import Claim, Options, Progress, save
from jaxbandit.engine import tape

HORIZON = 3000
RUNS = {2: 16384, 10: 4096, 100: 512}  # runs of a timing, by number of arms
QUICK_RUNS = {2: 2048, 10: 512, 100: 128}
PEER_RUNS = {2: 1024, 10: 512, 100: 128}  # the two that hold all calendars at once fall out of the cache above
REPETITIONS = 5
ALPHA = 0.3
SWEEP, BATCHES = "sweep, T = 3000", "simulate_batch, cell by cell"
BELIEVED_DELAY = 0.7  # tail index of the delay law that D-UCB is given

Timings = dict[str, tuple[float, float]]
"""By name: median ns per run and round (or choice), and seconds of the first call (compiling included)."""


def instance(num_arms: int) -> jb.Instance:
    return jb.Instance(jb.Bernoulli(np.linspace(0.3, 0.7, num_arms)), jb.Pareto(np.linspace(1.0, 0.3, num_arms)))


def engine(policy: jb.Policy, problem: jb.Instance, horizon: int, runs: int) -> Callable[[int], Any]:
    def run(seed: int) -> Any:
        batch = jb.simulate_batch(seed, problem, policy, horizon=horizon, seeds=runs, checkpoints=[horizon])
        return jax.block_until_ready(batch.pulls)

    return run


def time_all(programs: Mapping[str, tuple[Callable[[int], Any], float]], repetitions: int) -> Timings:
    """Every program once to compile, then all of them in turn, again and again. ``programs`` gives steps per call."""
    first, seconds = {}, {name: [] for name in programs}
    for seed in range(repetitions + 1):
        for name, (program, _) in programs.items():
            started = time.perf_counter()
            program(seed)
            elapsed = time.perf_counter() - started
            if seed == 0:
                first[name] = elapsed
            else:
                seconds[name].append(elapsed)
    return {name: (1e9 * statistics.median(seconds[name]) / programs[name][1], first[name]) for name in programs}


def against_peers(num_arms: int, runs: int, repetitions: int) -> Timings:
    law = instance(num_arms)
    means, tails = np.asarray(law.means), np.asarray(jnp.broadcast_to(law.delay.tail_index, (num_arms,)))  # pyright: ignore
    few = min(runs, PEER_RUNS[num_arms])

    def obvious(seed: int) -> Any:
        return jax.block_until_ready(peers.obvious_jax(jax.random.key(seed), means, tails, ALPHA, HORIZON, few))

    def numpy(seed: int) -> Any:
        return peers.numpy_vectorised(np.random.default_rng(seed), means, tails, ALPHA, HORIZON, few)

    def numba(seed: int) -> Any:
        return peers.numba_loop(seed, means, tails, ALPHA, HORIZON, runs)

    return time_all(
        {
            f"engine, K = {num_arms}": (engine(jb.PatientBandits(ALPHA), law, HORIZON, runs), runs * HORIZON),
            f"Numba loop, K = {num_arms}": (numba, runs * HORIZON),
            f"obvious jit(vmap(scan)), K = {num_arms}": (obvious, few * HORIZON),
            f"NumPy over seeds, K = {num_arms}": (numpy, few * HORIZON),
        },
        repetitions,
    )


def policies_and_horizons(quick: bool, repetitions: int) -> Timings:
    believed, by_arm = jb.Pareto(tail_index=BELIEVED_DELAY), jb.Pareto(tail_index=[1.0, BELIEVED_DELAY])
    patient, adaptive = jb.PatientBandits(ALPHA), jb.AdaptPatientBandits(c=1.0, alpha_min=0.2, mean_min=0.3)
    cases: list[tuple[str, jb.Policy, int, int]] = [
        ("PatientBandits, T = 3000", patient, 3000, 16_384),
        ("D-UCB m = 200, T = 3000", jb.DUCB(200, believed), 3000, 8192),
        ("D-UCB m = 200, laws by arm, T = 3000", jb.DUCB(200, by_arm), 3000, 8192),
        ("DKL-UCB m = 200, T = 3000", jb.DKLUCB(200, believed), 3000, 8192),
        ("PatientBandits, T = 10000", patient, 10_000, 8192),
        ("D-UCB uncensored, T = 10000", jb.DUCB(None, believed), 10_000, 1024),
        ("AdaptPatientBandits, T = 10000", adaptive, 10_000, 1024),
        ("PatientBandits, T = 100000", patient, 100_000, 512),
        ("AdaptPatientBandits, T = 100000", adaptive, 100_000, 256),
        ("PatientBandits, T = 300000", patient, 300_000, 256),
        ("AdaptPatientBandits, T = 1000000", adaptive, 1_000_000, 64),
    ]
    if quick:
        cases = [(name, policy, horizon, max(runs // 8, 8)) for name, policy, horizon, runs in cases[:7]]
    two = instance(2)
    programs = {name: (engine(policy, two, horizon, runs), horizon * runs) for name, policy, horizon, runs in cases}
    return time_all(programs, repetitions)


def draws_of_a_posterior(quick: bool, repetitions: int) -> Timings:
    """Thompson sampling, which draws for every arm, beside UCB1."""
    runs = {2: 8192, 5: 4096, 100: 256}
    programs = {
        f"{name}, K = {num_arms}": (engine(policy, instance(num_arms), HORIZON, few), few * HORIZON)
        for num_arms, many in runs.items()
        for few in [many // 8 if quick else many]
        for name, policy in (("UCB1", jb.UCB1()), ("Thompson", jb.Thompson()))
    }
    return time_all(programs, repetitions)


def number_of_runs(quick: bool, repetitions: int) -> Timings:
    counts = (16, 128, 1024) if quick else (16, 128, 1024, 8192, 65_536)
    patient, two = jb.PatientBandits(ALPHA), instance(2)
    programs = {f"engine, {runs} runs": (engine(patient, two, HORIZON, runs), runs * HORIZON) for runs in counts}
    return time_all(programs, repetitions)


class HashedTwice(jb.Pareto):
    """Pareto delays from a uniform that has been hashed once more."""

    def isf(self, u: jax.Array) -> jax.Array:
        bits = jax.lax.bitcast_convert_type(u, jnp.uint32)
        again, _ = tape.threefry(jnp.stack([bits, bits]), bits, bits)
        return super().isf(tape.to_uniform(again))


class LeastPaid(jb.UCB1):
    """The arm that has paid least so far: a policy without an index."""

    def scores(self, state: jb.ArmStatistics, t: jax.Array, key: jax.Array) -> jax.Array:
        return -state.rewards


def parts_of_a_step(quick: bool, repetitions: int) -> Timings:
    """The step of PatientBandits with two arms, the same with a second hash, and one without an index."""
    runs = QUICK_RUNS[2] if quick else RUNS[2]
    once = instance(2)
    twice = jb.Instance(once.reward, HashedTwice([1.0, 0.3]))  # pyright: ignore
    patient = jb.PatientBandits(ALPHA)
    cases: list[tuple[str, jb.Policy, jb.Instance]] = [
        ("a step", patient, once),
        ("a step that hashes twice", patient, twice),
        ("a step without an index", LeastPaid(), once),
    ]
    programs = {name: (engine(policy, law, HORIZON, runs), HORIZON * runs) for name, policy, law in cases}
    return time_all(programs, repetitions)


def shares(ns: Mapping[str, float]) -> dict[str, float]:
    """Of the time of a step."""
    whole = ns["a step"]
    hashing, index = ns["a step that hashes twice"] / whole - 1, 1 - ns["a step without an index"] / whole
    return {"hash": hashing, "index": index, "laws, buffer, choice and counts": 1 - hashing - index}


def sweeps(quick: bool, repetitions: int) -> Timings:
    """A sweep, labels and statistics at 200 checkpoints included, beside the same runs by ``simulate_batch``."""
    cells, seeds = (4, 256) if quick else (32, 2048)
    alphas = np.linspace(0.1, 0.5, cells)

    def sweep(seed: int) -> Any:
        build = lambda alpha: (instance(2), jb.PatientBandits(alpha))  # noqa: E731
        return jb.sweep(build, {"alpha": alphas}, horizon=HORIZON, seeds=seeds, key=seed, progress=False)

    def batches(seed: int) -> Any:
        policies = map(jb.PatientBandits, alphas)
        runs = (jb.simulate_batch(seed, instance(2), policy, horizon=HORIZON, seeds=seeds) for policy in policies)
        return [jax.block_until_ready(run.regret) for run in runs]

    steps = cells * seeds * HORIZON
    return time_all({SWEEP: (sweep, steps), BATCHES: (batches, steps)}, repetitions)


def in_a_new_process(code: str) -> float:
    """The number that ``code`` prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def import_seconds(modules: str) -> float:
    code = f"import time; t = time.perf_counter()\nimport {modules}\nprint(time.perf_counter() - t)"
    return statistics.median(in_a_new_process(code) for _ in range(3))


def peak_memory(runs: int) -> float:
    """MiB at the most of a process that simulates so many runs and keeps their final pulls.

    From Linux's own account of the process: ``getrusage`` would count what its parent had before it.
    """
    code = f"""
import jaxbandit as jb
instance = jb.Instance(jb.Bernoulli([0.3, 0.7]), jb.Pareto([1.0, 0.3]))
jb.simulate_batch(0, instance, jb.PatientBandits({ALPHA}), horizon={HORIZON}, seeds={runs}, checkpoints=[{HORIZON}])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    return in_a_new_process(code) / 1024


def ratios(ns: Mapping[str, float], extra: Mapping[str, float]) -> list[Claim]:
    """What is compared, whether the engine reached its goal, and by how much."""
    patient = "PatientBandits, T = {}".format
    comparisons = [
        *((f"engine, K = {k}", f"Numba loop, K = {k}", goal) for k, goal in ((2, 0.65), (10, 0.75), (100, 1))),
        ("engine, K = 2", "obvious jit(vmap(scan)), K = 2", 1 / 6),
        (patient(300000), patient(3000), 2),
        ("D-UCB m = 200, T = 3000", patient(3000), 3),
        ("D-UCB uncensored, T = 10000", patient(10000), 8),
        ("D-UCB m = 200, laws by arm, T = 3000", "D-UCB m = 200, T = 3000", 1.5),
        ("DKL-UCB m = 200, T = 3000", "D-UCB m = 200, T = 3000", 3),
        ("AdaptPatientBandits, T = 100000", patient(100000), 5),
        ("AdaptPatientBandits, T = 1000000", "AdaptPatientBandits, T = 10000", 2),
        *((f"Thompson, K = {k}", f"UCB1, K = {k}", 4) for k in (2, 5, 100)),
        (SWEEP, BATCHES, 1 / 0.9),
        *gradient_cost.GOALS,
        *service_cost.GOALS,
        ("import jaxbandit", "import jax, equinox", 1.3),
        ("peak memory, 100000 runs", "peak memory, 10000 runs", 1.3),
    ]
    values = dict(ns) | dict(extra)
    return [
        Claim(
            f"{one} costs at most {goal:.2g} times {other}",
            values[one] <= goal * values[other],
            f"{values[one] / values[other]:.2f}: {values[one]:.4g} against {values[other]:.4g}",
        )
        for one, other, goal in comparisons
        if one in values and other in values
    ]


def draw(ns: Mapping[str, float]) -> Figure:
    figure, (by_arms, by_horizon, by_runs) = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
    for program in ("engine", "Numba loop", "obvious jit(vmap(scan))", "NumPy over seeds"):
        points = [(k, ns[f"{program}, K = {k}"]) for k in RUNS if f"{program}, K = {k}" in ns]
        if points:
            by_arms.loglog(*zip(*points, strict=True), marker="o", label=program)
    by_arms.set(xlabel="number of arms", ylabel="ns per run and round", title=f"PatientBandits, T = {HORIZON}")
    by_arms.legend()
    for program in ("PatientBandits", "AdaptPatientBandits", "D-UCB m = 200", "D-UCB uncensored"):
        start = f"{program}, T = "
        points = [(int(name.removeprefix(start)), value) for name, value in ns.items() if name.startswith(start)]
        by_horizon.loglog(*zip(*points, strict=True), marker="o", label=program)
    by_horizon.set(xlabel="horizon T", ylabel="ns per run and round", title="the engine, K = 2")
    by_horizon.legend()
    points = [(int(name.split()[1]), value) for name, value in ns.items() if name.endswith(" runs")]
    by_runs.loglog(*zip(*points, strict=True), marker="o")
    by_runs.set(xlabel="number of runs", ylabel="ns per run and round", title=f"the engine, K = 2, T = {HORIZON}")
    return figure


def main(options: Options) -> None:
    started = time.perf_counter()
    repetitions = 3 if options.quick else REPETITIONS
    runs = QUICK_RUNS if options.quick else RUNS
    timings: Timings = {}
    parts: dict[str, Callable[[], Timings]] = {
        f"{num_arms} arms, beside the peers": partial(against_peers, num_arms, runs[num_arms], repetitions)
        for num_arms in runs
    } | {
        "policies and horizons": partial(policies_and_horizons, options.quick, repetitions),
        "draws": partial(draws_of_a_posterior, options.quick, repetitions),
        "parts of a step": partial(parts_of_a_step, options.quick, repetitions),
        "number of runs": partial(number_of_runs, options.quick, repetitions),
        "gradients": partial(time_all, gradient_cost.programs(), repetitions),
        "service": partial(time_all, service_cost.programs(), repetitions),
        "sweeps": partial(sweeps, options.quick, repetitions),
    }
    with Progress("benchmark", len(parts), unit="parts") as progress:
        for name, part in parts.items():
            progress.say(name)
            timings |= part()
            progress.done(1)
    extra = {"import jaxbandit": import_seconds("jaxbandit"), "import jax, equinox": import_seconds("jax, equinox")}
    if not options.quick and Path("/proc/self/status").exists():
        extra |= {f"peak memory, {n} runs": peak_memory(n) for n in (10_000, 100_000)}
    ns = {name: value for name, (value, _) in timings.items()}
    devices = jax.local_devices()
    print(f"\n{len(devices)} x {devices[0].platform}: {devices[0].device_kind}")
    print(f"\n{'program':42}{'ns per run and round':>22}{'steps per second':>20}{'first call, s':>15}")
    for name, (value, first) in timings.items():
        print(f"{name:42}{value:22.1f}{1e9 / value:20.3g}{first:15.2f}")
    print("\nof a step: " + ", ".join(f"{part} {share:.0%}" for part, share in shares(ns).items()))
    rows = [
        {"program": name, "ns_per_run_and_round": value, "first_call_s": first}
        for name, (value, first) in timings.items()
    ]
    settings = {"horizon": HORIZON, "repetitions": repetitions, "runs": runs, "shares": shares(ns), "other": extra}
    save("benchmark", draw(ns), rows, ratios(ns, extra), settings, started, options)
