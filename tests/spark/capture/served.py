"""A capture's server in this process, with a buffered history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pyarrow as pa
from pyarrow import flight

from tidemill.actors import SystemClock
from tidemill.engine.options import feed_options
from tidemill.spark.capture.answer import Answers
from tidemill.spark.capture.lease import Lease
from tidemill.spark.capture.server import CaptureServer
from tidemill.spark.capture.ticket import Ticket
from tidemill.spark.envelope import ENVELOPE

from .history import Keeping, offset, rank_of

TABLES = ("shop.*",)


@contextmanager
def serving(server: flight.FlightServerBase) -> Iterator[str]:
    """Its address."""
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()


@contextmanager
def served(
    keeping: Keeping, *, location: str = "grpc+tcp://127.0.0.1:0", wait_seconds: float = 20.0, **options: Any
) -> Iterator[str]:
    url = "mysql://root@127.0.0.1:1"
    feed = feed_options({"source": {"url": url, "tables": [*TABLES]}})
    yield from _yielding(
        CaptureServer(
            location,
            Answers(feed, keeping.held, rank_of, wait_seconds),
            keeping.held,
            Lease(60.0, SystemClock()),
            rank_of,
            TABLES,
            lambda: keeping.held.source,
            keeping.sink.flush,
            **options,
        )
    )


def _yielding(server: flight.FlightServerBase) -> Iterator[str]:
    with serving(server) as address:
        yield address


def ticket(after: int, upto: int, **more: Any) -> Ticket:
    return Ticket(
        **{"start": offset(after), "end": offset(upto), "tables": TABLES, "wait_seconds": 0.0, **more}
    )


class Scripted(flight.FlightServerBase):
    """Answers every request with the given messages; an exception is raised, a callable is called."""

    def __init__(self, *script: Any) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0")
        self.script = script
        self.asked: list[bytes] = []

    def do_get(self, _context: Any, asked: flight.Ticket) -> flight.GeneratorStream:
        self.asked.append(asked.ticket)
        schema = self.script[0].schema if self.script and hasattr(self.script[0], "schema") else ENVELOPE
        return flight.GeneratorStream(schema, self._play())

    def list_actions(self, _context: Any) -> list[flight.ActionType]:
        return []

    def _play(self) -> Iterator[Any]:
        for step in self.script:
            if isinstance(step, Exception):
                raise step
            if callable(step):
                step()
            elif isinstance(step, bytes):
                yield pa.RecordBatch.from_pylist([], ENVELOPE), pa.py_buffer(step)
            else:
                yield step
