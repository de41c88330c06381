"""A capture's changes, the bytes that a MariaDB logs, read by a client on loopback, in rows per second.

* `memory`, `disk`: all changes, from memory or disk. `part`: one part of two, selected by the capture; in
  rows processed. `json`: with the images converted to JSON by the reader.
* The yardstick is a Flight server with the same batches in a list, and a client that only receives them.

Each server is a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from ..actors import SystemClock
from ..codec.mysql.position import Position
from ..engine.checkpoint import CheckpointFile
from ..engine.options import feed_options
from ..events import Batch, Checkpoint, Item, Rows, Transaction
from ..sources.source import Rank
from ..spark.capture import client
from ..spark.capture.answer import Answers
from ..spark.capture.buffer import ChangeBuffer
from ..spark.capture.lease import Lease
from ..spark.capture.server import CaptureServer
from ..spark.capture.sink import CaptureSink
from ..spark.capture.ticket import Ticket
from ..spark.envelope import ENVELOPE
from ..spark.offsets.offset import Offset
from ..spark.read.parts import WHOLE, Part
from .in_turn import medians, seconds_of
from .logged_rows import inserts
from .sink import TABLE, row

SOURCE: Final = "bench"
TRANSACTION_ROWS: Final = 10
_BATCH_ROWS: Final = 10_000
TABLES: Final = ("bench.*",)
_PART: Final = next(part for part in WHOLE.divided(2) if part.has(TABLE.schema, TABLE.name))


def run(*, rows: int = 400_000, rounds: int = 5) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; a ratio above 1 is better than the
    yardstick."""
    with ExitStack() as stack:
        plain, memory, disk = (
            stack.enter_context(served(kind, rows)) for kind in ("plain", "memory", "disk")
        )
        works: dict[str, Callable[[], int]] = {
            "plain": lambda: _plain(plain),
            "memory": lambda: _captured(memory, rows),
            "disk": lambda: _captured(disk, rows),
            "part": lambda: _captured(memory, rows, part=_PART),
            "json": lambda: _captured(memory, rows, json=True),
        }
        timed = {name: partial(seconds_of, partial(_check, work, rows)) for name, work in works.items()}
        seconds = medians(timed, rounds, warm_ups=1)
    figures = {name: round(rows / taken) for name, taken in seconds.items()}
    bare = figures.pop("plain")
    return {
        "bench": "flight",
        "settings": {"rows": rows, "rounds": rounds, "batch_rows": _BATCH_ROWS},
        "figures": figures,
        "yardstick": {"plain": bare},
        "ratio": {name: round(figure / bare, 2) for name, figure in figures.items()},
    }


def _check(work: Callable[[], int], rows: int) -> None:
    if (count := work()) != rows:
        raise RuntimeError(f"{count} of {rows} rows came")


def _plain(address: str) -> int:
    with flight.connect(f"grpc+tcp://{address}") as bare:
        return sum(chunk.data.num_rows for chunk in bare.do_get(flight.Ticket(b"")))


def _captured(address: str, rows: int, *, part: Part = WHOLE, json: bool = False) -> int:
    return sum(batch.num_rows for batch in answer(address, rows, part=part, json=json))


def answer(address: str, rows: int, *, part: Part = WHOLE, json: bool = False) -> Iterator[pa.RecordBatch]:
    """Read the answer of a server with `rows` rows."""
    return client.read([address], Ticket(offset(0), offset(rows), TABLES, part), json=json)


def offset(rows: int) -> Offset:
    """Return the offset after `rows` rows."""
    number = rows // TRANSACTION_ROWS
    return Offset(number + 1, _position(number), SOURCE)


# --- the servers ------------------------------------------------------------------------------------------


@contextmanager
def served(kind: str, rows: int) -> Iterator[str]:
    """Run a server in a process of its own; yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tidemill.benchmarks.flight", kind, str(rows)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield f"127.0.0.1:{port}"
        process.stdin.close()


def _serve(kind: str, rows: int) -> None:
    """Serve until stdin closes."""
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as directory:
        held = _held(Path(directory), rows, in_memory=kind != "disk")
        server = _Plain(held, rows) if kind == "plain" else held.server()
        thread = Thread(target=server.serve, daemon=True)
        thread.start()
        print(server.port, flush=True)
        sys.stdin.read()
        server.shutdown()
        thread.join()


class _Kept:
    """A capture without a feed."""

    def __init__(self, directory: Path, *, in_memory: bool) -> None:
        numbers = count()
        self.held = ChangeBuffer(
            4 << 30 if in_memory else 16 << 20,
            64 << 30,
            lambda: directory / f"{next(numbers)}",
            SystemClock(),
        )
        self.sink = CaptureSink("flight://bench", CheckpointFile(directory / "checkpoint"), self.held, _rank)

    def server(self) -> CaptureServer:
        options = feed_options({"source": {"url": "mysql://root@127.0.0.1:1", "tables": [*TABLES]}})
        return CaptureServer(
            "grpc+tcp://127.0.0.1:0",
            Answers(options, self.held, _rank, 0.0),
            self.held,
            Lease(60.0, SystemClock()),
            _rank,
            TABLES,
            lambda: SOURCE,
            lambda: None,
        )


def _held(directory: Path, rows: int, *, in_memory: bool) -> _Kept:
    kept = _Kept(directory, in_memory=in_memory)
    kept.sink.open()
    each = _BATCH_ROWS // TRANSACTION_ROWS
    for first in range(0, rows // TRANSACTION_ROWS + 1, each):
        items = [
            _transaction(number) for number in range(first, min(first + each, rows // TRANSACTION_ROWS + 1))
        ]
        last = items[-1]
        checkpoint = Checkpoint(last.commit_ts, _position(last.commit_ts - 1), None, SOURCE)
        kept.sink.write(Batch(items, checkpoint))
    return kept


def _transaction(number: int) -> Item:
    """Return a transaction. Number 0 has no rows: the kept changes begin after it."""
    ts, first = number + 1, (number - 1) * TRANSACTION_ROWS
    keys = range(first, first + TRANSACTION_ROWS) if number else ()
    runs = [inserts([row(key, "n" * 40) for key in keys], ts)] if keys else []
    return Transaction(ts, ts, SOURCE, Rows(runs), _position(number))


def _position(number: int) -> str:
    return f"log.000001:{number}"


def _rank(position: str) -> Rank:
    return Position.parse(position).rank


class _Plain(flight.FlightServerBase):  # type: ignore[misc]
    """A Flight server with the same batches and nothing else."""

    def __init__(self, kept: _Kept, rows: int) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0")
        ends = _rank(_position(0)), _rank(_position(rows // TRANSACTION_ROWS))
        self._batches = list(kept.held.read(*ends))

    def do_get(self, _context: Any, _ticket: flight.Ticket) -> flight.RecordBatchStream:
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(ENVELOPE, self._batches))


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
