"""Offsets of a MariaDB server: a binlog position, and the clock's ts there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from math import inf
from typing import Final

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.position import Position
from ...codec.mysql.schema import is_user_schema
from ...dialects.mysql.client import Session, connect, disconnect, query, source_of, translated
from ...errors import CheckpointError, ConfigError, SourceError, TidemillError
from ...events import Table, Ts, compose_ts, physical_ms
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.requirements import survey_session
from ...puller.mysql.stream import own_server_id
from ...snapshot.mysql.tables import FoundTable, find_tables
from ...snapshot.mysql.view import begin, current_end
from ...sources.source import no_table_matches
from ..read.options import ReadOptions
from ..read.parts import WHOLE, Part
from .look_ahead import LookAheadReader, TransactionEnd, created
from .offset import Limit, Offset, lower_bound

IDLE_BYTES: Final = 16 << 20
"""Bytes of binlog without followed changes after which an empty batch advances the offset, before the server
purges its position."""

_NOW: Final = "SELECT UNIX_TIMESTAMP(NOW(6))"


class MysqlOffsets:
    """Queries a MariaDB server. Used by one thread; every method raises Retryable and Fatal."""

    def __init__(self, options: ReadOptions) -> None:
        source_options = options.source_as(MysqlOptions)
        self._given = options
        self._options = replace(source_options, server_id=own_server_id())
        self._filter = TablePatterns.parse(options.patterns)
        self._session: Session | None = None
        self._look_ahead: LookAheadReader | None = None
        self._start = Offset(0, "", "")
        """Offset at which the look-ahead reader started to count."""
        self._seen = TransactionEnd(0, "")
        """Last mark since then, with the counts up to it."""
        self._oldest: Ts = 0
        """Ts of the first followed change since then; 0: none."""
        with self.connected() as session:
            self.source = source_of(session)

    def tables(self) -> list[Table]:
        only = FoundTable(*self._given.table.split(".", 1)) if self._given.table else None
        with self.connected() as session:
            surveyed = survey_session(session, self._options, self._follows, has_catalog=False, only=only)
            names = [(one.table.schema, one.table.name) for one in surveyed.tables]
            if self._filter.unmatched(names):  # some may have tables that can't be read
                names = [(one.schema, one.name) for one in find_tables(session, only)]
        if unmatched := self._filter.unmatched(names):
            raise ConfigError(no_table_matches(unmatched, names))
        surveyed.raise_errors()
        return [one.table for one in surveyed.tables]

    def _follows(self, schema: str, table: str) -> bool:
        return is_user_schema(schema) and self._filter.matches(schema, table)

    def latest(self) -> Offset:
        with self.connected() as session:
            return self._now_at(session, current_end(session))

    def settled(self) -> Offset:
        """Return the end of the log, where every view that begins later has all changes before it.

        A MySQL is locked for it: no transaction commits for a moment.
        """
        with self.connected() as session:
            return self._now_at(session, begin(session))

    def _now_at(self, session: Session, position: Position) -> Offset:
        seconds = query(session, _NOW)[0][0]
        query(session, "COMMIT")
        return Offset(compose_ts(int(seconds * 1000)), str(position.without_gtids), self.source)

    def earliest(self) -> Offset:
        return self._beginning(self._files()[0])

    def at(self, ts: Ts) -> Offset:
        end = self.latest()
        if ts > end.ts:
            raise ConfigError(f"ts {ts} is yet to come: the clock of {self.source} is at {end.ts}")
        files = self._files()
        place = bisect_right(files, ts, key=self._created)
        if not place:
            raise SourceError(
                f"what follows ts {ts} is gone: the binlog of {self.source} begins with {files[0]}, which is "
                "younger; start again with a snapshot (binlog_expire_logs_seconds says how long it is kept)"
            )
        offset = self._beginning(files[place - 1])
        with closing(
            LookAheadReader(self._options, self._filter.matches, offset, counts_rows=False)
        ) as look_ahead:
            until = Position.parse(end.position).rank
            while marks := look_ahead.marks(until):
                for mark in marks:
                    if mark.ts > ts:
                        return offset
                    offset = Offset(mark.ts, mark.position, self.source)
                look_ahead.take(len(marks))
        return offset

    def at_position(self, position: str) -> Offset:
        try:
            place = Position.parse(position)
        except CheckpointError as error:
            raise ConfigError(str(error)) from None
        if not place.file:
            raise ConfigError(f"{position!r} is a set of GTIDs: Spark begins at a file and offset")
        end = self.latest().position
        if place.rank > Position.parse(end).rank:
            raise ConfigError(f"{position} is yet to come: the binlog of {self.source} ends at {end}")
        return Offset(lower_bound(self._created(place.file)), position, self.source)

    def check(self, start: Offset) -> None:
        if start.source != self.source:
            raise CheckpointError(
                f"the offset is of {start.source}, and {self._options.address} is {self.source}: connect to "
                "that one, or give the query another checkpointLocation"
            )
        end = self.latest().position
        if Position.parse(start.position).rank > Position.parse(end).rank:
            raise CheckpointError(
                f"the query is at {start.position}, and the binlog of {self.source} ends before, at {end}: "
                "it was reset or restored from a backup; start again with another checkpointLocation"
            )

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        """Return the end of a batch of whole transactions up to the limit, at least one.

        Without followed changes the result is `start`, or the end if IDLE_BYTES or a new file lie between.
        """
        until = Position.parse((end or self.latest()).position)
        if until.rank < Position.parse(start.position).rank:
            raise ConfigError(f"the end, {until}, lies before the start, {start.position}")
        look_ahead, until_rank = self._reader_from(start, limit), until.rank
        while marks := look_ahead.marks(until_rank):
            taken = self._see(marks, limit)
            look_ahead.take(taken)
            if taken < len(marks):
                break
        seen = self._seen
        if seen.bytes or _is_far(start.position, seen.position):
            return Offset(seen.ts, seen.position, self.source)
        return start

    def _see(self, marks: Sequence[TransactionEnd], limit: Limit) -> int:
        """Note the marks up to the limit, at least one with followed changes; return their number."""
        size, rows, oldest = self._seen.bytes, self._seen.rows, self._oldest
        max_bytes, max_rows = limit.bytes or inf, limit.rows or inf
        taken = 0
        for mark in marks:
            if size and (size + mark.bytes > max_bytes or rows + mark.rows > max_rows):
                break
            size += mark.bytes
            rows += mark.rows
            oldest = oldest or (mark.ts if mark.bytes else 0)
            taken += 1
        if taken:
            last = marks[taken - 1]
            self._seen, self._oldest = TransactionEnd(last.ts, last.position, size, rows), oldest
        return taken

    def _reader_from(self, start: Offset, limit: Limit) -> LookAheadReader:
        seen = self._seen
        if self._look_ahead is None or start not in (
            self._start,
            Offset(seen.ts, seen.position, self.source),
        ):
            self._close_reader()
            counts_rows = bool(limit.rows or self._given.max_rows)
            self._look_ahead = LookAheadReader(
                self._options, self._filter.matches, start, counts_rows=counts_rows
            )
            self._start = Offset(0, "", "")
        if start != self._start:
            self._start, self._seen, self._oldest = start, TransactionEnd(start.ts, start.position), 0
        return self._look_ahead

    def _close_reader(self) -> None:
        look_ahead, self._look_ahead = self._look_ahead, None
        if look_ahead is not None:
            look_ahead.close()

    def bounds(self, start: Offset, end: Offset, part: Part = WHOLE) -> None:
        """Return None: a binlog is one stream."""

    def oldest(self, at: Offset) -> Ts:
        if at != self._start:
            self.following(at, None, Limit(bytes=1))
        return self._oldest

    def lag(self, at: Offset) -> dict[str, object]:
        oldest, end = self.oldest(at), self.latest()
        behind = Position.parse(at.position).rank < Position.parse(end.position).rank
        return {
            **end.fields(),
            "lagSeconds": max(0.0, (physical_ms(end.ts) - physical_ms(oldest)) / 1000) if oldest else 0.0,
            "backlogBytes": self._bytes_between(at.position, end.position) if behind else 0,
        }

    def _bytes_between(self, start: str, end: str) -> int:
        first, last = Position.parse(start), Position.parse(end)
        if first.file == last.file:
            return last.offset - first.offset
        with self.connected() as session:
            sizes = [
                int(size)
                for file, size, *_ in query(session, "SHOW BINARY LOGS")
                if first.rank.number <= Position(file, 0).rank.number < last.rank.number
            ]
        return sum(sizes) - first.offset + last.offset

    def close(self) -> None:
        self._close_reader()
        session, self._session = self._session, None
        if session is not None:
            disconnect(session)

    # --- the server

    @contextmanager
    def connected(self) -> Iterator[Session]:
        """Provide the session; after an error the next call opens a new one."""
        if self._session is None:
            self._session = connect(self._options)
        try:
            with translated(self._options):
                yield self._session
        except TidemillError:
            disconnect(self._session)
            self._session = None
            raise

    def _files(self) -> list[str]:
        """Return the names of the binlog files, oldest first."""
        with self.connected() as session:
            return [str(row[0]) for row in query(session, "SHOW BINARY LOGS")]

    def _created(self, file: str) -> Ts:
        # Another server id than the look-ahead reader, whose connection the server would otherwise close.
        return created(replace(self._options, server_id=own_server_id()), file)

    def _beginning(self, file: str) -> Offset:
        return Offset(self._created(file), str(Position(file, 4)), self.source)


def _is_far(start: str, end: str) -> bool:
    """True if the positions, with no followed change between them, are far enough apart to advance."""
    first, last = Position.parse(start), Position.parse(end)
    return first.file != last.file or last.offset - first.offset >= IDLE_BYTES
