"""Offsets of a MariaDB server: a place in its binlog, and the clock's ts there."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from pathlib import Path
from typing import Any, Final

from ..errors import CheckpointError, ConfigError
from ..events import Table, Ts, compose_ts
from ..puller.mysql.connection import Session, connect, disconnect, identify, query, translated
from ..puller.mysql.options import MysqlOptions
from ..puller.mysql.position import Position
from ..puller.mysql.requirements import survey
from ..puller.mysql.stream import own_server_id
from ..puller.mysql.tables import find_tables, is_user_schema
from ..routing import TableFilter
from ..sources import no_table_matches
from .binlog_scout import Mark, Scout, created
from .offset import Limit, Offset
from .options import ReadOptions
from .parts import WHOLE

IDLE_BYTES: Final = 16 << 20
"""So much of the binlog that has nothing of the followed tables makes a batch all the same: else the offset
would stay behind until its place is purged."""

_VIEW: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_END: Final = "SHOW STATUS LIKE 'binlog_snapshot%'"
_NOW: Final = "SELECT UNIX_TIMESTAMP(NOW(6))"


class MysqlOffsets:
    """Raises Retryable and Fatal; used by one thread."""

    def __init__(self, options: ReadOptions) -> None:
        found = options.feed(Path(), WHOLE).source
        assert isinstance(found, MysqlOptions)
        self._given = options
        self._options = replace(found, server_id=own_server_id())
        self._filter = TableFilter(options.patterns)
        self._session: Session | None = None
        self._scout: Scout | None = None
        self._scouted: Offset | None = None
        """Where the first of the marks follows."""
        self._marks: deque[Mark] = deque()
        with self._connected() as session:
            self.source = identify(session).source

    def tables(self) -> list[Table]:
        found = survey(self._options, lambda *name: is_user_schema(name[0]) and self._filter.matches(*name))
        with self._connected() as session:
            names = [(one.schema, one.name) for one in find_tables(session)]
        if unmatched := self._filter.unmatched(names):
            raise ConfigError(no_table_matches(unmatched))
        found.raise_errors()
        return [one.table for one in found.tables]

    def latest(self) -> Offset:
        with self._connected() as session:
            query(session, _VIEW)
            status = dict(query(session, _END))
            seconds = query(session, _NOW)[0][0]
            query(session, "COMMIT")
        position = Position(status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"]))
        return Offset(compose_ts(int(seconds * 1000)), str(position), self.source)

    def earliest(self) -> Offset:
        return self._beginning(self._files()[0])

    def at(self, ts: Ts) -> Offset:
        end = self.latest()
        if ts > end.ts:
            raise ConfigError(f"ts {ts} is yet to come: the clock of {self.source} is at {end.ts}")
        files = self._files()
        place = bisect_right(files, ts, key=lambda file: created(self._options, file))
        if not place:
            raise SourceError(
                f"what follows ts {ts} is gone: the binlog of {self.source} begins with {files[0]}, which is "
                "younger; begin anew with a snapshot (binlog_expire_logs_seconds says how long it is kept)"
            )
        found = self._beginning(files[place - 1])
        with closing(Scout(self._options, self._filter.matches, found, counts_rows=False)) as scout:
            for mark in scout.marks(Position.parse(end.position)):
                if mark.ts > ts:
                    break
                found = Offset(mark.ts, mark.position, self.source)
        return found

    def at_position(self, position: str) -> Offset:
        try:
            place = Position.parse(position)
        except CheckpointError as error:
            raise ConfigError(str(error)) from None
        end = self.latest().position
        if place.rank > Position.parse(end).rank:
            raise ConfigError(f"{position} is yet to come: the binlog of {self.source} ends at {end}")
        return Offset(created(self._options, place.file), position, self.source)

    def check(self, start: Offset) -> None:
        if start.source != self.source:
            raise CheckpointError(
                f"the offset is of {start.source}, and {self._options.address} is {self.source}: connect to "
                "that one, or give the query another checkpointLocation"
            )
        end = self.latest().position
        if Position.parse(start.position).rank > Position.parse(end).rank:
            raise CheckpointError(
                f"the query is at {start.position}, and the binlog of {self.source} ends before, at {end}: it "
                "was reset or restored from a backup; begin anew with another checkpointLocation"
            )

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        """How far: whole transactions, up to the limit, but at least one. Where none of them has anything
        to give, `start`, unless they are many."""
        if start != self._scouted:
            self._begin(start, limit)
        scout = self._scout
        assert scout is not None
        until = Position.parse((end or self.latest()).position)
        taken = Mark(start.ts, start.position)
        for mark in self._ahead(scout, until):
            further = taken.joined(mark)
            if taken.bytes and (limit.bytes and further.bytes > limit.bytes or limit.rows and further.rows > limit.rows):
                self._marks.appendleft(mark)
                break
            taken = further
        ...
