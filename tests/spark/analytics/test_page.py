"""The page is parsed as XML and its pictures are measured: nothing overlaps, and what is drawn is what is."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tidemill.codec.tidb.key import record_key
from tidemill.spark.analytics.page import page
from tidemill.spark.analytics.rank import plan_of
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
from tidemill.spark.analytics.store_page import row_of

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
        TableFigures(7, NASTY, 100, 20, 6000, 2300, 8, 3, 1.0),
        TableFigures(8, "shop.people", 50, 0, 4000, 300, 4, 1, 2.5),
    ],
    [CellFigures(7, 28_333_000 + minute, 10, 2, 600, 600 if minute < 5 else 0, 3) for minute in range(90)]
    + [CellFigures(8, 28_333_040, 50, 0, 4000, 300, 4)],
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
)  # fmt: skip


@pytest.fixture(scope="module")
def text():
    return page("shop: a look", 1763737445.6, STORE, ARCHIVE)


@pytest.fixture(scope="module")
def pictures(text):
    found = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    return {one.get("aria-label"): one for one in found if one.get("aria-label")}


def test_it_needs_nothing_but_itself(text):
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
    assert text.startswith("<!doctype html>")


def test_names_of_the_source_are_text_and_never_markup(text):
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    ET.fromstring(
        re.search(r"<main>.*</main>", text, re.DOTALL)[0].replace(" class=sub", "").replace(" class=n", "")
    )


def test_it_says_when_it_was_made(text):
    assert "<p>As of 2025-11-21 15:04:05 UTC.</p>" in text


def test_every_picture_is_as_large_as_what_is_in_it(pictures):
    assert len(pictures) == 9
    for name, picture in pictures.items():
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
    rects = list(pictures["Live and dead bytes of each window"].iter("rect"))
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
    picture = pictures["Bytes of each table by minute of commit"]
    notes = [one.find("title").text for one in picture.iter("rect")]
    assert len(notes) == 45 + 1
    assert (
        sum(int(re.search(r"([\d,]+) changes", note)[1].replace(",", "")) for note in notes) == 90 * 10 + 50
    )


def test_the_plan_has_what_pays_most_first():
    assert [(step.window, step.dead_bytes, step.live_bytes) for step in STORE.plan.steps] == [
        ("window-2", 1000, 0),
        ("window-1", 700, 300),
    ]


def test_a_page_of_nothing_is_a_page():
    empty = StoreReport("/var/scratch", 0, [], [], [], [], [], [], plan_of([], 0))
    text = page("nothing", 0.0, empty, ArchiveReport("/var/archive", [], [], []))
    assert "Nothing is said to be acknowledged" in text


def test_keys_are_shown_as_people_know_them():
    assert row_of(record_key(7, -3).hex()) == "row -3"
    assert row_of(record_key(7, b"\x03longer than eight").hex()).startswith("row 03")
    assert row_of("ff00") == "ff00"
