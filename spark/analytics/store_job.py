"""The Spark job over a store: DataFrames of figures, and their report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...codec.mysql.layout_file import LayoutRecord
from ...errors import StoreError
from ...events import Ts
from ...store.plan import VERSION, CompactionPlan, Step
from .binlog_tables import UNKNOWN, BinlogTables
from .facts import FACTS, window_facts
from .report import CellFigures, HotKey, LevelFigures, StoreFigures, StoreReport, TableFigures, WindowFigures
from .store_files import stores_in, windows_in, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
HOT_KEYS: Final = 20
TASKS_PER_CORE: Final = 3
"""Tasks per core; more than one, since generations differ in size."""
_OF_BLOCKS: Final = ("bytes", "dead_bytes", "free_bytes", "deletes")
_OWN_NAMES: Final = {UNKNOWN: "the binlog", 0: "the job queue of the schema"}
_BESIDE_TABLES: Final = "commits and statements"
_NO_NAMES: Final[Mapping[int, str]] = {}


def store_facts(
    spark: SparkSession, directory: str | Path, acknowledged: Ts, binlog: BinlogTables | None = None
) -> DataFrame:
    """Return the rows of `facts.FACTS`. One task reads one generation, and needs the directory at this path.

    `binlog` tells the tables and rows of a binlog's changes. Raises StoreError if there is no store.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    windows = [(str(store), window) for store in stores_in(Path(directory)) for window in windows_in(store)]
    tasks = min(len(windows), TASKS_PER_CORE * spark.sparkContext.defaultParallelism) or 1
    places = spark.createDataFrame(windows, "store string, window string").repartition(tasks)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for place in batch.to_pylist():
                yield from window_facts(Path(place["store"]), place["window"], acknowledged, binlog)

    return places.mapInArrow(read, from_arrow_schema(FACTS))


def by_table(facts: DataFrame, plan: CompactionPlan | None = None) -> DataFrame:
    """table, changes, rows, deletes, bytes, dead_bytes, blocks, read_amplification, bytes_after,
    read_amplification_after, overlap. `_after`: without the blocks that `plan` frees."""
    from pyspark.sql import functions as f

    blocks = facts.filter("kind = 'block'")
    compacted = [f"{step.store}/{step.window}" for step in (plan.steps if plan is not None else ())]
    is_freed = f.concat_ws("/", "store", "window").isin(compacted) & (f.col("free_bytes") > 0)
    left, left_whole = (f.sum(f.when(is_freed, 0).otherwise(f.col(n))) for n in ("bytes", "whole_bytes"))
    cells = blocks.groupBy("table", "minute").agg(f.count("*").alias("here"))
    overlap = cells.groupBy("table").agg(f.max("here").alias("overlap"))
    sums = blocks.groupBy("table").agg(
        *_sums("changes"),
        _rows(),
        *_sums("deletes", "bytes", "dead_bytes"),
        f.countDistinct("store", "window", "part").alias("blocks"),
        (f.sum("whole_bytes") / f.sum("bytes")).alias("read_amplification"),
        left.alias("bytes_after"),
        f.when(left > 0, left_whole / left).otherwise(0.0).alias("read_amplification_after"),
    )
    return sums.join(overlap, "table").orderBy(f.desc("bytes"))


def by_cell(facts: DataFrame) -> DataFrame:
    """table, minute, changes, rows, deletes, bytes, dead_bytes, blocks."""
    from pyspark.sql import functions as f

    blocks = facts.filter("kind = 'block'").groupBy("table", "minute")
    sums = _sums("changes", "deletes", "bytes", "dead_bytes")
    return blocks.agg(*sums, _rows(), f.count("*").alias("blocks")).orderBy("table", "minute")


def by_window(facts: DataFrame) -> DataFrame:
    """store, window, bytes, dead_bytes, free_bytes, deletes, newest, files, overlapping_files, tombstones."""
    from pyspark.sql import functions as f

    is_block = f.col("kind") == "block"
    is_file = f.col("kind") == "file"
    return (
        facts.groupBy("store", "window")
        .agg(
            *[f.sum(f.when(is_block, f.col(name)).otherwise(0)).alias(name) for name in _OF_BLOCKS],
            f.coalesce(f.max("newest"), f.lit(0)).alias("newest"),
            f.sum(is_file.cast("long")).alias("files"),
            f.floor(f.sum(f.when(is_file, f.col("overlap")).otherwise(0)) / 2).alias("overlapping_files"),
            f.sum(f.when(is_file, f.col("deletes")).otherwise(0)).alias("tombstones"),
        )
        .orderBy("store", f.length("window"), "window")
    )


def by_level(facts: DataFrame) -> DataFrame:
    """store, level, files, bytes (of files), overlapping_files."""
    from pyspark.sql import functions as f

    files = facts.filter("kind = 'file'").groupBy("store", "level")
    overlapping = f.floor(f.sum("overlap") / 2).alias("overlapping_files")
    return files.agg(f.count("*").alias("files"), *_sums("bytes"), overlapping).orderBy("store", "level")


def hot_keys(facts: DataFrame, most: int = HOT_KEYS) -> DataFrame:
    """Return the most frequent keys: table, key, changes."""
    from pyspark.sql import functions as f

    keys = facts.filter("kind = 'key'").groupBy("table", "key").agg(*_sums("changes"))
    return keys.orderBy(f.desc("changes"), "key").limit(most)


def _rows() -> Any:
    """Return the sum of rows, null if some are unknown."""
    from pyspark.sql import functions as f

    return f.when(f.count("rows") == f.count("*"), f.sum("rows")).alias("rows")


def _sums(*names: str) -> list[Any]:
    from pyspark.sql import functions as f

    return [f.sum(name).alias(name) for name in names]


def analyze_store(
    spark: SparkSession,
    directory: str | Path,
    acknowledged: Ts = 0,
    names: Mapping[int, str] = _NO_NAMES,
    layouts: Sequence[LayoutRecord] = (),
) -> StoreReport:
    """Figures of a sorter's scratch directory, and a ranked plan.

    Everything at or below `acknowledged`, the lowest ts of the feed's sinks, counts as dead. `names` are the
    tables' names by id, `layouts` those of a binlog's feed (`read_layouts` of its data directory). Raises
    StoreError.
    """
    directory = Path(directory)
    binlog = BinlogTables(layouts) if layouts else None
    if binlog is not None:
        names = {UNKNOWN: _BESIDE_TABLES, **binlog.names, **names}
    facts = store_facts(spark, directory, acknowledged, binlog).persist()
    try:
        windows = _structs(WindowFigures, by_window(facts))
        plan = plan_of(windows, acknowledged)
        tables = [
            TableFigures(name=_name(names, row.table), **row.asDict())
            for row in by_table(facts, plan).collect()
        ]
        return StoreReport(
            str(directory),
            acknowledged,
            _stores(directory, facts),
            _structs(LevelFigures, by_level(facts)),
            windows,
            tables,
            _structs(CellFigures, by_cell(facts)),
            [
                HotKey(row.table, _name(names, row.table), bytes(row.key).hex(), row.changes)
                for row in hot_keys(facts).collect()
            ],
            plan,
        )
    except Exception as error:
        _raise_own(error)
        raise
    finally:
        facts.unpersist()


def _stores(directory: Path, facts: DataFrame) -> list[StoreFigures]:
    from pyspark.sql import functions as f

    blocks = facts.filter("kind = 'block'").groupBy("store")
    sums = blocks.agg(*_sums("bytes", "dead_bytes"), f.countDistinct("table").alias("tables"))
    rows = {row.store: row for row in sums.collect()}
    files = facts.filter("kind = 'file'").groupBy("store").agg(*_sums("bytes"))
    made = {row.store: row.bytes for row in files.collect()}
    figures = []
    for store in stores_in(directory):
        row = rows.get(store.name)
        received_bytes, written_bytes = written(store)
        figures.append(
            StoreFigures(
                store.name,
                row.bytes if row else 0,
                row.dead_bytes if row else 0,
                row.tables if row else 0,
                made.get(store.name, 0),
                written_bytes / received_bytes if received_bytes else 0.0,
            )
        )
    return figures


def _structs(kind: type[T], rows: DataFrame) -> list[T]:
    return [kind(**row.asDict()) for row in rows.collect()]


def _name(names: Mapping[int, str], table: int) -> str:
    return names.get(table) or _OWN_NAMES.get(table) or f"table {table}"


def _raise_own(error: Exception) -> None:
    """Raise the StoreError of a task, unwrapped from Spark's error."""
    for line in str(error).splitlines():
        _, prefix, text = line.partition("StoreError: ")
        if prefix:
            raise StoreError(text) from error


LEAST_SHARE: Final = 10
"""A generation is skipped while less than 1/10 of it can be freed."""
LEAST_BYTES: Final = 16 << 20
"""A plan that frees less than this has no generation of which more is rewritten than freed."""


def plan_of(windows: Iterable[WindowFigures], acknowledged: Ts) -> CompactionPlan:
    """Return a plan of the generations worth compacting, by bytes freed per byte rewritten."""
    worth = [one for one in windows if one.free_bytes * LEAST_SHARE >= one.bytes > 0]
    if sum(one.free_bytes for one in worth) < LEAST_BYTES:
        worth = [one for one in worth if gain(one) >= 1]
    ranked = sorted(worth, key=lambda one: (-gain(one), -one.free_bytes, one.store, one.window))
    steps = [Step(one.store, one.window, one.free_bytes, one.bytes - one.free_bytes) for one in ranked]
    return CompactionPlan(VERSION, acknowledged, steps)


def gain(window: WindowFigures) -> float:
    """Return the bytes freed per byte rewritten."""
    live = window.bytes - window.free_bytes
    return window.free_bytes / live if live else float("inf")
