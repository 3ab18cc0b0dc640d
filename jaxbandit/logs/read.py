"""A conversion log in rounds: read from a file, a frame or arrays, and checked row by row."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from jaxbandit._checks import NEVER
from jaxbandit.engine.history import History
from jaxbandit.logs.columns import Column, arm_column, pandas, time_column, time_of

ROUNDING = 1e-9
"""Times are products and quotients of floats: a whole number of rounds may come out this much, relatively, off."""


class Log(NamedTuple):
    """The pulls of a log, in its order, with times in rounds.

    A pull converted ``delay`` rounds after it was made, or had not when the log was cut, ``age`` rounds after it.
    """

    arms: tuple[str, ...]
    arm: Int[np.ndarray, " rows"]
    """Index into ``arms``."""
    age: Int[np.ndarray, " rows"]
    """Whole rounds from the pull to the cut, rounded down."""
    delay: Int[np.ndarray, " rows"]
    """Rounds from the pull to its conversion, rounded up and at least 1; -1 if none was seen."""
    rounds_per_unit: float
    unit: str

    def history(self) -> History:
        """The log as the past of a run: ``simulate(..., history=log.history())``.

        Round s is the s-th pull in time order (of one round of the clock, in the log's order). Rounds are counted in
        pulls: a conversion is known after so many pulls as had been made before the round of the clock in which it
        came. A pull still waits since its ``age`` by the clock, which is what the delay laws of a fit are of; on a
        log of an even pace both are the same.

        Zeros are not known, so that policies that observe ``Feedback`` cannot start from a log.
        """
        order = np.argsort(-self.age, kind="stable")
        age, delay = self.age[order], self.delay[order]
        earlier = np.searchsorted(-age, -(age - delay), side="left")  # pulls made before the conversion
        rounds = np.arange(1, len(age) + 1)
        delays = np.where(delay > 0, earlier + 1 - rounds, -1)
        return History(self.arm[order], delays, ages=age, names=self.arms)

    def __repr__(self) -> str:
        seen = int((self.delay > 0).sum())
        return (
            f"Log of {len(self.arm)} pulls of {len(self.arms)} arms, {seen} conversions, "
            f"{self.rounds_per_unit:g} rounds a {self.unit}"
        )


def read_log(
    source: Any,
    *,
    arm: str,
    pulled: str,
    converted: str,
    until: Any,
    rounds_per_unit: float | int | None = None,
    unit: str | None = None,
    arms: Sequence[Any] | None = None,
) -> Log:
    """Reads and checks a conversion log, which has one row for every pull.

    A round is one pull of the simulator; ``rounds_per_unit`` of them pass in a unit of time. A delay of x units is
    ``max(1, ceil(x r))`` rounds, an age of y units ``floor(y r)`` whole rounds; a conversion later than its row's last
    whole round counts as not seen. Two rows that are alike are two pulls.

    Args:
        source: path of a CSV file, a pandas or polars frame, or a mapping from names to arrays.
        arm: the column that names what was pulled, such as a campaign.
        pulled: the column of the times of the pulls: dates, or numbers.
        converted: the column of the times of the conversions, empty (NaN, NaT, None) where there was none.
        until: when the log was cut: the latest time it could have a row or a conversion from.
        rounds_per_unit: r, > 0; by default the log's own average, rows over the time from the first pull to the cut.
        unit: of time: "day" (the default), "hour", "minute" or "second" for dates; for numbers only its name.
        arms: the arms in the order of the instance; by default those in the log, sorted.

    Raises:
        ImportError: a CSV file or dates as text without pandas (the extra ``logs``).
        TypeError: a source of another kind.
        ValueError: anything wrong with a row, with its number (from 0) and its column.
    """
    file = Path(source) if isinstance(source, str | os.PathLike) else None
    names = _names(source) if file is None else list(pandas().read_csv(file, nrows=0).columns)
    for argument, name in (("arm", arm), ("pulled", pulled), ("converted", converted)):
        if name not in names:
            raise ValueError(f"read_log: {argument}: the log has no column {name!r}, only {names}; name one of these")
    columns: Any = source
    if file is not None:
        columns = pandas().read_csv(file, usecols=[arm, pulled, converted], dtype={arm: str})
    made = time_column(columns[pulled], pulled, missing=False)
    if len(made.values) == 0:
        raise ValueError("read_log: the log is empty; give one row for every pull")
    done = time_column(columns[converted], converted, missing=True, like=made)
    index, labels = arm_column(columns[arm], arm, arms)
    for name, length in ((converted, len(done.values)), (arm, len(index))):
        if length != len(made.values):
            raise ValueError(
                f"read_log: column {name!r} has {length} rows and {pulled!r} {len(made.values)}; give as many"
            )
    cut = time_of(until, made)
    _check_order(made, done, cut, until)
    unit, per_unit = made.unit(unit)
    span = float(cut - made.values.min()) / per_unit
    if rounds_per_unit is None:
        if span == 0:
            raise ValueError(
                "read_log: until: all pulls are of the time of the cut, which gives no rate; set rounds_per_unit"
            )
        rounds_per_unit = len(made.values) / span
    if not (np.isfinite(rounds_per_unit) and rounds_per_unit > 0):
        raise ValueError(
            f"read_log: rounds_per_unit must be finite and > 0, got {rounds_per_unit}; give visitors a unit"
        )
    if span * rounds_per_unit >= NEVER:
        raise ValueError(
            f"read_log: rounds_per_unit: the log is {span * rounds_per_unit:.3g} rounds long, more than {NEVER}; "
            "give a smaller rate"
        )
    age, delay = _in_rounds(made, done, cut, rounds_per_unit / per_unit)
    return Log(labels, index, age, delay, float(rounds_per_unit), unit)


def example_log() -> Path:
    """A log of three campaigns, made by this package's simulator: 12 000 pulls in 14 days, to be read with
    ``arm="campaign", pulled="click", converted="sale", until="2026-11-15"``.

    The true rates are 0.06, 0.09 and 0.11; the better a campaign, the later its sales come.
    """
    return Path(__file__).parent / "data" / "campaigns.csv.gz"


def _names(source: Any) -> list[str]:
    if isinstance(source, Mapping):
        return list(source)
    if hasattr(source, "columns"):
        return list(source.columns)
    raise TypeError(
        f"read_log: source must be a path, a pandas or polars frame or a mapping from names to arrays, got "
        f"{type(source).__name__}"
    )


def _check_order(made: Column, done: Column, cut: Any, until: Any) -> None:
    seen = ~done.missing
    wrong = (
        (made.values > cut, made, f"is after the cut, until={until}; leave the row out or give a later cut"),
        (seen & (done.values > cut), done, f"is after the cut, until={until}; empty it or give a later cut"),
        (seen & (done.values < made.values), done, f"is before its pull in column {made.name!r}; mend the row"),
    )
    for where, column, what in wrong:
        if where.any():
            row = int(np.argmax(where))
            raise ValueError(f"read_log: row {row}, column {column.name!r}: {column.show(row)} {what}")


def _in_rounds(made: Column, done: Column, cut: Any, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Some rows at a time: a log of 10^7 rows has few bytes to spare for each."""
    age = np.empty(len(made.values), np.int32)
    delay = np.full(len(made.values), -1, np.int32)
    for start in range(0, len(age), 2**20):
        rows = slice(start, start + 2**20)
        y = (cut - made.values[rows]).astype(float) * rate
        age[rows] = np.floor(y * (1 + ROUNDING))
        seen = ~done.missing[rows]
        x = (done.values[rows][seen] - made.values[rows][seen]).astype(float) * rate
        rounds = np.maximum(np.ceil(x * (1 - ROUNDING)), 1).astype(np.int32)
        delay[rows][seen] = np.where(rounds <= age[rows][seen], rounds, -1)
    return age, delay
