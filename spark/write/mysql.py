"""MySQL and MariaDB as targets of tasks."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from sqlalchemy import URL

from ...codec.checkpoint import encode_checkpoint
from ...dialects.address import parsed
from ...dialects.mysql.mysql import MySqlTarget
from ...dialects.options import MySqlOptions
from ...errors import ConfigError, Retryable
from ...sink.sql.sql import SqlSink
from .options import NAME
from .place import Overtaken, Place
from .sql import SharedSqlSink, reject_letters

DDL_SECONDS: Final = 30
"""Timeout for another attempt's schema change, after which this attempt is retried from the start."""


class SharedMySql(MySqlTarget):
    """A target of one partition, to which several attempts at its task may be connected."""

    def __init__(self, place: Place, url: URL, options: MySqlOptions) -> None:
        if options.copy == "definition":
            raise ConfigError("copy = 'definition' isn't supported on Spark: leave it out")
        super().__init__(url, place.feed, options.schema or None, options.collations, options.verify)
        self._place = place
        self._start = encode_checkpoint(place.start).replace("'", "''")
        self._known = ""
        self._is_alone = False
        self._table = self.home.checkpoints
        self._lock = f"'tidemill {sha256(f'{self.home.name} {self.feed}'.encode()).hexdigest()[:40]}'"

    def load_checkpoint(self) -> str | None:
        found = super().load_checkpoint()
        if found is None:
            self._place.check_new(self.identity)
            self.session.execute(
                f"INSERT IGNORE INTO {self._table} VALUES ('{self.feed}', 0, '{self._start}')"
            )
            found = super().load_checkpoint()
        self._known = found or ""
        return found

    def begin(self) -> None:
        super().begin()
        self._check("FOR UPDATE")

    def _check(self, lock: str) -> None:
        rows = self.session.rows(f"SELECT checkpoint FROM {self._table} WHERE feed='{self.feed}' {lock}")
        if [text for (text,) in rows] != [self._known]:
            raise Overtaken(self.feed)

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        self._known = content
        return super().save_checkpoint(previous_ts, ts, content)

    def alone(self) -> None:
        """Take a lock of the connection: a schema change commits, which would release row locks."""
        if not self._is_alone:
            if self.session.rows(f"SELECT GET_LOCK({self._lock}, {DDL_SECONDS})")[0][0] != 1:
                raise Retryable(f"{self.identity}: another attempt at {self.feed} changes a table")
            self._is_alone = True
        self._check("")

    def commit(self) -> None:
        super().commit()
        if self._is_alone:
            self.session.rows(f"SELECT RELEASE_LOCK({self._lock})")
            self._is_alone = False

    def close(self) -> None:
        self._is_alone = False
        super().close()


def open_mysql(url: str, options: MySqlOptions, place: Place, host: str) -> SqlSink:  # noqa: ARG001
    """Return the sink, not opened yet. Raises ConfigError."""
    reject_letters(options)
    if options.checkpoint != "tidemill":
        raise ConfigError("checkpoint: Spark stores checkpoints of its own; remove the option")
    return SharedSqlSink(NAME, SharedMySql(place, parsed(url), options), options)
