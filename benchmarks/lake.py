"""Lakes: every change in Delta, present rows in Delta and Iceberg, joined files, and how fresh tables are.

Each part is beside delta-rs, pyiceberg or Spark on the same rows:

* `history`: changes of a table as a MariaDB logs them, in transactions of 1,000 rows, until they are in the
  table's log. The yardstick is delta-rs's `write_deltalake` of the same changes as Arrow tables, each of as
  many rows as a file of the sink. Best of several, with CPU seconds, as files are written beside.
* `tables`: `history_tables`, `copy_tables`: commits a second of many tables that get ten rows each, all at
  one checkpoint, again and again; the yardstick is `write_deltalake` for one table after the other.
* `copy`: `load`: rows into a copy. `copy_seconds` and `copy_bytes`: updates of scattered keys in a copy of
  many rows, as one commit: from the rows' arrival until the log has them, and everything that is written
  meanwhile; the median of several. The yardstick is delta-rs's `merge` into a table with the same rows.
  `reopened_seconds`: the same once the index was lost: all keys are read.
* `iceberg`: the same, of copies in Iceberg, in a SQL catalog. Their yardstick is pyiceberg's `upsert`.
* `compaction`, `freshness`: see `lake_compaction` and `lake_freshness`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from msgspec import structs
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

from ..errors import ConfigError
from ..events import (
    Batch,
    Checkpoint,
    Chunk,
    Item,
    RowChange,
    TableProgress,
    Transaction,
    runs_of,
)
from ..sink.files.directory import Directory
from ..sink.files.kinds import storage_sink
from ..sink.files.lakes.iceberg_address import iceberg_of
from ..sink.files.lakes.iceberg_options import IcebergOptions
from ..sink.files.options import DeltaOptions, Mode
from ..sink.files.parquet_columns import ChangeColumns
from ..sink.files.target import FilesTarget, files_target
from ..sink.kind import SinkContext
from ..sink.sink import Sink, closing
from ..testing.changes import MemoryStore
from . import lake_rows
from .in_turn import Measured, Taken, seconds_of, taken
from .lake_compaction import compaction
from .lake_freshness import freshness
from .lake_rows import TABLE, as_arrow, created, loads, new_rows, of_files, parts, row, scattered, updates

PARTS: Final = ("history", "copy", "iceberg", "tables", "compaction", "freshness")
_BATCH: Final = 10
"""Number of transactions of a batch."""
_OF_HISTORY: Final = 500_000
"""Most rows of the history."""
_ROUNDS: Final = 5
_MODES: Final[tuple[Mode, ...]] = ("history", "copy")
_FEW: Final = 10
"""Number of rows of a commit to one of many tables."""


def run(
    *,
    rows: int = 1_000_000,
    keys: int = 10,
    tables: int = 100,
    seconds: float = 20.0,
    parts: str | Sequence[str] = PARTS,
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share. Raises ConfigError for an unknown part."""
    chosen = parts.split(",") if isinstance(parts, str) else parts
    if wrong := [part for part in chosen if part not in PARTS]:
        raise ConfigError(f"--parts: {wrong[0]!r} is none; accepted: {', '.join(PARTS)}")
    figures, yardstick = dict[str, float](), dict[str, float]()
    few = min(rows, _OF_HISTORY)
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        folder = Path(name)
        measures: dict[str, Callable[[], Measured]] = {
            "history": lambda: _histories(folder, few),
            "copy": lambda: Measured(
                _copy(_delta, folder / "copy", rows, keys), _merge(folder / "merge", rows, keys)
            ),
            "iceberg": lambda: Measured(
                _named(_copy(_iceberg, folder / "iceberg", rows, keys)),
                _named(_upsert(folder / "upsert", rows, keys)),
            ),
            "tables": lambda: _many_tables(folder, tables),
            "compaction": lambda: compaction(folder, few),
            "freshness": lambda: freshness(folder, seconds),
        }
        for part in chosen:
            measured = measures[part]()
            figures |= measured.figures
            yardstick |= measured.yardstick
    return {
        "bench": "lake",
        "settings": {"rows": rows, "keys": keys, "history_rows": few, "tables": tables, "seconds": seconds},
        "figures": figures | {"peak_rss_mb": getrusage(RUSAGE_SELF).ru_maxrss >> 10},
        "yardstick": yardstick,
        "ratio": {name: _ratio(name, figures[name], value) for name, value in yardstick.items()},
    }


def _ratio(name: str, figure: float, yardstick: float) -> float:
    is_cost = name.endswith(("_seconds", "_bytes", "_ms"))
    return round(yardstick / figure if is_cost else figure / yardstick, 2)


def _histories(folder: Path, rows: int) -> Measured:
    logged = lake_rows.logged(rows)
    ours, bare = [], []
    for number in range(_ROUNDS):  # in turn, so that drift of the machine affects both
        ours.append(_history(folder / f"history-{number}", logged))
        bare.append(_bare_history(folder / f"bare-{number}", logged))
    return Measured(_rates(rows, ours), _rates(rows, bare))


def _rates(rows: int, taken: Sequence[Taken]) -> dict[str, float]:
    """Return the rows a second of the best round: by the clock, and a second of CPU."""
    return {
        "history": round(rows / min(one.clock for one in taken)),
        "history_cpu": round(rows / min(one.cpu for one in taken)),
    }


def _many_tables(folder: Path, count: int) -> Measured:
    figures = {f"{mode}_tables": _tables(folder / f"{mode}-tables", mode, count) for mode in _MODES}
    bare = _bare_tables(folder / "bare-tables", count)
    return Measured(figures, dict.fromkeys(figures, bare))


def _named(figures: dict[str, float]) -> dict[str, float]:
    return {f"iceberg_{name}": value for name, value in figures.items()}


# --- the sink


def _history(folder: Path, logged: Sequence[Transaction]) -> Taken:
    table = logged[0].runs[0].table
    sink = _sink(_delta(folder, "history"))
    sink.open()
    _write(sink, [created(table)])

    def write() -> None:
        for part in of_files(logged):
            for start in range(0, len(part), _BATCH):
                batch: list[Item] = [*part[start : start + _BATCH]]
                sink.write(Batch(batch, Checkpoint(batch[-1].commit_ts, "", None, "bench")))
            sink.flush()

    with closing(sink):
        return taken(write)


def _tables(folder: Path, mode: Mode, count: int) -> float:
    """Return the commits a second."""
    sink = _sink(_delta(folder, mode))
    sink.open()
    tables = [structs.replace(TABLE, name=f"orders_{number}") for number in range(count)]
    with closing(sink):
        for one in tables:
            _write(sink, [created(one)])
        seconds = []
        for start in range(0, _ROUNDS * _FEW, _FEW):
            items: list[Item] = [new_rows(table, range(start, start + _FEW)) for table in tables]
            batch = Batch(items, Checkpoint(items[-1].commit_ts, "", None, "bench"))
            seconds.append(seconds_of(partial(_flushed, sink, batch)))
    return round(count / min(seconds), 1)


def _flushed(sink: Sink, batch: Batch) -> None:
    sink.write(batch)
    sink.flush()


def _copy(
    target: Callable[[Path, Mode], FilesTarget], folder: Path, rows: int, keys: int
) -> dict[str, float]:
    sink = _sink(target(folder, "copy"))
    sink.open()
    with closing(sink):
        _write(sink, [created(TABLE)])
        whole = loads(rows, Chunk(TABLE.full_name, TableProgress()))
        loaded = sum(seconds_of(partial(_write, sink, [part])) for part in whole)
        rounds = [_update(sink, folder, updates(rows, keys, version)) for version in range(_ROUNDS)]
    shutil.rmtree(_index(folder))
    sink = _sink(target(folder, "copy"))
    sink.open()
    with closing(sink):
        reopened = seconds_of(lambda: _write(sink, [updates(rows, keys, _ROUNDS)]))
    return {
        "load": round(rows / loaded),
        "copy_seconds": round(median(seconds for seconds, _ in rounds), 3),
        "copy_bytes": round(median(written for _, written in rounds)),
        "reopened_seconds": round(reopened, 3),
    }


def _update(sink: Sink, folder: Path, changes: Transaction) -> tuple[float, int]:
    """Return the seconds of a commit, and the bytes that it left."""
    before = _bytes(folder)
    seconds = seconds_of(lambda: _write(sink, [changes]))
    return seconds, _bytes(folder) - before


def _sink(target: FilesTarget) -> Sink:
    return storage_sink(target, SinkContext(name="bench", feed="bench", store=MemoryStore()))


def _delta(folder: Path, mode: Mode) -> FilesTarget:
    folder.mkdir(exist_ok=True)
    options = DeltaOptions(mode=mode, flush_seconds=0.0, file_bytes=1 << 40)
    return files_target(Directory(folder), options, scratch=_index(folder))


def _iceberg(folder: Path, mode: Mode) -> FilesTarget:
    folder.mkdir(exist_ok=True)
    options = IcebergOptions(mode=mode, flush_seconds=0.0, file_bytes=1 << 40)
    address = iceberg_of(f"iceberg+sql://{folder}", options)
    return files_target(Directory(folder), address.options, address.catalog, _index(folder))


def _index(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.index")


def _write(sink: Sink, items: Sequence[Item]) -> None:
    for item in items:
        _flushed(sink, Batch([item], Checkpoint(item.commit_ts, "", None, "bench")))


# --- delta-rs


def _bare_history(folder: Path, logged: Sequence[Transaction]) -> Taken:
    columns = ChangeColumns(logged[0].runs[0].table)
    tables = [
        pa.Table.from_batches(
            [columns.batch([(one.commit_ts, 0, 0, False, run) for one in part for run in one.runs])]
        )
        for part in of_files(logged)
    ]

    def write() -> None:
        for table in tables:
            write_deltalake(folder, table, mode="append")

    return taken(write)


def _bare_tables(folder: Path, count: int) -> float:
    """Return the commits a second."""
    columns = ChangeColumns(TABLE)
    change = RowChange(1, 0, TABLE, "insert", None, row(1, 0))
    rows = pa.Table.from_batches([columns.batch([(1, 0, 0, False, run) for run in runs_of([change] * _FEW)])])
    places = [folder / str(number) for number in range(count)]
    for place in places:
        write_deltalake(place, rows, mode="append")

    def write() -> None:
        for place in places:
            write_deltalake(place, rows, mode="append")

    return round(count / min(seconds_of(write) for _ in range(_ROUNDS)), 1)


def _merge(folder: Path, rows: int, keys: int) -> dict[str, float]:
    for own in parts(rows):
        write_deltalake(folder, as_arrow([row(key, 0) for key in own]), mode="append")
    before = _bytes(folder)
    changed = as_arrow([row(key, 1) for key in scattered(rows, keys)])

    def merge() -> None:
        table = DeltaTable(folder)
        merging = table.merge(changed, "t.id = s.id", source_alias="s", target_alias="t")
        merging.when_matched_update_all().when_not_matched_insert_all().execute()

    seconds = seconds_of(merge)
    return {"copy_seconds": round(seconds, 3), "copy_bytes": _bytes(folder) - before}


# --- pyiceberg


def _upsert(folder: Path, rows: int, keys: int) -> dict[str, float]:
    folder.mkdir()
    kinds = (LongType(), IntegerType(), StringType(), DoubleType())
    fields = [
        NestedField(number, column.name, kind, required=False)
        for number, (column, kind) in enumerate(zip(TABLE.columns, kinds, strict=True), 1)
    ]
    with SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}") as catalog:
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.orders", Schema(*fields))
        for own in parts(rows):
            table.append(as_arrow([row(key, 0) for key in own]))
        before = _bytes(folder)
        changed = as_arrow([row(key, 1) for key in scattered(rows, keys)])
        seconds = seconds_of(lambda: table.upsert(changed, join_cols=["id"]))
    return {"copy_seconds": round(seconds, 3), "copy_bytes": _bytes(folder) - before}


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
