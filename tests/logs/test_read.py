"""Reading a log: what is the same however it comes, and what is refused, with row and column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxbandit as jb
from tests.examples import refused

COLUMNS = {"arm": "campaign", "pulled": "click", "converted": "sale"}


def small(**changes):
    log = {
        "campaign": ["b", "a", "b", "a"],
        "click": ["2026-11-01 00:00", "2026-11-01 06:00", "2026-11-01 12:00", "2026-11-01 18:00"],
        "sale": ["2026-11-01 01:30", "", "2026-11-02 00:00", None],
    }
    return log | changes


def read(source, until="2026-11-02", **settings):
    return jb.read_log(source, **COLUMNS, until=until, **settings)


def same(one: jb.Log, other: jb.Log) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_times_become_rounds():
    """Four rows in a day: a round is six hours; delays are rounded up, ages down."""
    log = read(small())
    assert log.arms == ("a", "b")
    assert log.arm.tolist() == [1, 0, 1, 0]
    assert log.age.tolist() == [4, 3, 2, 1]
    assert log.delay.tolist() == [1, -1, 2, -1]
    assert (log.rounds_per_unit, log.unit) == (4, "day")
    finer = read(small(), rounds_per_unit=24, arms=["b", "a"])
    assert finer.arm.tolist() == [0, 1, 0, 1]
    assert finer.delay.tolist() == [2, -1, 12, -1]
    assert read(small(), rounds_per_unit=1, unit="hour").age.tolist() == [24, 18, 12, 6]


def test_a_conversion_after_the_last_whole_round_is_not_seen():
    log = read({"campaign": [0, 0], "click": [0.0, 1.0], "sale": [9.9, np.nan]}, until=9.95, rounds_per_unit=1)
    assert log.age.tolist() == [9, 8]
    assert log.delay.tolist() == [-1, -1]


def test_a_whole_number_of_rounds_is_not_rounded_further():
    log = read({"campaign": [0], "click": [0.0], "sale": [0.1]}, until=1, rounds_per_unit=30)
    assert log.delay.tolist() == [3]  # 0.1 * 30 is 3.0000000000000004
    assert log.unit == "unit"


def test_a_log_is_the_same_from_a_file_a_frame_and_arrays(tmp_path):
    frame = pd.DataFrame(small())
    frame.to_csv(tmp_path / "log.csv", index=False)
    text = read(small())
    dated = frame.assign(click=pd.to_datetime(frame.click), sale=pd.to_datetime(frame.sale.replace("", None)))
    sources = {
        "CSV": tmp_path / "log.csv",
        "path as text": str(tmp_path / "log.csv"),
        "pandas, text": frame,
        "pandas, dates": dated,
        "polars, text": pl.DataFrame(small()),
        "polars, dates": pl.DataFrame(
            {name: dated[name].to_numpy() for name in ("click", "sale")} | {"campaign": frame.campaign.tolist()}
        ),
        "numpy": {
            "campaign": np.array(frame.campaign.tolist()),
            "click": dated.click.to_numpy(),
            "sale": dated.sale.to_numpy(),
        },
        "datetimes": {name: dated[name].tolist() for name in dated},
    }
    for name, source in sources.items():
        assert same(read(source), text), name
    assert same(read(dated, until=pd.Timestamp("2026-11-02")), text)
    assert same(read(dated, until=np.datetime64("2026-11-02")), text)
    zoned = dated.assign(
        click=dated.click.dt.tz_localize("UTC"), sale=dated.sale.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    )
    assert same(read(zoned, until="2026-11-02 09:00+09:00"), text)


def test_rows_that_are_alike_are_two_pulls():
    log = read({"campaign": ["a", "a"], "click": [0, 0], "sale": [1.0, 1.0]}, until=2)
    assert log.delay.tolist() == [1, 1]


def test_one_row_is_a_log():
    log = read({"campaign": ["a"], "click": [0.0], "sale": [np.nan]}, until=2)
    assert (log.age.tolist(), log.rounds_per_unit) == ([1], 0.5)


NUMBERS = {"campaign": ["a", "b", "b"], "click": [0.0, 1.0, 2.0], "sale": [np.nan, 3.0, np.nan]}
ZONED = ["2026-11-01T01:00+00:00", None, None, None]


@pytest.mark.parametrize(
    ("log", "until", "settings", "message"),
    [
        ({k: [] for k in NUMBERS}, 4, {}, "the log is empty"),
        ({"click": [], "sale": []}, 4, {}, r"arm: the log has no column 'campaign', only \['click', 'sale'\]"),
        (
            NUMBERS | {"sale": [np.nan, 0.5, np.nan]},
            4,
            {},
            "row 1, column 'sale': 0.5 is before its pull in column 'click'",
        ),
        (NUMBERS | {"sale": [np.nan, 5.0, np.nan]}, 4, {}, "row 1, column 'sale': 5.0 is after the cut, until=4"),
        (NUMBERS, 1.5, {}, "row 2, column 'click': 2.0 is after the cut, until=1.5"),
        (NUMBERS, 4, {"arms": ["a"]}, r"row 1, column 'campaign': unknown arm 'b'; arms is \['a'\]"),
        (NUMBERS, 4, {"arms": ["a", "b", "c"]}, r"arms: \['c'\] have no pulls in column 'campaign'"),
        (NUMBERS, 4, {"arms": ["a", "a"]}, "arms must differ"),
        (NUMBERS | {"campaign": ["a", None, "b"]}, 4, {}, "row 1, column 'campaign' names no arm"),
        (NUMBERS | {"click": [0.0, np.nan, 2.0]}, 4, {}, "row 1, column 'click' has no time"),
        (NUMBERS | {"sale": [np.nan, np.inf, np.nan]}, 4, {}, "row 1, column 'sale' is inf"),
        (NUMBERS | {"sale": [np.nan, 3.0]}, 4, {}, "column 'sale' has 2 rows and 'click' 3"),
        (NUMBERS, 4, {"rounds_per_unit": 0}, "rounds_per_unit must be finite and > 0, got 0"),
        (NUMBERS, 4, {"rounds_per_unit": 1e10}, "rounds_per_unit: the log is 4e[+]10 rounds long"),
        (NUMBERS | {"click": [4.0] * 3, "sale": [np.nan] * 3}, 4, {}, "all pulls are of the time of the cut"),
        (NUMBERS, "2026-11-02", {}, "until must be a number, as column 'click' has, got '2026-11-02'"),
        (small(), 4, {}, "until must be a date without a time zone, as column 'click' has, got 4"),
        (
            small(click=["2026-11-01", "2026-11-01", "no date", "2026-11-01"]),
            "2026-11-02",
            {},
            "row 2, column 'click': 'no date' is no date",
        ),
        (
            small(sale=ZONED),
            "2026-11-02",
            {},
            "row 0, column 'sale': dates with a time zone beside dates without one in column 'click'",
        ),
        (
            small(sale=[*ZONED[:2], "2026-11-01 23:00", None]),
            "2026-11-02",
            {},
            "row 2, column 'sale': .* is a date without a time zone, and row 0 has",
        ),
        (small(), "2026-11-02 00:00Z", {}, "until must be a date without a time zone, as column 'click'"),
        (small(), "2026-11-02", {"unit": "week"}, "unit must be one of"),
        (small(sale=[3.0, None, None, None]), "2026-11-02", {}, "'sale' has numbers and 'click' has dates"),
    ],
)
def test_what_is_wrong_names_its_row_and_column(log, until, settings, message):
    with refused(ValueError, message):
        read(log, until, **settings)


def test_what_is_no_table_is_refused():
    with refused(TypeError, "source must be a path, a pandas or polars frame or a mapping"):
        read(3)


def test_a_missing_column_of_a_file_is_told_with_all_that_there_are():
    with refused(ValueError, r"arm: the log has no column 'camp', only \['campaign', 'click', 'sale'\]; name one"):
        jb.read_log(jb.example_log(), arm="camp", pulled="click", converted="sale", until="2026-11-15")


def test_the_example_is_read():
    assert jb.example_log().stat().st_size < 100_000
    log = read(jb.example_log(), until="2026-11-15")
    assert log.arms == ("A", "B", "C")
    assert len(log.arm) == 12_000
