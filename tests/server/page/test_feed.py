"""The page of one feed: its diagnosis, its stages and what it loads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tidemill.engine.lag import Lag
from tidemill.engine.status import BackfillProgress, SnapshotStatus
from tidemill.engine.verification import Divergence, VerifyStatus
from tidemill.events import Wait
from tidemill.sharding import LockStatus

from .conftest import Open
from .recorded import RecordedFeed, served, sink_status, table_status

LOST = "Lost connection to server at 'warehouse:3306'"
LOCK = LockStatus(
    "shop-`shop`.`orders`",
    "copy",
    "a.shop1.orders",
    "ALTER TABLE orders ADD COLUMN note TEXT",
    "binlog.000003:4711",
    ["a.shop1.orders"],
    ["b.shop2.orders"],
    320.0,
    1_204,
)


def stage(page: Page, title: str) -> object:
    return page.locator(".stage").filter(has=page.get_by_role("heading", name=re.compile(f"{title}$")))


def test_the_verification_shows_what_is_compared_and_what_differs(open_page: Open) -> None:
    one = VerifyStatus(
        "copy",
        "comparing",
        since=1_700_000_000.0,
        percent=42.0,
        table="shop.orders",
        rows=4_200,
        whole_ended=1_699_990_000.0,
        repaired=2,
        divergences=(
            Divergence(
                "shop.lines", 1, 0, 1, "id=7", "id=9", ("shop.lines id=7: missing in the target",), "", 1.7e9
            ),
        ),
        differences=2,
        diverged=1,
    )
    with served(RecordedFeed("shop", verify=[one])) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        card = page.get_by_label("Verification of sink copy").first
        expect(card).to_contain_text("4,200 rows compared, 42 %, now table shop.orders")
        expect(card).to_contain_text(
            "shop.lines: 2 rows (1 missing, 0 only in the target, 1 changed, id=7 to"
        )
        expect(card).to_contain_text("shop.lines id=7: missing in the target")
        expect(card).to_contain_text("2 rows repaired")


def test_the_picture_shows_where_and_why_something_waits(open_page: Open) -> None:
    feed = RecordedFeed(
        "shop",
        state="warning",
        detail=f"sink copy: {LOST}; trying again in 4.0 s",
        sinks=[sink_status("copy", 75.0), sink_status("archive", target="parquet:///changes")],
    )
    feed.waiting = [
        Wait("decoder", "room", 40.0, on="sink copy", count=64, limit=64),
        Wait("sink copy", "retry", 42.0, reason=LOST, pause_seconds=4.0),
        Wait("Writer of table 7 (1)", "memory", 31.0, table="shop.orders"),
        Wait("region 4", "lock", 12.0, table="shop.orders", row="row 7", ts=1 << 40, ttl_seconds=3.0),
        Wait(
            "puller: table 7 (1)", "region", 9.0, table="shop.orders", region=4, store=1, address="kv:20160"
        ),
        Wait("sink archive", "answer", 0.2, on="parquet:///changes"),
    ]
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        expect(page.locator(".cause")).to_contain_text(LOST)
        expect(stage(page, "Decoder")).to_contain_text("decoder has waited 40.0 s for room in sink copy")
        expect(stage(page, "Sink copy")).to_contain_text(f"for the next attempt, in 4.0 s: {LOST}")
        expect(stage(page, "Sorter")).to_contain_text("table shop.orders has waited 31.0 s for room")
        expect(stage(page, "Source")).to_contain_text("its lock is on row 7 of table shop.orders")
        expect(stage(page, "Puller")).to_contain_text("region 4 at store 1")
        expect(stage(page, "Sink archive")).not_to_contain_text("waited")
        titles = page.locator(".stage h3").all_inner_texts()
        assert [title.replace("◆", "").strip() for title in titles] == [
            "Source", "Puller", "Sorter", "Decoder", "Chain", "Sink copy", "Sink archive",
        ]  # fmt: skip


def test_a_calm_feed_says_that_nothing_waits(open_page: Open) -> None:
    feed = RecordedFeed("shop", rows=1_234_567, rows_per_second=0.0, sinks=[sink_status("copy", 0.0)])
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        expect(page.locator(".cause")).to_have_text("Nothing waits.")
        expect(page.locator(".head .badge")).to_contain_text("Idle")
        expect(stage(page, "Decoder")).to_contain_text("1,234,567")
        expect(page.locator(".stage.warning")).to_have_count(0)


def test_lag_is_shown_by_stage(open_page: Open) -> None:
    sinks = [
        sink_status("copy", 80.0, lag=Lag(0.5, 1.5, 74.0, 4.0, 80.0)),
        sink_status("archive", 20.0, lag=Lag(0.5, 1.5, 10.0, 8.0, 20.0)),
        sink_status("new", None),
    ]
    with served(RecordedFeed("shop", sinks=sinks)) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        rows = page.get_by_role("table", name="Lag by stage").locator("tbody tr")
        expect(rows).to_have_count(3)
        assert rows.nth(0).locator("td").all_inner_texts() == [
            "0.5 s",
            "1.5 s",
            "1 min 14 s",
            "4.0 s",
            "1 min 20 s",
        ]
        assert rows.nth(2).locator("td").all_inner_texts() == ["\N{EN DASH}"] * 5
        bar = rows.nth(1).locator(".bar")
        part = bar.locator(".written_to_durable").evaluate("one => one.getBoundingClientRect().width")
        whole = bar.evaluate("one => one.getBoundingClientRect().width")
        assert part / whole == pytest.approx(8 / 80, abs=0.01)  # of the largest lag


def test_a_load_shows_its_progress_and_the_time_left(open_page: Open) -> None:
    feed = RecordedFeed("shop", snapshot=SnapshotStatus("shop.orders", 100_000, 1_100_000, 12, 3))
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        loading = page.get_by_role("region", name="Loading")
        expect(loading).to_contain_text("Table shop.orders, 4 of 12: 100,000 of about 1,100,000 rows, 9 %")
        # 100,000 rows in 10 s, by the clock of the feed.
        feed.shown = feed.shown.__class__(**fields(feed, updated=feed.shown.updated + 10, rows=200_000))
        expect(loading).to_contain_text("200,000 of about 1,100,000 rows, 18 %, about 1 min 30 s left")
        expect(loading.get_by_role("progressbar", name="Load of shop.orders")).to_have_js_property(
            "value", 100 * 200_000 / 1_100_000
        )


def fields(feed: RecordedFeed, *, updated: float, rows: int) -> dict[str, object]:
    shown = {name: getattr(feed.shown, name) for name in feed.shown.__struct_fields__}
    return shown | {"updated": updated, "snapshot": SnapshotStatus("shop.orders", rows, 1_100_000, 12, 3)}


def test_a_backfill_shows_its_stage(open_page: Open) -> None:
    feed = RecordedFeed("shop", backfill=BackfillProgress("reading", 30, 120, 3_000_000, 12_000_000, 5_400.0))
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        expect(page.get_by_role("region", name="Loading")).to_have_text(
            re.compile("Backfill, reading: 30 of 120 chunks, .* about 12,000,000 rows, about 1 h 30 min left")
        )


def test_locks_are_shown_with_what_they_wait_for(open_page: Open) -> None:
    with served(RecordedFeed("shop", locks=[LOCK])) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        page.get_by_role("link", name="Show 1 lock").click()
        lock = page.get_by_role("article", name=f"Lock {LOCK.id}")
        expect(lock).to_contain_text(LOCK.statement)
        expect(lock).to_contain_text("b.shop2.orders")
        expect(lock).to_contain_text("1,204 rows")
        expect(page.get_by_role("link", name="Locks 1")).to_have_attribute("aria-current", "page")


def test_the_history_is_chosen_by_kind(open_page: Open) -> None:
    feed = RecordedFeed("shop")
    feed.note("operation", "paused", "alice")
    feed.note("error", "failed: the disk is full")
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        page.get_by_role("link", name="All events").click()
        entries = page.locator(".entries li")
        expect(entries.filter(has_text="paused by alice")).to_be_visible()
        page.get_by_role("button", name="Errors").click()
        expect(entries).to_have_count(1)
        expect(entries).to_contain_text("the disk is full")
        expect(entries.locator("small").first).to_have_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"))


def test_options_have_no_secrets(open_page: Open) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page(f"{server.url}/#/feeds/shop/options")
        expect(page.locator("pre")).to_contain_text('"url": "mysql://etl@warehouse/copy"')


def test_a_program_s_feed_has_no_buttons_of_its_life(open_page: Open) -> None:
    feed = RecordedFeed(
        "shop", state="failed", detail="x; tidemill resume FEED --skip-ddl binlog.000003:4711"
    )
    feed.is_managed = False
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop")
        expect(page.get_by_role("button", name="Compare")).to_be_visible()
        assert page.locator("main button").all_inner_texts() == ["Compare"]


NASTY = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("part", ["", "/tables", "/history", "/locks"])
def test_names_and_errors_are_text_never_html(open_page: Open, part: str) -> None:
    feed = RecordedFeed(
        "shop",
        [table_status(f"shop.{NASTY}", "failed", error=NASTY)],
        state="failed",
        detail=NASTY,
        source=NASTY,
        locks=[LockStatus(NASTY, "copy", NASTY, NASTY, NASTY, [NASTY], [NASTY], 1.0, 1)],
    )
    feed.note("error", NASTY, NASTY)
    with served(feed) as server:
        page = open_page(f"{server.url}/#/feeds/shop{part}")
        expect(page.locator("main")).to_contain_text(NASTY)
        assert page.locator("main img").count() == 0
