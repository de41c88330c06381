"""Small files of a history that are joined, in rows a second.

* `compaction`: in Delta, beside Spark's `OPTIMIZE … ZORDER BY (commit_ts)`, without the start of its session,
  if Delta's jars are in build/delta; `compaction_rs`: the same beside delta-rs's `optimize.z_order`.
* `iceberg_compaction`: in Iceberg, beside pyiceberg's `scan` and `overwrite` of all rows.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from ..actors import SystemClock
from ..events import Batch, Checkpoint, Item
from ..sink import open_sink
from ..sink.files.lakes.upkeep import LakePlan, LakeStep, carry_out, lake_of
from ..sink.files.lakes.upkeep.plan import TARGET_BYTES, VERSION
from ..sink.registry import given_sink
from ..sink.sink import closing
from ..testing import delta
from ..testing.changes import MemoryStore
from . import lake_rows
from .in_turn import Measured, seconds_of

_FILES: Final = 100
_WEEK_HOURS: Final = 168


def compaction(folder: Path, rows: int) -> Measured:
    """Return rows a second of `rows` in 100 files."""
    name = _fed(f"delta://{folder}/joined", rows)
    for copy in ("spark", "warm", "rs"):
        shutil.copytree(folder / "joined", folder / copy)
    _fed(f"iceberg+sql://{folder}/iceberg_joined", rows)
    own = round(rows / _joined(f"delta://{folder}/joined", name))
    figures: dict[str, float] = {"compaction_rs": own}
    table = DeltaTable(folder / "rs" / name)
    yardstick: dict[str, float] = {
        "compaction_rs": round(rows / seconds_of(lambda: table.optimize.z_order(["commit_ts"])))
    }
    if not delta.missing():
        figures["compaction"] = own
        yardstick["compaction"] = round(rows / _by_spark(folder / "warm" / name, folder / "spark" / name))
    yardstick["iceberg_compaction"] = round(rows / _overwritten(folder / "iceberg_joined", name))
    shutil.rmtree(folder / "iceberg_joined")
    _fed(f"iceberg+sql://{folder}/iceberg_joined", rows)
    figures["iceberg_compaction"] = round(rows / _joined(f"iceberg+sql://{folder}/iceberg_joined", name))
    return Measured(figures, yardstick)


def _fed(url: str, rows: int) -> str:
    """Make a history of many files; return the name of its table."""
    logged = lake_rows.logged(rows)
    table = logged[0].runs[0].table
    options = {"flush_seconds": 0.0, "journal_seconds": 0.0}
    sink = open_sink("bench", url, feed="bench", store=MemoryStore(), options=options)
    size = max(1, len(logged) // _FILES)
    sink.open()
    with closing(sink):
        parts: list[list[Item]] = [[lake_rows.created(table)]]
        parts += [[*logged[start : start + size]] for start in range(0, len(logged), size)]
        for part in parts:
            sink.write(Batch(part, Checkpoint(part[-1].commit_ts, "", None, "bench")))
            sink.flush()
    return table.full_name


def _joined(url: str, name: str) -> float:
    """Return the seconds of a step."""
    lake = lake_of(url, given_sink("lake", url).options)
    step = LakeStep(name, "sort", [], 0, 0, 0, 0, 0.0)
    with contextlib.closing(lake):
        (done,) = carry_out(lake, LakePlan(VERSION, url, _WEEK_HOURS, TARGET_BYTES, [step]), SystemClock())
    if done.left:
        raise RuntimeError(done.line)
    return done.seconds


def _by_spark(warm: Path, path: Path) -> float:
    from ..spark import session

    spark = session("bench", config={"spark.jars": ",".join(delta.jars())}, lakes=["delta"])
    try:
        spark.conf.set("spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled", "false")
        statement = "OPTIMIZE delta.`{}` ZORDER BY (commit_ts)"
        spark.sql(statement.format(warm)).collect()  # loads and compiles code
        return seconds_of(lambda: spark.sql(statement.format(path)).collect())
    finally:
        spark.stop()


def _overwritten(folder: Path, name: str) -> float:
    with SqlCatalog("tidemill", uri=f"sqlite:///{folder}/catalog.db") as catalog:
        table = catalog.load_table(name)
        return seconds_of(lambda: table.overwrite(table.scan().to_arrow()))
