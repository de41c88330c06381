"""The page is parsed as XML and its pictures are measured: nothing overlaps, and what is drawn is what is."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tidemill.codec.tidb.key import record_key
from tidemill.sink.files.lakes.upkeep import LakeReport, LakeTable
from tidemill.sink.files.lakes.upkeep import plan_of as plan_of_lake
from tidemill.sink.files.lakes.upkeep.report import HotKey as LakeKey
from tidemill.sink.files.lakes.upkeep.report import LakePartition
from tidemill.spark.analytics.advice import FeedPlace
from tidemill.spark.analytics.buckets import buckets
from tidemill.spark.analytics.chart import Bar, bars
from tidemill.spark.analytics.compared import Compaction, comparison
from tidemill.spark.analytics.growth import scale_step
from tidemill.spark.analytics.lake_page import lake_page
from tidemill.spark.analytics.page import page
from tidemill.spark.analytics.report import (
    ArchiveReport,
    ArchiveTable,
    CellFigures,
    DayFigures,
    HotKey,
    LevelFigures,
    StoreFigures,
    StoreReport,
    TableFigures,
    WindowFigures,
)
from tidemill.spark.analytics.store_job import plan_of
from tidemill.spark.analytics.store_page import row_of
from tidemill.store.plan import StepOutcome
from tidemill.testing.chromium import chromium, missing

NASTY = "<script>alert(\"x\")</script> & 'so on'"

WINDOWS = [
    WindowFigures("store-1", "window-1", 1000, 900, 700, 3, 5 << 18, 1, 0, 0),
    WindowFigures("store-1", "window-2", 1000, 1000, 1000, 0, 5 << 18, 2, 1, 0),
    WindowFigures("store-1", "window-3", 4000, 400, 390, 0, 5 << 18, 1, 0, 0),
    WindowFigures("store-2", "window-1", 4000, 300, 300, 0, 5 << 18, 1, 0, 0),
]
STORE = StoreReport(
    "/var/scratch",
    1_700_000_000_000 << 18,
    [StoreFigures("store-1", 6000, 2300, 2, 6100, 1.1), StoreFigures("store-2", 4000, 300, 1, 4100, 0.0)],
    [LevelFigures("store-1", 0, 4, 6100, 1), LevelFigures("store-2", 0, 1, 4100, 0)],
    WINDOWS,
    [
        TableFigures(7, NASTY, 100, 900, 20, 6000, 2300, 8, 3, 1.0, 4300, 1.0),
        TableFigures(8, "shop.people", 50, 50, 0, 4000, 300, 4, 1, 2.5, 4000, 2.5),
    ],
    [CellFigures(7, 28_333_000 + minute, 10, 90, 2, 600, 600 if minute < 5 else 0, 3) for minute in range(90)]
    + [CellFigures(8, 28_333_040, 50, 50, 0, 4000, 300, 4)],
    [HotKey(7, NASTY, record_key(7, 12).hex(), 40), HotKey(8, "shop.people", "ff00", 3)],
    plan_of(WINDOWS, 5),
)
ARCHIVE = ArchiveReport(
    "/var/archive",
    [
        ArchiveTable(NASTY, 3, 9000, 100, 5, 10, 8000, 1),
        ArchiveTable("shop.loose", 1, 10, 1, 0, 1, 0, 1, "no key"),
    ],
    [DayFigures(NASTY, f"2026-11-{day:02}", 1, 3000, 50, 2, 5) for day in (1, 2)]
    + [DayFigures("shop.loose", "2026-11-02", 1, 10, 1, 0, 1)],
    [HotKey(0, NASTY, '{"id":1,"a long key":"of a long name"}', 12)],
    470615191521329153,
)  # fmt: skip
LAKE = LakeReport(
    "delta:///var/lake",
    168,
    [
        LakeTable(
            folder=f"shop.a_table_with_a_long_name_{number}",
            name=f"shop.a_table_with_a_long_name_{number}",
            kind="history",
            rows=1_000_000,
            deleted_rows=250_000 * (number % 2),
            partitions=[
                LakePartition(f"2026-11-{day:02}", 1440, 1440, (40 << 20) * day, 90_000, 1)
                for day in range(1, 12)
            ],
            versions=1800,
            old_versions=300,
            log_bytes=40 << 20,
            replayed=37,
            has_checkpoints=True,
            unused_files=900,
            unused_bytes=9 << 30,
            removable_files=800,
            removable_bytes=8 << 30,
            unannounced=0,
            keys=5000,
            changes=1_000_000,
            hot_keys=[LakeKey('{"id":17,"region":"a long name of a region"}', 400_000)],
            read_seconds=320.0,
            read_seconds_after=9.0,
        )
        for number in range(3)
    ],
)


@pytest.fixture(scope="module")
def text():
    return page("shop: a look", 1763737445.6, STORE, ARCHIVE)


@pytest.fixture(scope="module")
def pictures(text):
    return pictures_of(text)


def pictures_of(text):
    found = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    names = {"wide": "", "narrow": " (narrow)"}
    return {one.get("aria-label") + names[one.get("class")]: one for one in found if one.get("aria-label")}


def test_it_needs_nothing_but_itself(text):
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
    assert text.startswith("<!doctype html>")


def test_names_of_the_source_are_text_and_never_markup(text):
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    ET.fromstring(
        re.search(r"<main>.*</main>", text, re.DOTALL)[0]
        .replace(" class=sub", "")
        .replace(" class=names", "")
        .replace(" class=n", "")
    )


def test_it_says_when_it_was_made(text):
    assert "<p>As of 2025-11-21 15:04:05 UTC.</p>" in text


def test_every_picture_is_as_large_as_what_is_in_it(pictures):
    assert len(pictures) == 2 * 5
    check(pictures)


def check(pictures):
    """Check that everything is within its picture, and that no two texts of a line overlap."""
    for name, picture in pictures.items():
        lines = {}
        for one in picture.iter("text"):
            begin, length = float(one.get("x")), 6 * len(one.text)
            begin -= length if one.get("text-anchor") == "end" else 0
            lines.setdefault(one.get("y"), []).append((begin, begin + length, one.text))
        for texts in lines.values():
            for (_, end, left), (begin, _, right) in pairwise(sorted(texts)):
                assert end <= begin, (name, left, right)
        _, _, width, height = map(float, picture.get("viewBox").split())
        for one in picture.iter("rect"):
            x, y, w, h = (float(one.get(side)) for side in ("x", "y", "width", "height"))
            assert w > 0, name
            assert h > 0, name
            assert 0 <= x <= x + w <= width + 0.1, name
            assert 0 <= y <= y + h <= height, name
        for one in picture.iter("text"):
            begin, length = float(one.get("x")), 6 * len(one.text)
            assert begin >= length if one.get("text-anchor") == "end" else begin + length <= width, name
            assert 0 <= float(one.get("y")) <= height, name


def test_bars_are_as_long_as_what_they_show(pictures):
    rects = list(pictures["Live and dead bytes of each generation"].iter("rect"))
    longest = 4000
    widths = {}
    for one in rects:
        widths.setdefault(one.get("y"), []).append((one.get("class"), float(one.get("width"))))
    scale = sum(width for _, width in max(widths.values(), key=lambda row: sum(w for _, w in row))) / longest
    shown = [[(name, round(width / scale)) for name, width in row] for row in widths.values()]
    assert shown == [
        [("live", 100), ("stuck", 200), ("free", 700)],
        [("free", 1000)],
        [("live", 3600), ("stuck", 10), ("free", 390)],
        [("live", 3700), ("free", 300)],
    ]


def test_minutes_that_do_not_fit_are_put_together(pictures):
    picture = pictures["Bytes per 2 minutes"]
    assert len({one.get("x") for one in picture.iter("rect")}) == 45


def test_the_plan_has_what_pays_most_first():
    assert [(step.window, step.dead_bytes, step.live_bytes) for step in STORE.plan.steps] == [
        ("window-2", 1000, 0),
        ("window-1", 700, 300),
    ]


def test_a_small_plan_rewrites_nothing_larger_than_what_it_frees():
    windows = [WindowFigures("store-1", f"window-{n}", 1000, n, n, 0, 5 << 18, 1, 0, 0) for n in (415, 500)]
    assert [step.window for step in plan_of(windows, 5).steps] == ["window-500"]
    large = WindowFigures("store-1", "window-1", 100 << 20, 40 << 20, 40 << 20, 0, 5 << 18, 1, 0, 0)
    steps = plan_of([*windows, large], 5).steps
    assert [step.window for step in steps] == ["window-500", "window-415", "window-1"]


def test_names_of_tables_break_in_no_column_narrower_than_a_word(text):
    names = re.findall(r"<table class=names><tr><th>table</th>", text)
    assert len(names) == 4
    assert (
        "table.names td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 20ch;" in text
    )


def test_a_page_of_nothing_is_a_page():
    empty = StoreReport("/var/scratch", 0, [], [], [], [], [], [], plan_of([], 0))
    text = page("nothing", 0.0, empty, ArchiveReport("/var/archive", [], [], [], 0))
    assert "Nothing is said to be acknowledged" in text
    assert "The store is empty" in text
    assert "There are none now: all are in memory, or delivered and dropped" in text
    assert "unknown" not in text
    alone = page("nothing", 0.0, archive=ARCHIVE, no_store="/var/scratch has no store in it")
    assert (
        "There is no store</h2><p>/var/scratch has no store in it. The page is of the archive alone." in alone
    )
    assert "The archive is empty" in text
    assert "tidemill compact" not in text


def many(tables, name):
    """Return the report of a store of `tables` tables, each with changes at two times."""
    stores = [StoreFigures("store-1", tables * 1000, tables * 500, tables, tables * 1000, 1.0)]
    windows = [WindowFigures("store-1", f"window-{n}", 100, 70, 60, 0, 5 << 18, 1, 0, 0) for n in range(40)]
    figures = [
        TableFigures(n, name(n), 1000, 5000, 0, 1000, 500, 50, 9, 3.0, 500, 1.5) for n in range(1, tables + 1)
    ]
    cells = [
        CellFigures(n, 28_333_000 + 4000 * k, 500, 2500, 0, 500, 500 * (k == 0), 1)
        for n in range(1, tables + 1)
        for k in range(2)
    ]
    plan = plan_of(windows, 5)
    return StoreReport("/var/scratch", 5 << 18, stores, [], windows, figures, cells, [], plan)


def test_of_very_many_tables_the_largest_are_shown_and_the_others_counted():
    text = page("many", 0.0, many(10_000, lambda number: f"shop.table_{number}"))
    assert len(text) < 250_000
    assert "9,970 more tables, together 9.5 MiB" in text
    assert "10 more generations, together 1,000 B" in text
    check(pictures_of(text))


def test_long_names_are_cut_in_the_middle_and_are_whole_beside_it():
    names = [f"warehouse_of_the_north.{'order_items_' * 6}{number}" for number in range(1, 4)]
    drawn = bars([Bar(name, [("live", 7.0)], "seven") for name in names], "Names")
    text = page("long", 0.0, many(3, lambda number: names[number - 1]))
    found = pictures_of(f"<main>{drawn}</main>")
    assert len({one.text for one in found["Names"].iter("text") if "…" in one.text}) == 3
    assert all(name in text for name in names)
    check(found)


def test_one_table_of_one_minute_is_a_page_with_units():
    window = WindowFigures("store-1", "window-1", 1000, 0, 0, 0, 5 << 18, 1, 0, 0)
    one = StoreReport(
        "/var/scratch", 0, [StoreFigures("store-1", 1000, 0, 1, 1100, 1.0)], [], [window],
        [TableFigures(7, "shop.orders", 3, 2500, 10, 1000, 0, 2, 2, 1.0, 1000, 1.0)],
        [CellFigures(7, 28_333_000, 3, 2500, 10, 1000, 0, 2)], [], plan_of([window], 0),
    )  # fmt: skip
    text = page("one", 0.0, one)
    found = pictures_of(text)
    (column,) = found["Bytes per minute"].iter("rect")
    assert float(column.get("width")) < 70
    assert [each.text for each in found["Bytes per minute"].iter("text")][:3] == [
        "Bytes per minute", "0 B", "500 B",
    ]  # fmt: skip
    assert "2,500</b><span>rows" in text
    check(found)


def test_unknown_rows_are_said_to_be_unknown():
    report = many(2, lambda number: f"t{number}")
    tables = [replace(one, rows=None) for one in report.tables]
    text = page("pump", 0.0, replace(report, tables=tables))
    assert "<b>unknown</b><span>rows" in text


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_pages_are_legible_on_a_narrow_screen_and_words_come_before_pictures(tmp_path, text):
    """No part is wider than the screen, and no letter is smaller than 11 pixels."""
    of_store = tmp_path / "store.html"
    of_store.write_text(text)
    of_lake = tmp_path / "lake.html"
    of_lake.write_text(lake_page(LAKE, plan_of_lake(LAKE), 0.0))
    with chromium() as browser:
        shown = browser.new_page(viewport={"width": 500, "height": 900})
        for path in (of_store, of_lake):
            shown.goto(f"file://{path}")
            wide = shown.evaluate(
                "[document.documentElement, ...document.querySelectorAll('section, td, pre')]"
                ".filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth).length"
            )
            assert wide == 0, path
            letters = shown.evaluate(
                "[...document.querySelectorAll('svg.narrow text')].filter(one => one.getClientRects().length)"
                ".map(one => one.ownerSVGElement)"
                ".map(one => 12 * one.clientWidth / one.viewBox.baseVal.width)"
            )
            assert letters
            assert min(letters) >= 11
            words = shown.evaluate("document.body.innerText.split('\\n').slice(0, 12).join(' ')")
            assert "In short" in words
            assert shown.evaluate(
                "[...document.querySelectorAll('main > section')].slice(0, 2)"
                ".every(one => !one.querySelector('svg'))"
            )


# --- what to do


def steps_of(text):
    """Return title, command and expected figures of each step."""
    found = re.findall(
        r"<li><h4>(.*?)</h4><p>.*?</p><pre>(.*?)</pre><div.*?>(.*?)</div></li>", text, re.DOTALL
    )
    return {
        title: (command, dict(re.findall(r"<i>(.*?)</i> <b>(.*?)</b>", figures)))
        for title, command, figures in found
    }


def test_the_page_names_the_commands_and_what_each_would_give():
    place = FeedPlace("shop.toml", "plan.json", "warehouse")
    steps = steps_of(page("shop", 0.0, STORE, ARCHIVE, place))
    assert list(steps) == [
        "Compact 2 generations", "Find out what sink warehouse waits for", "Compact the archive of 1 table",
    ]  # fmt: skip
    command, gives = steps["Compact 2 generations"]
    assert command == "tidemill compact shop.toml --plan plan.json --page after.html"
    assert gives == {
        "frees": "1.7 KiB", "writes": "300 B", "store": "9.8 KiB → 8.1 KiB", "generations": "4 → 3",
        "read amplification": "1.6\u00d7 → 1.7\u00d7",
    }  # fmt: skip
    command, gives = steps["Find out what sink warehouse waits for"]
    assert command.splitlines()[0] == "tidemill explain shop.toml"
    assert gives["frees"] == "8.1 KiB"
    command, gives = steps["Compact the archive of 1 table"]
    assert command == "tidemill compact --archive /var/archive --up-to 470615191521329153"
    assert gives == {
        "frees": "about 7.8 KiB",
        "writes": "about 1,000 B",
        "changes read per row": "10.0\u00d7 → 1.0\u00d7",
    }


def test_without_a_plan_on_disk_the_first_command_writes_it():
    steps = steps_of(page("shop", 0.0, STORE))
    assert steps["Compact 2 generations"][0].splitlines()[0] == "tidemill analyze feed.toml --plan plan.json"


def test_uneven_stores_and_many_small_blocks_have_a_step():
    uneven = [StoreFigures("store-1", 9000, 0, 2, 9000, 1.0), StoreFigures("store-2", 1000, 0, 1, 1000, 1.0)]
    tables = [replace(STORE.tables[0], overlap=300, blocks=400), STORE.tables[1]]
    text = page("shop", 0.0, replace(STORE, stores=uneven, tables=tables))
    steps = steps_of(text)
    assert steps["Use one store"] == (
        "[sorter]\nstores = 1",
        {"frees": "0 B", "skew": "1.8\u00d7 → 1.0\u00d7"},
    )
    assert "Spill later, in larger blocks" in steps
    assert "store-1 has 90 % of the bytes; an even share would be 50 %." in text


def test_a_compaction_is_shown_with_its_figures_before_and_after():
    after = replace(STORE, stores=[StoreFigures("store-1", 4300, 500, 2, 4400, 1.2)], windows=WINDOWS[:2])
    outcomes = [
        StepOutcome("store-1", "window-2", 1000, 0),
        StepOutcome("store-1", "window-9", 0, 0, "it is gone"),
    ]
    done = Compaction(STORE, outcomes, after)
    assert comparison(done)[:4] == [
        ("keys and values", "9.8 KiB", "4.2 KiB"),
        ("of them dead", "2.5 KiB", "500 B"),
        ("files", "10.0 KiB", "4.3 KiB"),
        ("generations", "4", "2"),
    ]
    text = page("shop", 0.0, after, done=done)
    assert "1 of 2 steps were carried out: they freed 1,000 B and wrote 0 B." in text
    assert "it is gone" in text


# --- scales


@pytest.mark.parametrize(
    ("minutes", "unit", "labels"),
    [
        ([], "minute", []),
        ([28_333_000], "minute", ["16:40"]),
        ([28_333_000, 28_333_059], "minute", 60),
        ([28_333_000, 28_333_061], "2 minutes", 31),
        ([28_333_000, 28_333_000 + 4000], "2 hours", 34),
        ([28_333_000, 28_333_000 + 59 * 1440], "day", 60),
        ([28_333_000, 28_333_000 + 400 * 1440], "7 days", 58),
    ],
)
def test_times_are_divided_into_columns_of_a_round_width(minutes, unit, labels):
    found = buckets(minutes)
    assert found.unit == unit
    assert found.labels == labels if isinstance(labels, list) else len(found.labels) == labels
    assert all(0 <= found.of(minute) < found.count for minute in minutes)


@pytest.mark.parametrize(
    ("most", "base", "step"),
    [(0, 10, 1), (7, 10, 2), (2500, 10, 1000), (3000, 1024, 1024), (5 << 20, 1024, 2 << 20)],
)
def test_lines_of_a_scale_are_at_round_values(most, base, step):
    assert scale_step(most, base) == step


def test_keys_are_shown_as_people_know_them():
    assert row_of(record_key(7, -3).hex()) == "row -3"
    assert row_of(record_key(7, b"\x03longer than eight").hex()).startswith("row 03")
    assert row_of("ff00") == "ff00"
