"""One column of a log: times as numbers of one kind, arms as indices; whatever is wrong names the row."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
ZONE = r":\d\d\S*?(?:Z|[+-]\d\d:?\d\d)$"


def pandas() -> Any:
    """The module; what needs it is imported when it is called."""
    try:
        import pandas
    except ImportError:
        raise ImportError("reading a CSV file, or dates as text, needs pandas: pip install 'jaxbandit[logs]'") from None
    return pandas


class Column(NamedTuple):
    """Times as floats, or as int64 nanoseconds since 1970 where they are dates."""

    name: str
    values: np.ndarray
    missing: np.ndarray
    dates: bool
    zoned: bool | None
    """Whether the dates have a time zone; None if there is no date."""

    def show(self, row: int) -> str:
        return str(np.datetime64(int(self.values[row]), "ns")) if self.dates else f"{self.values[row]}"

    def unit(self, name: str | None) -> tuple[str, float]:
        """Its name, and its length in what ``values`` count."""
        if not self.dates:
            return name or "unit", 1.0
        name = name or "day"
        if name not in SECONDS:
            raise ValueError(f"read_log: unit must be one of {list(SECONDS)}, got {name!r}")
        return name, SECONDS[name] * 1e9


def time_column(x: Any, name: str, *, missing: bool, like: Column | None = None) -> Column:
    """The times of a column, which may be ``like`` another: all dates with a time zone, all without, or all numbers."""
    values, dates, zoned = _times(x, name)
    gone = values == np.iinfo(np.int64).min if dates else np.isnan(values)
    if like is not None and gone.all():
        values, dates, zoned = np.zeros(len(gone), like.values.dtype), like.dates, None
    if not missing and gone.any():
        raise ValueError(f"read_log: row {int(np.argmax(gone))}, column {name!r} has no time; give every pull one")
    if not dates and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueError(
            f"read_log: row {row}, column {name!r} is {values[row]}; leave it empty if there was no conversion"
        )
    if like is not None and dates != like.dates:
        kinds = ("numbers", "dates")
        raise ValueError(
            f"read_log: column {name!r} has {kinds[dates]} and {like.name!r} has {kinds[like.dates]}; give one kind"
        )
    if like is not None and None not in (zoned, like.zoned) and zoned != like.zoned:
        row = int(np.argmax(~gone))
        raise ValueError(
            f"read_log: row {row}, column {name!r}: dates {'with' if zoned else 'without'} a time zone beside dates "
            f"{'with' if like.zoned else 'without'} one in column {like.name!r}; give all a zone, or none"
        )
    return Column(name, values, gone, dates, zoned)


def time_of(until: Any, like: Column) -> Any:
    """The time of the cut, in what the column counts."""
    if hasattr(until, "to_numpy") or hasattr(until, "tzinfo"):  # a timestamp, a datetime
        until = str(until)
    try:
        column = time_column(np.asarray([until]), "until", missing=False, like=like)
    except ValueError:
        kind = "a date" if like.dates else "a number"
        zone = {True: " with a time zone", False: " without a time zone", None: ""}[like.zoned if like.dates else None]
        raise ValueError(f"read_log: until must be {kind}{zone}, as column {like.name!r} has, got {until!r}") from None
    return column.values[0]


def arm_column(x: Any, name: str, arms: Sequence[Any] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Index of every row's arm (int32), and the arms' names."""
    values = x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)
    if values.dtype.kind == "O":
        codes, labels = pandas().factorize(values)  # does not sort: names may be of several types
    else:
        labels, codes = np.unique(values, return_inverse=True)
        if values.dtype.kind == "f" and np.isnan(values).any():
            codes = np.where(np.isnan(values), -1, codes)
    if len(codes) and codes.min() < 0:
        raise ValueError(
            f"read_log: row {int(np.argmax(codes < 0))}, column {name!r} names no arm; give every pull one"
        )
    labels = [str(label) for label in labels]
    order = [str(arm) for arm in arms] if arms is not None else sorted(labels)
    if len(set(order)) < len(order):
        raise ValueError(f"read_log: arms must differ, got {order}; leave out what repeats")
    place = {label: i for i, label in enumerate(order)}
    table = np.array([place.get(label, -1) for label in labels], np.int32)
    index = table[codes]
    if len(index) and index.min() < 0:
        row = int(np.argmin(index))
        raise ValueError(f"read_log: row {row}, column {name!r}: unknown arm {labels[codes[row]]!r}; arms is {order}")
    without = set(order) - set(labels)
    if without:
        raise ValueError(f"read_log: arms: {sorted(without)} have no pulls in column {name!r}; leave them out")
    return index, tuple(order)


def _times(x: Any, name: str) -> tuple[np.ndarray, bool, bool | None]:
    """Floats or nanoseconds, whether they are dates, and whether these have a zone."""
    zoned = bool(getattr(x.dtype, "tz", None) or getattr(x.dtype, "time_zone", None)) if hasattr(x, "dtype") else False
    if getattr(getattr(x, "dtype", None), "tz", None) is not None:
        x = x.dt.tz_convert("UTC").dt.tz_localize(None)
    values = x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x)
    if values.dtype.kind == "M":
        return values.astype("datetime64[ns]").astype(np.int64), True, zoned
    if values.dtype.kind in "fiu":
        return values.astype(float), False, None
    if values.dtype.kind in "OUST":
        return _from_text(values, name)
    raise ValueError(f"read_log: row 0, column {name!r}: {values[0]!r} is no time; give dates or numbers")


def _from_text(values: np.ndarray, name: str) -> tuple[np.ndarray, bool, bool | None]:
    pd = pandas()
    text = pd.Series(values, dtype=object)
    gone = text.isna().to_numpy() | (text == "").to_numpy()
    if gone.all():
        return np.full(len(text), np.nan), False, None
    present = text[~gone]
    if pd.to_numeric(present.iloc[:1], errors="coerce").notna().all():  # where the first is a date, no look at the rest
        numbers = pd.to_numeric(present, errors="coerce")
        if not numbers.isna().any():
            found = np.full(len(text), np.nan)
            found[~gone] = numbers
            return found, False, None
    present = present.astype(str)
    zone = present.str.contains(ZONE, regex=True).to_numpy()
    if zone.any() and not zone.all():
        row, first = int(present.index[np.argmax(zone != zone[0])]), int(present.index[0])
        raise ValueError(
            f"read_log: row {row}, column {name!r}: {str(values[row])!r} is a date {'without' if zone[0] else 'with'} "
            f"a time zone, and row {first} has {str(values[first])!r}; give all a zone, or none"
        )
    dates = pd.to_datetime(present, errors="coerce", format="ISO8601", utc=True)
    if dates.isna().any():
        row = int(present.index[np.argmax(dates.isna().to_numpy())])
        raise ValueError(
            f"read_log: row {row}, column {name!r}: {str(values[row])!r} is no date; write 2026-11-30 14:05:00"
        )
    found = np.full(len(text), np.iinfo(np.int64).min)
    found[~gone] = dates.dt.tz_localize(None).to_numpy().astype("datetime64[ns]").astype(np.int64)
    return found, True, bool(zone[0])
