"""What every experiment leaves behind: a picture, its numbers, how they were made, and a verdict on each claim."""

import csv
import dataclasses
import json
import platform
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from tqdm.auto import tqdm

import jaxbandit as jb

mpl.use("Agg")
PACKAGES = ("jaxbandit", "jax", "jaxlib", "equinox", "numpy", "matplotlib")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line sets; ``None`` is the experiment's own default."""

    seeds: int | None = None
    horizon: int | None = None
    quick: bool = False
    out: Path = Path("results")
    seed: int = 0
    store: Path | None = None


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the paper about a figure, whether the runs bear it out, and the numbers that say so."""

    text: str
    holds: bool
    measured: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not hold'}: {self.text} [{self.measured}]"


def check_output(folder: Path) -> None:
    """Find out before the runs, not after, whether results can be written.

    Raises:
        OSError: they cannot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


class Progress:
    """Runs done, runs per second and time left, between batches. ``with Progress("fig2", total) as progress: ...``"""

    def __init__(self, name: str, total: int, unit: str = "runs"):
        self.bar = tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=True)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def say(self, what: str) -> None:
        self.bar.set_postfix_str(what)

    def done(self, count: int) -> None:
        self.bar.update(count)


def sweep(name: str, build: Callable[..., Any], axes: Mapping[str, Any], options: Options, **settings: Any) -> Any:
    """``jaxbandit.sweep``, resumed from ``--store`` and left in NAME.nc beside the other results."""
    store = None if options.store is None else options.store / f"{name}.zarr"
    data = jb.sweep(build, axes, key=options.seed, store=store, **settings)
    data.to_netcdf(options.out / f"{name}.nc")
    return data


def save(
    name: str,
    figure: Figure,
    rows: Sequence[Mapping[str, Any]],
    claims: Iterable[Claim],
    settings: Mapping[str, Any],
    started: float,
    options: Options,
) -> None:
    """Write NAME.png, NAME.pdf, NAME.csv and NAME.json, with the verdicts in the caption, and print them."""
    claims = list(claims)
    with (options.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    width = int(14 * figure.get_figwidth())  # as many letters of this size as fit below the picture
    lines = [line for claim in claims for line in textwrap.wrap(str(claim), width, subsequent_indent="    ")]
    figure.text(0.01, -0.02, "\n".join(lines), va="top", ha="left", fontsize=7, family="monospace")
    for ending in ("png", "pdf"):
        figure.savefig(options.out / f"{name}.{ending}", bbox_inches="tight", dpi=150)
    record = {
        "experiment": name,
        "settings": {key: _plain(value) for key, value in settings.items()},
        "claims": [dataclasses.asdict(claim) for claim in claims],
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.local_devices()],
        "wall_time_s": round(time.perf_counter() - started, 2),
    }
    (options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\n{name}: {record['wall_time_s']} s -> {options.out}/{name}.png, .pdf, .csv, .json")
    for claim in claims:
        print(textwrap.indent(textwrap.fill(str(claim), 116, subsequent_indent="  "), "  "))


def _plain(value: Any) -> Any:
    """``value`` as JSON and CSV know it."""
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        return np.asarray(value).tolist()
    return value
