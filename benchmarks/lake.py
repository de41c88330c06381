"""Rows into tables of Delta and Iceberg, beside delta-rs and pyiceberg on the same rows.

* `history`: changes of a table, until they are in the table's log. The yardstick is delta-rs's
  `write_deltalake` of the same changes as Arrow tables, each of as many rows as a file of the sink.
* `load`: rows into a copy.
* `copy_seconds` and `copy_bytes`: updates of scattered keys in a copy of many rows, as one commit: from the
  rows' arrival until the log has them, and everything that is written meanwhile; the median of several. The
  yardstick is delta-rs's `merge` into a table with the same rows.
* `reopened_seconds`: the same once the index was lost: all keys are read.

Figures that begin with `iceberg_` are those of copies in Iceberg, in a SQL catalog. Their yardstick is
pyiceberg's `upsert`.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

from ..events import (
    Batch,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    Item,
    RowChange,
    Table,
    TableProgress,
    Transaction,
)
from ..sink.files.directory import Directory
from ..sink.files.kinds import storage_sink
from ..sink.files.lakes.iceberg_address import iceberg_of
from ..sink.files.lakes.iceberg_options import IcebergOptions
from ..sink.files.options import DeltaOptions, Mode
from ..sink.files.parquet_columns import ChangeColumns
from ..sink.files.target import FilesTarget, files_target
from ..sink.kind import SinkContext
from ..sink.sink import CheckpointStore, Sink, closing

_TABLE: Final = Table(
    "bench",
    "orders",
    (
        Column("id", "bigint", nullable=False),
        Column("customer", "int", nullable=False),
        Column("note", "varchar", length=40, charset="utf8mb4"),
        Column("price", "double"),
    ),
    key=(0,),
)
_PART: Final = 250_000
"""Number of rows of a file."""
_OF_HISTORY: Final = 1_000_000
"""Most rows of the history."""
_ROUNDS: Final = 5


class _NoStore(CheckpointStore):
    def load(self) -> None:
        return None

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        pass


def run(*, rows: int = 1_000_000, keys: int = 10) -> dict[str, object]:
    """Return one result in the form that all benchmarks share."""
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        folder = Path(name)
        few = min(rows, _OF_HISTORY)
        history = _history(folder / "history", few)
        bare = _bare_history(folder / "bare", few)
        copy = _copy(_delta, folder / "copy", rows, keys)
        merge = _merge(folder / "merge", rows, keys)
        iceberg = _copy(_iceberg, folder / "iceberg", rows, keys)
        upsert = _upsert(folder / "upsert", rows, keys)
    return {
        "bench": "lake",
        "settings": {"rows": rows, "keys": keys, "history_rows": few},
        "figures": {"history": round(few / history), **copy, **_named(iceberg)},
        "yardstick": {"history": round(few / bare), **merge, **_named(upsert)},
        "ratio": {
            "history": round(bare / history, 2),
            **_ratios(copy, merge),
            **_named(_ratios(iceberg, upsert)),
        },
    }


def _ratios(figures: dict[str, float], yardstick: dict[str, float]) -> dict[str, float]:
    return {name: round(value / figures[name], 2) for name, value in yardstick.items()}


def _named(figures: dict[str, float]) -> dict[str, float]:
    return {f"iceberg_{name}": value for name, value in figures.items()}


# --- the sink


def _history(folder: Path, rows: int) -> float:
    """Return the seconds of the sink."""
    sink = _sink(_delta(folder, "history"))
    sink.open()
    items = [*_begun(), *_transactions(rows, None)]
    with closing(sink):
        return _seconds(lambda: _write(sink, items))


def _copy(
    target: Callable[[Path, Mode], FilesTarget], folder: Path, rows: int, keys: int
) -> dict[str, float]:
    sink = _sink(target(folder, "copy"))
    sink.open()
    with closing(sink):
        _write(sink, _begun())
        parts = _transactions(rows, Chunk(_TABLE.full_name, TableProgress()))
        loaded = sum(_seconds(partial(_write, sink, [part])) for part in parts)
        rounds = [_update(sink, folder, _updates(rows, keys, version)) for version in range(_ROUNDS)]
    shutil.rmtree(_index(folder))
    sink = _sink(target(folder, "copy"))
    sink.open()
    with closing(sink):
        reopened = _seconds(lambda: _write(sink, [_updates(rows, keys, _ROUNDS)]))
    return {
        "load": round(rows / loaded),
        "copy_seconds": round(median(seconds for seconds, _ in rounds), 3),
        "copy_bytes": round(median(written for _, written in rounds)),
        "reopened_seconds": round(reopened, 3),
    }


def _update(sink: Sink, folder: Path, changes: Transaction) -> tuple[float, int]:
    """Return the seconds of a commit, and the bytes that it left."""
    before = _bytes(folder)
    seconds = _seconds(lambda: _write(sink, [changes]))
    return seconds, _bytes(folder) - before


def _sink(target: FilesTarget) -> Sink:
    return storage_sink(target, SinkContext(name="bench", feed="bench", store=_NoStore()))


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
        sink.write(Batch([item], Checkpoint(item.commit_ts, "", None, "bench")))
        sink.flush()


# --- rows


_ticks: Final = count(1)


def _begun() -> list[Item]:
    ts = next(_ticks)
    create = (CreateTable(_TABLE),)
    return [Ddl(ts, 0, "", _TABLE.schema, _TABLE.name, "", create)]


def _transactions(rows: int, chunk: Chunk | None) -> Iterator[Transaction]:
    for start in range(0, rows, _PART):
        own = range(start, min(start + _PART, rows))
        ts = next(_ticks)
        changes = [RowChange(ts, 0, _TABLE, "insert", None, _row(key, 0)) for key in own]
        yield Transaction(ts, 0, "", changes, str(ts), True, chunk)


def _updates(rows: int, keys: int, version: int) -> Transaction:
    ts = next(_ticks)
    changes = [
        RowChange(ts, 0, _TABLE, "update", _row(key, version), _row(key, version + 1))
        for key in _scattered(rows, keys)
    ]
    return Transaction(ts, 0, "", changes, str(ts))


def _scattered(rows: int, keys: int) -> list[int]:
    return [rows * number // keys for number in range(min(keys, rows))]


def _row(key: int, version: int) -> tuple[object, ...]:
    return key, key % 9_973, f"note {version} of order {key}", key / 8


# --- delta-rs


def _bare_history(folder: Path, rows: int) -> float:
    columns = ChangeColumns(_TABLE)
    tables = [
        pa.Table.from_batches([columns.batch([(one.commit_ts, 0, 0, False, run) for run in one.runs])])
        for one in _transactions(rows, None)
    ]

    def write() -> None:
        for table in tables:
            write_deltalake(folder, table, mode="append")

    return _seconds(write)


def _merge(folder: Path, rows: int, keys: int) -> dict[str, float]:
    for start in range(0, rows, _PART):
        own = range(start, min(start + _PART, rows))
        write_deltalake(folder, _arrow([_row(key, 0) for key in own]), mode="append")
    before = _bytes(folder)
    changed = _arrow([_row(key, 1) for key in _scattered(rows, keys)])

    def merge() -> None:
        table = DeltaTable(folder)
        merging = table.merge(changed, "t.id = s.id", source_alias="s", target_alias="t")
        merging.when_matched_update_all().when_not_matched_insert_all().execute()

    seconds = _seconds(merge)
    return {"copy_seconds": round(seconds, 3), "copy_bytes": _bytes(folder) - before}


# --- pyiceberg


def _upsert(folder: Path, rows: int, keys: int) -> dict[str, float]:
    folder.mkdir()
    kinds = (LongType(), IntegerType(), StringType(), DoubleType())
    fields = [
        NestedField(number, column.name, kind, required=False)
        for number, (column, kind) in enumerate(zip(_TABLE.columns, kinds, strict=True), 1)
    ]
    with SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}") as catalog:
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.orders", Schema(*fields))
        for start in range(0, rows, _PART):
            own = range(start, min(start + _PART, rows))
            table.append(_arrow([_row(key, 0) for key in own]))
        before = _bytes(folder)
        changed = _arrow([_row(key, 1) for key in _scattered(rows, keys)])
        seconds = _seconds(lambda: table.upsert(changed, join_cols=["id"]))
    return {"copy_seconds": round(seconds, 3), "copy_bytes": _bytes(folder) - before}


# --- rows as Arrow


def _arrow(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    kinds = (pa.int64(), pa.int32(), pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, [column.name for column in _TABLE.columns])


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
