"""Analysis of a feed's store and archive, from the files to the page."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...actors import SystemClock
from ...codec.mysql.layout_file import read_layouts
from ...engine.plan_inbox import PlanInbox
from ...engine.status import SinkStatus, StatusFile
from ...errors import TidemillError
from ...store.plan import VERSION, CompactionPlan, encode_plan
from . import analyze_archive, analyze_store
from .advice import FeedPlace
from .compared import Compaction
from .page import page
from .report import StoreReport
from .store_files import NoStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tidemill")

FLUSH_SECONDS: Final = 30.0
"""Time limit for a running feed to flush its buffers."""


class FeedStore(Struct, frozen=True):
    """A feed and the store of its sorter."""

    data_dir: Path
    directory: Path
    """The sorter's directory."""
    arguments: str = ""
    """Arguments that name the feed in commands; empty: its data directory."""

    def place(self, plan: Path | None) -> FeedPlace:
        arguments = self.arguments or f"--data-dir {quote(str(self.data_dir))}"
        slowest = min(_sinks(self.data_dir), key=lambda sink: sink.ts, default=None)
        return FeedPlace(arguments, "" if plan is None else str(plan), slowest.name if slowest else "")

    def report(self, spark: SparkSession) -> StoreReport:
        """Analyze the store; a running feed writes its buffers to files before. Raises StoreError."""
        with suppress(TidemillError):  # without a running feed everything is in the files
            PlanInbox(self.data_dir).hand_over(CompactionPlan(VERSION, 0, [], flush=True), FLUSH_SECONDS)
        acknowledged = min((sink.ts for sink in _sinks(self.data_dir)), default=0)
        layouts = [*read_layouts(self.data_dir)]
        return analyze_store(spark, self.directory, acknowledged, layouts=layouts)


class Analysis(Struct, frozen=True):
    page: str
    """The page, as HTML."""
    plan: str | None
    """The plan, as JSON; None without a store."""


def analysis(
    spark: SparkSession, feed: FeedStore | None, archive: Path | None, plan: Path | None = None
) -> Analysis:
    """Analyze the store of a feed, running or not, and an archive. `plan` is where the plan will be written.

    Raises SinkError for a directory without an archive, NoStore without a store if there is no archive.
    """
    archived = None if archive is None else analyze_archive(spark, archive)
    store, no_store = None, ""
    try:
        store = None if feed is None else feed.report(spark)
    except NoStore as error:
        if archived is None:
            raise
        no_store = str(error)
        log.warning("the page is of the archive alone: %s", error)
    if store is not None and not store.bytes:
        log.warning("the store in %s is empty, so the page has no figures of it", store.directory)
    directory = None if feed is None else feed.data_dir
    title = " and ".join(str(each) for each in (directory, archive) if each is not None)
    place = None if feed is None else feed.place(plan)
    made = page(title, SystemClock().time(), store, archived, place, no_store=no_store)
    return Analysis(made, None if store is None else encode_plan(store.plan))


def compaction(spark: SparkSession, feed: FeedStore, plan: CompactionPlan) -> Compaction:
    """Have the running feed carry out the plan, and measure its store before and after.

    Raises StoreError, ConfigError and CheckpointError.
    """
    before = feed.report(spark)
    outcomes = PlanInbox(feed.data_dir).hand_over(plan)
    return Compaction(before, outcomes, feed.report(spark))


def page_after(feed: FeedStore, done: Compaction) -> str:
    """Render the page of the state after a compaction."""
    return page(str(feed.data_dir), SystemClock().time(), done.after, place=feed.place(None), done=done)


def _sinks(data_dir: Path) -> list[SinkStatus]:
    """Return the sinks of the feed's last status; none if there is no status."""
    try:
        return [*StatusFile(data_dir).load().sinks]
    except TidemillError:
        return []
