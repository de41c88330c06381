"""Diagnosis of a slow or stuck feed for an operator: one line per cause, with names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import tidemill
from tidemill.codec.tidb.key import record_key, record_prefix
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.progress import explanation
from tidemill.testing.progress import eventually

from .place import TidbPlace

ADDRESS = r"\(127\.0\.0\.1:\d+\)"


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    """Each table has a region of its own."""
    with Tidb(stores=2, tick_seconds=0.02) as made:
        made.execute("create database shop")
        for name in ("item", "note"):
            made.execute(f"create table shop.{name} (id int primary key, name varchar(40))")
            made.split(record_prefix(made.schema.table(f"shop.{name}").info.id))
        yield made


def key(tidb: Tidb, row: int = 1, table: str = "item") -> bytes:
    return record_key(tidb.schema.table(f"shop.{table}").info.id, row)


class Followed:
    """A feed in this process, whose consumer can be held up."""

    def __init__(self, tidb: Tidb, feed: tidemill.OpenFeed) -> None:
        self._tidb = tidb
        self.feed = feed
        self.free = Event()
        self.free.set()
        self.rows = 0
        self._thread = Thread(target=self._consume)

    def _consume(self) -> None:
        for txn in self.feed:
            self.rows += len(txn.rows)
            self.free.wait()
            self.feed.ack(txn)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self.free.set()
        self._thread.join()

    def lines(self) -> list[str]:
        return explanation(self.feed.status(), self.feed.explain())

    def says(self, pattern: str) -> re.Match[str]:
        """The first line that is like that, once there is one."""
        whole = re.compile(pattern)
        found: list[re.Match[str]] = eventually(lambda: [m for m in map(whole.fullmatch, self.lines()) if m])
        return found[0]

    def is_quiet(self) -> None:
        """It comes to the present, and all is well."""
        now = self._tidb.tso()
        eventually(lambda: self.feed.status().sinks[0].ts >= now and "nothing waits" in self.lines())


@pytest.fixture
def follow(tidb: Tidb, tmp_path: Path) -> Callable[..., Iterator[Followed]]:
    @contextmanager
    def following(**options: Any) -> Iterator[Followed]:
        url = f"tikv://{tidb.pd_address}"
        state = tmp_path / "state"
        with tidemill.open(url, ["shop.*"], data_dir=state, source_options=options) as feed:
            followed = Followed(tidb, feed)
            followed.start()
            try:
                yield followed
            finally:
                followed.free.set()
        followed.join()

    return following


def test_nothing_waits_while_all_is_well(tidb, follow):
    with follow() as found:
        found.is_quiet()


def test_a_region_that_resolves_nothing_is_named_with_its_table_and_store_and_since_when(tidb, follow):
    with follow() as found:
        found.is_quiet()
        tidb.pause_resolved()
        tidb.jump_clock(60)
        region = tidb.region_of(key(tidb))
        line = found.says(
            rf"table shop\.item has waited (\d+\.\d) s for region {region} at store \d {ADDRESS},"
            r" \d+ s behind( \(one of \d like that\))?"
        )
        assert float(line[1]) >= 60
        tidb.resume_resolved()
        found.is_quiet()


def test_regions_that_are_still_scanned_are_named_and_those_that_wait_for_their_turn_are_counted(
    tidb, follow
):
    for row in range(1, 60):
        tidb.split(key(tidb, 10 * row))
    tidb.hold_scans()
    with follow() as found:
        found.says(
            rf"table shop\.item has waited \d+\.\d s for region \d+ at store 1 {ADDRESS}: its incremental"
            r" scan \(one of \d\d like that\)"
        )
        found.says(r"\d+ regions of store 1 have waited \d+\.\d s for one of 40 incremental scans to end")
        tidb.free_scans()
        found.is_quiet()


def test_a_lock_that_is_in_the_way_is_named_with_its_row_and_its_age(tidb, follow):
    with follow() as found:
        found.is_quiet()
        start_ts = tidb.leave_lock(key(tidb, 47), ttl_ms=7_200_000, primary=key(tidb, 46))
        tidb.jump_clock(60)
        region = tidb.region_of(key(tidb))
        line = found.says(
            rf"region {region} has waited (\d+\.\d) s for the transaction {start_ts} to end, which began at"
            r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC and has 7200 s; its lock is on row 4[67] of table"
            r" shop\.item"
        )
        assert float(line[1]) >= 60
        found.says(
            rf"table shop\.item has waited \d+\.\d s for region {region} at store \d {ADDRESS}, .* behind"
        )


@pytest.mark.parametrize(
    ("word", "reason"), [("epoch_not_match", "EpochNotMatch"), ("server_is_busy", "ServerIsBusy")]
)
def test_a_region_that_fails_again_and_again_is_named_with_its_error(tidb, follow, word, reason):
    region = tidb.region_of(key(tidb))
    with follow() as found:
        found.is_quiet()
        tidb.fail_next(region, word, 10**6, "feed")
        tidb.fail_feed(region, word)
        found.says(
            rf"table shop\.item has waited \d+\.\d s for the next try of region {region} at store \d"
            rf" {ADDRESS}, which fails with {reason} \(\d+ such failures so far\)"
        )


def test_keys_without_a_region_are_named(tidb, follow):
    with follow(pd_retry_seconds=0.2) as found:
        found.is_quiet()
        tidb.pd_down()
        tidb.store_down(1)
        tidb.store_down(2)
        found.says(
            r"table shop\.(item|note) has waited \d+\.\d s for a region to be found for all of its keys.*"
        )
        found.says(rf"source has waited \d+\.\d s for an answer of PD \({tidb.pd_address}\)")
        tidb.store_up(1)
        tidb.store_up(2)
        tidb.pd_up()
        found.is_quiet()


def test_a_slow_consumer_is_seen_as_mailboxes_that_are_full(tidb, follow):
    with follow() as found:
        found.is_quiet()
        found.free.clear()
        for row in range(2_000):
            with tidb.transaction() as txn:
                txn.insert("shop.item", (row, "x"))
        found.says(r"the checkpoint has waited \d+\.\d s for ack\(txn\) for what was handed out")
        found.says(r"decoder has waited \d+\.\d s for room in sink python; 4 of 4 messages are behind it")
        found.free.set()
        eventually(lambda: found.rows == 2_000)
        found.is_quiet()


def test_the_command_says_the_same_of_another_process(tmp_path):
    with Tidb(stores=1, tick_seconds=0.05) as tidb:
        place = TidbPlace(tmp_path, tidb)
        with place.start() as running:
            running.until(lambda status: status.state == "normal" and status.sinks[0].position)
            tidb.pause_resolved()
            tidb.jump_clock(60)
            running.until(lambda status: any(wait.kind == "region" for wait in status.waits))
            done = place.call("explain", str(place.config))
            assert done.status == 0
            assert re.search(
                r"^table shop\.item has waited \d+\.\d s for region \d+ at store 1 ", done.out, re.M
            )
            assert re.search(r"^the job queue of the schema has waited \d+\.\d s for region ", done.out, re.M)
