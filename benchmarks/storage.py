"""Rows into Parquet files of an S3-compatible store, in rows per second, beside Arrow's own `write_table`.

The store is moto's, in a process of its own. `columns` are rows as MariaDB's log has them, in transactions of
1,000, which the sink reads as columns; `rows` are the same as Python tuples. Both are in commits of 50,000
rows: staged files, a state with the checkpoint, and the final names. The yardstick has the tables of these
files ready, and writes each to its name, with the same settings.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..codec.mysql.layout import Layouts
from ..engine.checkpoint import CheckpointFile
from ..events import Checkpoint, Rows, Transaction
from ..sink import Delivery, open_sink
from ..sink.files.parquet_format import write_parquet
from ..testing.binlog_events import INSERT, rows_event, table_map
from ..testing.s3_process import S3Process
from .columns import COLUMNS, image

_TRANSACTION: Final = 1_000
_ACCEPTED: Final = 10
"""Transactions that reach the sink at once."""
_COMMIT: Final = 50_000
_FORMS: Final = ("columns", "rows")


def run(*, rows: int = 200_000, rounds: int = 5) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    events = [
        rows_event(INSERT, [image(number) for number in range(first, min(rows, first + _TRANSACTION))])
        for first in range(0, rows, _TRANSACTION)
    ]
    spent: dict[str, list[float]] = {name: [] for name in (*_FORMS, "write_table")}
    with S3Process() as store:
        for number in range(rounds + 1):  # the first one warms the store up
            bucket = store.bucket(f"round-{number}")
            for form in _FORMS:
                items = _items(events, decoded=form == "rows")
                spent[form].append(_deliver(store.url(f"{bucket}/{form}"), items, rows))
            tables = _tables(store, f"{bucket}/columns", rows)
            spent["write_table"].append(_write_tables(store, f"{bucket}/theirs", tables))
            store.delete_bucket(bucket)

    def ratio(ours: str) -> float:
        pairs = zip(spent["write_table"][1:], spent[ours][1:], strict=True)
        return round(statistics.median([theirs / here for theirs, here in pairs]), 2)

    per_second = {name: round(rows / statistics.median(seconds[1:])) for name, seconds in spent.items()}
    yardstick = per_second.pop("write_table")
    return {
        "bench": "storage",
        "settings": {"rows": rows, "rounds": rounds, "columns": len(COLUMNS), "commit_rows": _COMMIT},
        "figures": {f"{name}_rows_per_second": figure for name, figure in per_second.items()},
        "yardstick": {"write_table_rows_per_second": yardstick},
        "ratio": {name: ratio(name) for name in _FORMS},
    }


def _items(events: Sequence[bytes], *, decoded: bool) -> list[Transaction]:
    """Return transactions whose rows are bytes of the log, or tuples."""
    layouts = Layouts()
    layout = layouts.layout(layouts.number_of(table_map(*COLUMNS)))
    items = []
    for number, event in enumerate(events):
        ts = 2 + number
        made = layout.block().add(event, ts, 0)
        rows = made.changes() if decoded else Rows([made])
        items.append(Transaction(ts, 0, "bench", rows, f"log:{number}"))
    return items


def _deliver(url: str, items: Sequence[Transaction], rows: int) -> float:
    """Return the seconds until all rows are visible with their checkpoint."""
    options = {"format": "parquet", "commit_rows": _COMMIT}
    sink = open_sink("bench", url, feed="bench", store=CheckpointFile(Path("unused")), options=options)
    with closing(sink):
        sink.open()
        work = Delivery(sink, Checkpoint(1, "log:0", None, "bench"), "bench")  # nothing is to be loaded
        begun = time.perf_counter()
        for first in range(0, len(items), _ACCEPTED):
            work.accept(items[first : first + _ACCEPTED])
            work.run(time.monotonic())
        work.flush(time.monotonic())
        spent = time.perf_counter() - begun
        assert work.statistics().rows == rows
        return spent


def _tables(store: S3Process, path: str, rows: int) -> list[pa.Table]:
    """Return the tables of all files below a path."""
    contents = [one for name, one in store.objects(path).items() if name.endswith(".parquet")]
    tables = [pq.read_table(io.BytesIO(content)) for content in contents]
    assert sum(table.num_rows for table in tables) == rows
    return tables


def _write_tables(store: S3Process, path: str, tables: Sequence[pa.Table]) -> float:
    files = store.files()
    begun = time.perf_counter()
    for number, table in enumerate(tables):
        with files.open_output_stream(f"{path}/{number}.parquet") as file:
            write_parquet(table, file)
    return time.perf_counter() - begun
