"""The batches streamed for a ticket: its range and tables, with timestamps by the query's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from ...chain.selection.tables import TablePatterns
from ...engine.options import FeedOptions
from ...errors import ConfigError, Fatal, Retryable
from ...sources.source import Rank
from ..envelope import ENVELOPE, to_batch
from ..option_values import OPERATIONS
from ..reading import reading_of_kind
from .buffer import ChangeBuffer
from .narrow import Narrow
from .place import RankOf
from .retime import CLOCK_AHEAD, Retime
from .ticket import End, Ticket, write

_WILD: Final = ("*", "?", "[", "~")


def uncovered(followed: Sequence[str], wanted: Sequence[str]) -> str:
    """Return a pattern of `wanted` that may name tables, now or later, that `followed` doesn't; empty: none.

    Conservative: exclusions in `followed` make a pattern uncovered unless `wanted` ends with the same ones.
    """
    if tuple(followed) == tuple(wanted):
        return ""
    followed = _without_common_end(followed, wanted)
    included = [pattern for pattern in followed if not pattern.startswith("!")]
    has_all = len(included) == len(followed)
    if not followed:
        return wanted[0]
    every = TablePatterns.parse(followed)
    for pattern in wanted:
        schema, _, table = pattern.strip().partition(".")
        if pattern.startswith("!"):
            continue
        if not any(char in pattern for char in _WILD):
            is_covered = every.matches(schema, table)
        else:
            is_covered = has_all and any(_covers(one, pattern) for one in included)
        if not is_covered:
            return pattern
    return ""


def _without_common_end(followed: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """Return `followed` without the exclusions at the end of both, which `wanted` doesn't need either."""
    count = 0
    for mine, theirs in zip(reversed(followed), reversed(wanted), strict=False):
        if mine != theirs or not mine.startswith("!"):
            break
        count += 1
    return followed[: len(followed) - count]


def _covers(followed: str, wanted: str) -> bool:
    """True if `followed` matches every name that `wanted` matches."""
    if followed == wanted:
        return True
    mine, _, my_table = followed.strip().partition(".")
    schema, _, table = wanted.strip().partition(".")
    return _part_covers(mine, schema) and _part_covers(my_table, table)


def _part_covers(followed: str, wanted: str) -> bool:
    """True if they are equal, or if `followed` is a prefix of `wanted` and a star."""
    prefix = followed.removesuffix("*")
    if followed.endswith("*") and not any(char in prefix for char in _WILD):
        return wanted.startswith(prefix)
    return followed == wanted


MESSAGE_BYTES: Final = 4 << 20  # 4 MiB
"""Maximum bytes of a message, about; gRPC and the client hold a few messages at a time."""

Message: TypeAlias = tuple[pa.RecordBatch, pa.Buffer | None]


class RequestRejected(Fatal):
    """The capture can never answer this ticket."""


class Answers:
    """Answers tickets from the buffer. Thread-safe."""

    def __init__(
        self, options: FeedOptions, buffer: ChangeBuffer, rank_of: RankOf, wait_seconds: float
    ) -> None:
        """`wait_seconds` is the maximum time that an answer waits for changes."""
        self._patterns = options.tables.patterns
        self._address = options.source.options.address
        self._by_ts = reading_of_kind(options.source.kind).by_ts
        self._buffer = buffer
        self._rank_of = rank_of
        self._wait_seconds = wait_seconds

    def stream(self, ticket: Ticket, source: str, wanted: Callable[[], bool]) -> Iterator[Message]:
        """Yield the batches of (start, end], then an empty batch with `End` as its metadata.

        Waits until the whole range is buffered, as long as `wanted()` is true. Raises RequestRejected,
        RangeUnavailable and Retryable.
        """
        self.check(ticket, source)
        start, end = (self._rank_of(offset.position) for offset in (ticket.start, ticket.end))
        self._buffer.wait(start, end, min(ticket.wait_seconds, self._wait_seconds), wanted)
        narrow = self._narrow(ticket)
        retime = None if self._by_ts else self._retime(ticket, start, end)
        rows = 0
        for batch in self._buffer.read(start, end):
            batch = batch if retime is None else retime(batch)
            for message in _messages(batch if narrow is None else narrow(batch)):
                rows += message.num_rows
                yield message, None
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

    def _retime(self, ticket: Ticket, start: Rank, end: Rank) -> Retime:
        """Raises Retryable if the capture's clock is ahead at the end: then nothing is sent."""
        last = self._buffer.place_at(end)
        if last.rank > start and last.ts > ticket.end.ts:
            raise Retryable(CLOCK_AHEAD)
        return Retime(ticket.start.ts, ticket.end.ts, self._buffer.place_at(start).ts)

    def _narrow(self, ticket: Ticket) -> Narrow | None:
        """Return the ticket's filter; None if it filters out nothing."""
        part = ticket.part
        same = ticket.tables == tuple(self._patterns)
        if same and part.is_whole and set(ticket.operations) == set(OPERATIONS):
            return None
        has = part.chosen(ticket.tables).matches
        # A task numbers the rows of its feed: those of its part, or for a log those of all followed tables.
        if self._by_ts:
            return Narrow(has, has, ticket.operations)
        named = None if same else TablePatterns.parse(ticket.tables).matches
        return Narrow(named, has, ticket.operations)


def _messages(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if not batch.num_rows:
        return
    rows = max(1, batch.num_rows * MESSAGE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
