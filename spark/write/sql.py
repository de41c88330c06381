"""SQL databases as targets of tasks, where two attempts may write the same rows at once.

The checkpoint's row exists from the start, and every transaction begins by locking it. If it has changed
since it was read, another attempt at the task has written: the sink reads it again and skips the applied
rows. So attempts take turns, and neither makes the other fail.
"""

from __future__ import annotations

import socket
from typing import Final, Protocol

from sqlalchemy import URL

from ...codec.checkpoint import encode_checkpoint
from ...dialects.address import parsed
from ...dialects.options import RowOptions, SqliteOptions
from ...dialects.sqlite.sqlite import SqliteTarget
from ...dialects.target import Target
from ...errors import ConfigError, NotReproducible, SinkError
from ...events import Batch, Ddl
from ...sink.safe_mode import CONFIGURED
from ...sink.sql.sql import SqlSink
from .options import NAME
from .place import Overtaken, Place

BUSY_SECONDS: Final = 30
"""Timeout for the write lock of SQLite, which has one writer at a time."""


class Shared(Target, Protocol):
    """A target that several attempts at a task share."""

    def alone(self) -> None:
        """Prevent schema changes by other attempts until the next commit. Raises Retryable."""


class SharedSqlite(SqliteTarget):
    def __init__(self, place: Place, url: URL, options: SqliteOptions) -> None:
        super().__init__(url, place.feed, options.table_name, options.verify)
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
        """Do nothing: in SQLite a schema change is part of the transaction."""


class SharedSqlSink(SqlSink):
    """Applies each batch once, also if other attempts write it at the same time."""

    def __init__(self, name: str, target: Shared, options: RowOptions) -> None:
        super().__init__(name, target, merges=options.merge)
        if options.safe_mode:
            self.safe_mode.enter(CONFIGURED)
        self._shared = target

    def write(self, batch: Batch) -> None:
        if batch.items and isinstance(batch.items[0], Ddl):
            self._alone()
        try:
            super().write(batch)
        except NotReproducible as error:
            raise SinkError(f"{error}: give the query an empty target and load everything again") from error

    def _alone(self) -> None:
        if not self._connected:
            self.open()
        try:
            if self._writing:  # commit the rows before the schema change
                self._commit()
            self._shared.alone()
        except Exception as error:
            self._fail(error, "waiting for another attempt")


def reject_letters(options: RowOptions) -> None:
    """Raise ConfigError for an option that attempts at a task can't share."""
    if options.on_error != "stop":
        raise ConfigError(
            f'on_error = "{options.on_error}": Spark keeps no dead letters: use "stop", or the local engine'
        )


def open_sqlite(url: str, options: SqliteOptions, place: Place, host: str) -> SqlSink:
    """Return the sink, not opened yet. Raises SinkError if this host isn't the driver's."""
    reject_letters(options)
    if socket.gethostname() != host:
        raise SinkError(
            f"{url} is a file of the driver's host {host}, and this task runs on {socket.gethostname()}: "
            "SQLite is for masters such as local[2]; name a server's database"
        )
    return SharedSqlSink(NAME, SharedSqlite(place, parsed(url), options), options)
