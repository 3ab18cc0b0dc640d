"""``python -m experiments NAME``: draw a figure, write the numbers behind it, and say which of its claims hold."""

import argparse
import importlib
import io
import os
import sys
import time
from pathlib import Path
from typing import Any

import jax

from experiments.report import Options, check_output

FIGURES = ("fig2", "fig3", "fig4", "fig5")
ROOMS = {
    "paper": (*FIGURES, "lower_bound", "coverage", "adaptive", "rates", "corollary1"),
    "field": ("field", "vernade2017", "joulani2013", "batches", "lancewicki2021"),
    "logs": ("coverage_log",),
    "gradients": ("tune_alpha", "adversary", "learned_index", "sensitivity"),
    "learning": ("learned_policy",),
    "benchmark": ("benchmark", "device"),
}
NAMES = tuple(name for names in ROOMS.values() for name in names)


def experiment(name: str) -> Any:
    """The module of an experiment, with its ``main``."""
    room = next(room for room, names in ROOMS.items() if name in names)
    return importlib.import_module(f"experiments.{room}.{name}")


def describe(name: str) -> str:
    return (experiment(name).__doc__ or "").strip().splitlines()[0]


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    listing = "\n".join(f"  {name:16}{describe(name)}" for name in NAMES)
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        epilog=f"experiments:\n{listing}\n  {'all':16}fig2 to fig5, in this order.\n  {'list':16}Print this list.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[*NAMES, "all", "list"], metavar="NAME", help="an experiment, 'all' or 'list'")
    parser.add_argument("--seeds", type=int, help="runs per point of a curve (default: the paper's)")
    parser.add_argument(
        "--horizon",
        type=int,
        help="rounds, of the longest runs where there are several horizons (default: the paper's; 3000 and 10000 where "
        "it is silent)",
    )
    parser.add_argument("--quick", action="store_true", help="few seeds and coarse grids: seconds instead of a minute")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (default: results)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random tape, below 2^32 (default: 0)")
    parser.add_argument("--store", type=Path, help="folder in which fig2 to fig5, if interrupted, are resumed")
    options = parser.parse_args(argv)
    for name, least in (("seeds", 2), ("horizon", 10)):
        value = getattr(options, name)
        if value is not None and value < least:
            parser.error(f"--{name} must be at least {least}, got {value}")
    if not 0 <= options.seed < 2**32:
        parser.error(f"--seed must be from 0 to 2^32 - 1, got {options.seed}")
    if options.store is not None and options.name not in (*FIGURES, "all", "list"):
        parser.error(f"--store is for {', '.join(FIGURES)} and all; {options.name} is not resumed, leave it out")
    return options


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    if options.name == "list":
        print("\n".join(f"{name:16}{describe(name)}" for name in NAMES))
        return 0
    try:
        check_output(options.out)
    except OSError as error:
        print(f"--out {options.out} cannot be written: {error}; choose another folder", file=sys.stderr)
        return 2
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # claims hold Greek letters, which not every terminal can print
    started = time.perf_counter()
    for name in FIGURES if options.name == "all" else (options.name,):
        experiment(name).main(
            Options(
                seeds=options.seeds,
                horizon=options.horizon,
                quick=options.quick,
                out=options.out,
                seed=options.seed,
                store=options.store,
            )
        )
    print(f"\nDone in {time.perf_counter() - started:.1f} s. Pictures and numbers are in {options.out}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
