"""Analysis of a feed's store and archive, from the files to the page."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...actors import SystemClock
from ...engine.plan_inbox import PlanInbox
from ...engine.status import StatusFile
from ...errors import TidemillError
from ...store.plan import VERSION, Plan, encode_plan
from . import analyze_archive, analyze_store
from .page import page
from .report import StoreReport
from .store_files import NoStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tidemill")

FLUSH_SECONDS: Final = 30.0
"""Time limit for a running feed to flush its buffers."""


class Analysis(Struct, frozen=True):
    page: str
    """The page, as HTML."""
    plan: str | None
    """The plan, as JSON; None without a store."""


def analysis(spark: SparkSession, data_dir: Path | None, archive: Path | None) -> Analysis:
    """Analyze the store of the feed in `data_dir`, running or not, and an archive.

    Raises SinkError for a directory without an archive, NoStore without a store if there is no archive.
    """
    found = None if archive is None else analyze_archive(spark, archive)
    store = None
    try:
        store = None if data_dir is None else _of_store(spark, data_dir)
    except NoStore as error:
        if found is None:
            raise
        log.warning("the page is of the archive alone: %s", error)
    title = " and ".join(str(each) for each in (data_dir, archive) if each is not None)
    made = page(title, SystemClock().time(), store, found)
    return Analysis(made, None if store is None else encode_plan(store.plan))


def _of_store(spark: SparkSession, data_dir: Path) -> StoreReport:
    with suppress(TidemillError):  # without a running feed everything is in the files
        PlanInbox(data_dir).hand_over(Plan(VERSION, 0, [], flush=True), FLUSH_SECONDS)
    return analyze_store(spark, data_dir / "scratch", _acknowledged(data_dir))


def _acknowledged(data_dir: Path) -> int:
    """Return the ts that every sink has, by the feed's last status; 0 if unknown."""
    try:
        sinks = StatusFile(data_dir).load().sinks
    except TidemillError:
        return 0
    return min((sink.ts for sink in sinks), default=0)
