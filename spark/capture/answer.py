"""What is streamed for a ticket: cut to its range, by its clock, of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from ...engine.options import FeedOptions
from ...errors import ConfigError, Fatal
from ...routing import TableFilter
from ..envelope import ENVELOPE, to_batch
from ..option_values import OPERATIONS
from ..reading import reading_of_kind
from .buffer import ChangeBuffer
from .coverage import uncovered
from .narrow import Narrow
from .place import RankOf
from .retime import Retime
from .ticket import End, Ticket, write

MESSAGE_BYTES: Final = 4 << 20  # 4 MiB
"""About the largest message: what is under way in gRPC and the client is a few of them."""

Message: TypeAlias = tuple[pa.RecordBatch, pa.Buffer | None]


class RequestRejected(Fatal):
    """This capture will never answer the ticket."""


class Answers:
    """Makes answers of what is held. Any thread."""

    def __init__(
        self, options: FeedOptions, held: ChangeBuffer, rank_of: RankOf, wait_seconds: float
    ) -> None:
        """No answer waits longer than `wait_seconds`."""
        self._patterns = options.tables.patterns
        self._address = options.source.address
        self._by_ts = reading_of_kind(options.source_kind).by_ts
        self._held = held
        self._rank_of = rank_of
        self._wait_seconds = wait_seconds

    def stream(self, ticket: Ticket, source: str, wanted: Callable[[], bool]) -> Iterator[Message]:
        """Batches of (start, end], and an empty one with `End` beside it.

        Waits until all of it is held, while the answer is `wanted`. Raises RequestRejected, RangeUnavailable
        and Retryable.
        """
        self.check(ticket, source)
        start, end = (self._rank_of(offset.position) for offset in (ticket.start, ticket.end))
        self._held.wait(start, end, min(ticket.wait_seconds, self._wait_seconds), wanted)
        narrow = self._narrow(ticket)
        retime = None if self._by_ts else Retime(ticket.start.ts, ticket.end.ts)
        rows = 0
        for batch in self._held.read(start, end):
            batch = batch if retime is None else retime(batch)
            for piece in _entries(batch if narrow is None else narrow(batch)):
                rows += piece.num_rows
                yield piece, None
        yield to_batch([], ENVELOPE), pa.py_buffer(write(End(rows, ticket.end)))

    def check(self, ticket: Ticket, source: str) -> None:
        """Raise RequestRejected unless the ticket is for this source and for followed tables."""
        try:
            ticket.check()
        except ConfigError as error:
            raise RequestRejected(str(error)) from None
        for offset in (ticket.start, ticket.end):
            if source and offset.source != source:
                raise RequestRejected(f"this capture follows {source}, and the range is of {offset.source}")
        if pattern := uncovered(self._patterns, ticket.tables):
            raise RequestRejected(
                f"this capture follows {', '.join(self._patterns)}, which may not be all that {pattern} names"
            )

    def _narrow(self, ticket: Ticket) -> Narrow | None:
        """None where nothing is left out."""
        part = ticket.part
        same = ticket.tables == tuple(self._patterns)
        if same and part.is_whole and set(ticket.operations) == set(OPERATIONS):
            return None
        named = TableFilter(ticket.tables).matches

        def has(schema: str, table: str) -> bool:
            return named(schema, table) and part.has(schema, table)

        # A task numbers what its feed brings: its part, or of a log all that the patterns name.
        if self._by_ts:
            return Narrow(has, has, ticket.operations)
        return Narrow(None if same else named, has, ticket.operations)


def _entries(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if not batch.num_rows:
        return
    rows = max(1, batch.num_rows * MESSAGE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
