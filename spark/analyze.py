"""A look at a feed's store and an archive, from the files up to the page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..compaction import PlanBox
from ..errors import TidemillError
from ..status import StatusFile
from ..store.plan import VERSION, Plan, encode_plan
from .analytics import analyze_archive, analyze_store
from .analytics.page import page
from .analytics.report import StoreReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLUSH_SECONDS: Final = 30.0
"""So long a running feed may take to write its buffers to files."""


class Analysis(Struct, frozen=True):
    page: str
    """HTML."""
    plan: str | None
    """JSON; None without a store."""


def analysis(spark: SparkSession, data_dir: Path | None, archive: Path | None) -> Analysis:
    """Of the feed that works in `data_dir`, or died there, and of an archive. Raises StoreError for a
    directory without a store, SinkError for one without an archive."""
    store = None if data_dir is None else _of_store(spark, data_dir)
    found = None if archive is None else analyze_archive(spark, archive)
    title = " and ".join(str(each) for each in (data_dir, archive) if each is not None)
    return Analysis(page(title, store, found), None if store is None else encode_plan(store.plan))


def _of_store(spark: SparkSession, data_dir: Path) -> StoreReport:
    with suppress(TidemillError):  # without a running feed the files have all there is
        PlanBox(data_dir).hand_over(Plan(VERSION, 0, [], flush=True), FLUSH_SECONDS)
    return analyze_store(spark, data_dir / "scratch", _acknowledged(data_dir))


def _acknowledged(data_dir: Path) -> int:
    """What every sink has, as its feed said last; 0, nothing, if that isn't known."""
    try:
        sinks = StatusFile(data_dir).load().sinks
    except TidemillError:
        return 0
    return min((sink.ts for sink in sinks), default=0)
