"""A whole feed of TiKV, from a store's socket to a Python sink, compared with a bare client of the same
stream.

Each row is a prewrite and a commit, in transactions of one row or of a thousand, and all are available at
once, as for a feed that catches up. The bare client receives and parses the same messages and drops them.
Names with `python` are of the same feed with the decoder of rows in Python, those with `arrow` of Arrow
batches instead of transactions of tuples.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ..actors import SystemClock
from ..codec.native import library
from ..codec.tidb import meta
from ..codec.tidb.key import record_key, record_prefix, table_prefix
from ..codec.tidb.row_encoder import RowEncoder
from ..codec.tidb.table_info import DbInfo, encode_db_info, encode_table_info
from ..embedded.arrow_batch import ArrowBatch
from ..embedded.arrow_encoder import ArrowEncoder
from ..emulator.percolator import COMMIT, PREWRITE, Row
from ..emulator.recorded import RecordedCluster, record
from ..emulator.shard import PUT
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.options import feed_options
from ..events import Item, Ts, row_count
from ..sink.python import python_sink
from ..testing.item_table import item_table
from .puller import TABLE, bare, play, server_of
from .turns import Server, Subject, note, serve_until_ended, serving, take_turns

SIZES = {"single_row": 1, "thousand_rows": 1_000}
"""Number of rows per transaction."""
_DATABASE = DbInfo(id=2, name="bench")
_TABLE = item_table(TABLE, "item")
_now = SystemClock().now


def run(rows: int = 300_000, regions: int = 8, rounds: int = 3) -> dict[str, object]:
    """Measure rows per second, from the feed's start, which takes some tenths of a second, to the last row.
    The store and the subjects are processes of their own; subjects take turns, and the best round counts."""
    if regions < 1 or rows < 1_000 * regions:
        raise ValueError(f"rows {rows}, regions {regions}: at least one region, and 1,000 rows in each")
    figures: dict[str, object] = {}
    yardstick: dict[str, Any] = {}
    for name, size in SIZES.items():
        with serving(_serve, rows, regions, size) as server:
            subjects: dict[str, Subject] = {
                "ours": _ours,
                "python": _in_python,
                "arrow": _in_columns,
                "bare": bare,
            }
            bests = take_turns(server, subjects, rounds)
        note_rate(yardstick, name, rows, bests.pop("bare"))
        note_rate(figures, name, rows, bests.pop("ours"))
        for subject, best in bests.items():
            note_rate(figures, f"{name}_{subject}", rows, best)
    return {
        "bench": "tikv",
        "settings": {"rows": rows, "regions": regions, "rounds": rounds},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": {name: round(figures[name] / yardstick[name], 3) for name in SIZES},
    }


def note_rate(into: dict[str, Any], name: str, rows: int, best: dict[str, Any]) -> None:
    into[name] = round(rows / best["seconds"])
    note(into, name, best)


# --- the store -----------------------------------------------------------------------------------------


def _serve(pipe: Connection, rows: int, regions: int, size: int) -> None:
    share = rows // regions
    firsts = [number * share for number in range(regions)]
    recorded = RecordedCluster(stores=1, tick_seconds=None)
    with recorded as cluster:
        inner = [record_key(TABLE, first) for first in firsts[1:]]
        cluster.pave([record_prefix(TABLE), *inner, table_prefix(TABLE + 1)])
        start_ts = _create_table(cluster)
        end_ts = start_ts + 10 * rows
        asked = [
            play(cluster, first, _rows(range(first, behind), size, start_ts), end_ts, "matched")
            for first, behind in zip(firsts, [*firsts[1:], rows], strict=True)
        ]
        for region in cluster.keyspace.by_id:
            cluster.recordings.setdefault(region, record(region, [], resolved_ts=end_ts))
        until = start_ts + 10 * ((rows - 1) // size * size) + 5
        serve_until_ended(pipe, server_of(cluster, rows, asked) | {"start_ts": start_ts, "until": until})


def _create_table(cluster: RecordedCluster) -> Ts:
    database = meta.database_field(_DATABASE.id)
    cluster.write(
        [
            ("put", meta.hash_key(meta.DATABASES, database), encode_db_info(_DATABASE)),
            ("put", meta.hash_key(database, meta.table_field(TABLE)), encode_table_info(_TABLE)),
        ]
    )
    start_ts: Ts = cluster.tso()
    return start_ts


def _rows(numbers: range, size: int, start_ts: Ts) -> Iterator[Row]:
    """Yield the rows of one region in the order of commit ts; a transaction has `size` rows, of one region or
    two."""
    encoder = RowEncoder(_DATABASE.name, _TABLE)
    for at in range(numbers.start, numbers.stop, 1_000):
        part = range(at, min(at + 1_000, numbers.stop))
        stamps = [start_ts + 10 * (number // size * size) for number in part]
        pairs = [encoder.encode((number, f"item {number}".ljust(100, "."))) for number in part]
        for ts, (key, value) in zip(stamps, pairs, strict=True):
            yield Row(PREWRITE, key, ts, 0, PUT, value)
        for ts, (key, value) in zip(stamps, pairs, strict=True):
            yield Row(COMMIT, key, ts, ts + 5, PUT, value)


# --- those who are measured --------------------------------------------------------------------------


class _Received:
    """The Python sink's callback: counts rows and notes the time of the last one."""

    reads_rows = True

    def __init__(self) -> None:
        self.rows = 0
        self.last_at = 0.0

    def __call__(self, items: Sequence[Item]) -> None:
        self.rows += row_count(items)
        self.last_at = _now()


class _Encoded(_Received):
    """The same with Arrow batches."""

    reads_rows = False

    def __init__(self) -> None:
        super().__init__()
        pa.array([0])  # imports pandas at the first call, if there is one
        self._encode = ArrowEncoder().encode

    def __call__(self, items: Sequence[Item]) -> None:
        for batch in self._encode(items):
            self.rows += batch.data.num_rows if isinstance(batch, ArrowBatch) else 0
        self.last_at = _now()


def _ours(server: Server, made: type[_Received] = _Received) -> float:
    received = made()
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as directory:
        source = {"url": f"tikv://{server['pd']}", "tables": ["bench.*"], "start_ts": server["start_ts"]}
        options = feed_options(
            {"data_dir": str(Path(directory)), "until": str(server["until"]), "source": source}
        )
        store = checkpoint_file(options, "python")
        reads_rows = received.reads_rows
        sink = python_sink("python", received, store, reads_rows=reads_rows)
        feed = Feed(options, [sink])
        started = _now()
        feed.start()
        feed.wait()
    if feed.error is not None:
        raise feed.error
    if received.rows != server["rows"]:
        raise RuntimeError(f"{received.rows} rows came of {server['rows']}")
    return received.last_at - started


def _in_python(server: Server) -> float:
    library.in_use = False  # in this process, which ends with the round
    return _ours(server)


def _in_columns(server: Server) -> float:
    return _ours(server, _Encoded)


_SUBJECTS: Final[dict[str, Subject]] = {
    "ours": _ours,
    "python": _in_python,
    "arrow": _in_columns,
    "bare": bare,
}
