"""A look at a feed's store and an archive, from the files up to the page."""

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
"""So long a running feed may take to write its buffers to files."""


class Analysis(Struct, frozen=True):
    page: str
    """HTML."""
    plan: str | None
    """JSON; None without a store."""


def analysis(spark: SparkSession, data_dir: Path | None, archive: Path | None) -> Analysis:
    """Of the feed that works in `data_dir`, or died there, and of an archive.

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
    with suppress(TidemillError):  # without a running feed the files have all there is
        PlanInbox(data_dir).hand_over(Plan(VERSION, 0, [], flush=True), FLUSH_SECONDS)
    return analyze_store(spark, data_dir / "scratch", _acknowledged(data_dir))


def _acknowledged(data_dir: Path) -> int:
    """What every sink has, as its feed said last; 0, nothing, if that isn't known."""
    try:
        sinks = StatusFile(data_dir).load().sinks
    except TidemillError:
        return 0
    return min((sink.ts for sink in sinks), default=0)
