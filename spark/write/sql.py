"""SQL databases as targets of tasks, where two attempts may write the same rows at once.

The checkpoint's row exists from the start, and every transaction begins by locking it. If it has changed
since it was read, another attempt at the task has written: the sink reads it again and skips the applied
rows. So attempts take turns, and neither makes the other fail.
"""

from __future__ import annotations

import socket
from typing import Any

from ...codec.checkpoint import encode_checkpoint
from ...dialects.database import Database
from ...dialects.dialect import Dialect
from ...dialects.options import MySqlOptions, RowOptions
from ...errors import ConfigError, NotReproducible, SinkError
from ...events import Batch, Ddl
from ...sink.safe_mode import CONFIGURED
from ...sink.sql.sql import SqlSink
from .options import NAME
from .place import BatchPartition, Overtaken


class SharedSqlSink(SqlSink):
    """Applies each batch of one place once, also if other attempts write it at the same time."""

    def __init__(self, name: str, database: Database, options: RowOptions, place: BatchPartition) -> None:
        super().__init__(name, database, merges=options.merge)
        if options.safe_mode:
            self.safe_mode.enter(CONFIGURED)
        self._place = place
        self._begins_with = encode_checkpoint(place.start)

    def _load_checkpoint(self) -> str | None:
        """Store a checkpoint if there is none: its row is what attempts lock."""
        database = self._database
        if database.load_checkpoint() is None:
            self._place.check_new(self.target)
            database.save_checkpoint(None, 0, self._begins_with)
        return super()._load_checkpoint()

    def _begin(self) -> None:
        if not self._writing:
            super()._begin()
            self._check_stored(locked=True)

    def _check_stored(self, *, locked: bool) -> None:
        if self._database.load_checkpoint(locked=locked) != self._stored:
            raise Overtaken(self._database.feed)

    def write(self, batch: Batch) -> None:
        try:
            if batch.items and isinstance(ddl := batch.items[0], Ddl) and self._database.tables.ddl_commits:
                self._write_alone(batch, ddl)
            else:
                super().write(batch)
        except NotReproducible as error:
            raise SinkError(f"{error}: give the query an empty target and load everything again") from error

    def _open_again(self, batch: Batch) -> None:  # noqa: ARG002
        """Connect again. What another attempt has stored meanwhile is of the same rows."""
        self.open()

    def _write_alone(self, batch: Batch, ddl: Ddl) -> None:
        """Hold other attempts off by a lock of the table's name, as the change would release row locks."""
        if not self._connected:
            self.open()
        try:
            self._commit()  # the rows before the schema change
            with self._database.tables.defining(ddl.schema, ddl.table):
                self._check_stored(locked=False)
                super().write(batch)
                self._commit()
        except Exception as error:
            self._fail(error, "waiting for another attempt")


def open_shared(
    dialect: Dialect, url: str, options: Any, place: BatchPartition, host: str, busy_seconds: float
) -> SqlSink:
    """Return the sink, not opened yet.

    `busy_seconds` is the timeout of a statement that waits for somebody else's lock.

    Raises ConfigError, and SinkError for a file of another host."""
    if options.on_error != "stop":
        raise ConfigError(
            f'on_error = "{options.on_error}": Spark keeps no dead letters: use "stop", or the local engine'
        )
    if isinstance(options, MySqlOptions):
        if options.checkpoint != "tidemill":
            raise ConfigError("checkpoint: Spark stores checkpoints of its own; remove the option")
        if options.copy == "definition":
            raise ConfigError("copy = 'definition' isn't supported on Spark: leave it out")
    if dialect.traits.is_local and socket.gethostname() != host:
        raise SinkError(
            f"{url} is a file of the driver's host {host}, and this task runs on {socket.gethostname()}: "
            f"{dialect.name} is for masters such as local[2]; name a server's database"
        )
    return SharedSqlSink(NAME, dialect.connect(url, options, place.feed, busy_seconds), options, place)
