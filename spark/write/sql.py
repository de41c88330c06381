"""SQL databases as targets of tasks, of which two may be at the same rows at once.

The row of the checkpoint is there from the start, and every transaction begins by locking it. If it isn't as
it was when it was read then another attempt at the task has been there: the sink reads it anew and leaves out
what is applied. So attempts take turns, and none of them fails of the other.
"""

from __future__ import annotations

import socket
from typing import Final, Protocol

from sqlalchemy import URL

from ...codec.checkpoint import encode_checkpoint
from ...errors import SinkError
from ...events import Batch, Ddl
from ...sink.sql.kinds import parsed
from ...sink.sql.options import SqliteOptions
from ...sink.sql.sql import SqlSink
from ...sink.sql.sqlite import SqliteTarget
from ...sink.sql.target import Target
from .options import NAME
from .place import Overtaken, Place

BUSY_SECONDS: Final = 30
"""SQLite has one writer at a time: so long a task waits for its turn."""


class Shared(Target, Protocol):
    """A target of several attempts."""

    def alone(self) -> None:
        """Until the next commit no other attempt changes a table. Raises Retryable."""


class SharedSqlite(SqliteTarget):
    def __init__(self, place: Place, url: URL, table_name: str) -> None:
        super().__init__(url, place.feed, table_name)
        self._place = place
        self._start = encode_checkpoint(place.start)
        self._known: str | None = None

    def connect(self) -> None:
        super().connect()
        self._execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")

    def load_checkpoint(self) -> str | None:
        if super().load_checkpoint() is None:
            self._place.check_new(self.identity)
            super().save_checkpoint(None, 0, self._start)
        self._known = super().load_checkpoint()
        return self._known

    def begin(self) -> None:
        super().begin()
        if super().load_checkpoint() != self._known:
            raise Overtaken(self.feed)

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        self._known = content
        return super().save_checkpoint(previous_ts, ts, content)

    def alone(self) -> None:
        """A schema change is part of its transaction."""


class SharedSqlSink(SqlSink):
    """Applies a batch as SqlSink does, once, whoever else is at it."""

    def __init__(self, name: str, target: Shared) -> None:
        super().__init__(name, target)
        self._shared = target

    def write(self, batch: Batch) -> None:
        if batch.items and isinstance(batch.items[0], Ddl):
            self._alone()
        super().write(batch)

    def _alone(self) -> None:
        if not self._connected:
            self.open()
        try:
            if self._writing:  # the rows before it; they don't wait for it
                self._commit()
            self._shared.alone()
        except Exception as error:
            self._fail(error, "waiting for another attempt")


def open_sqlite(url: str, options: SqliteOptions, place: Place, host: str) -> SqlSink:
    """Not opened yet. Raises SinkError if this host isn't the driver's."""
    if socket.gethostname() != host:
        raise SinkError(
            f"{url} is a file of the driver's host {host}, and this task runs on {socket.gethostname()}: "
            "SQLite is for masters such as local[2]; name a server's database"
        )
    return SharedSqlSink(NAME, SharedSqlite(place, parsed(url), options.table_name))
