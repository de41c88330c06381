"""PostgreSQL as a target of tasks."""

from __future__ import annotations

from sqlalchemy import URL

from ...codec.checkpoint import encode_checkpoint
from ...dialects.address import parsed
from ...dialects.options import PostgresOptions
from ...dialects.postgres.postgres import PostgresTarget
from ...sink.sql.sql import SqlSink
from .options import NAME
from .place import Overtaken, Place
from .sql import SharedSqlSink, reject_letters


class SharedPostgres(PostgresTarget):
    """A target of one partition, to which several attempts at its task may be connected."""

    def __init__(self, place: Place, url: URL, options: PostgresOptions) -> None:
        super().__init__(url, place.feed, options)
        self._place = place
        self._start = encode_checkpoint(place.start)
        self._known: str | None = None

    def load_checkpoint(self) -> str | None:
        if super().load_checkpoint() is None:
            self._place.check_new(self.identity)
            super().save_checkpoint(None, 0, self._start)
        self._known = super().load_checkpoint()
        return self._known

    def begin(self) -> None:
        super().begin()
        if self.home.load_checkpoint("FOR UPDATE") != self._known:
            raise Overtaken(self.feed)

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        self._known = content
        return super().save_checkpoint(previous_ts, ts, content)

    def alone(self) -> None:
        """Do nothing: a schema change is part of the transaction, which has locked the checkpoint."""


def open_postgres(url: str, options: PostgresOptions, place: Place, host: str) -> SqlSink:  # noqa: ARG001
    """Return the sink, not opened yet. Raises ConfigError."""
    reject_letters(options)
    return SharedSqlSink(NAME, SharedPostgres(place, parsed(url), options), options)
