"""An empty database of one dialect, for the suites of sinks, of comparisons and of Spark's writers."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from math import copysign
from typing import Any

from ..dialects.groups import ChangeGroup
from ..dialects.syncpoints import Syncpoint, Syncpoints
from ..events import Row, RowChange, Table
from ..sink import Sink, open_sink
from ..sink.registry import given_sink
from .changes import MemoryStore


class DatabasePlace:
    """An empty database that outlives its sinks."""

    at_least_once = False

    def __init__(self, url: str, feed: str = "test", **options: object) -> None:
        """`options` are those of every sink."""
        self.url = url
        self.feed = feed
        self.options = options

    def sink(self, **options: object) -> Sink:
        """Return a new sink, as after a restart."""
        settings = self.options | options
        return open_sink("copy", self.url, feed=self.feed, store=MemoryStore(), options=settings)

    def query(self, sql: str) -> list[Any]:
        """Run a statement; return its rows."""
        raise NotImplementedError

    def rows(self, table: Table) -> list[Row]:
        """Return the rows of the table as Python values, in any order."""
        raise NotImplementedError

    def named(self, schema: str, table: str) -> str:
        """Return the quoted name that a table of the source has here."""
        raise NotImplementedError

    def storable(self, row: Row) -> Row:
        """Return a row of kinds.KEYED without the values that the database lacks."""
        return row

    def tells_apart(self, one: object, other: object) -> bool:
        """Return True if the database stores two values of the same column in two ways."""
        if one == other == 0 and isinstance(one, float) and isinstance(other, float):
            return copysign(1, one) != copysign(1, other)
        return one != other

    def kept_open(self) -> AbstractContextManager[object]:
        """Return a context in which sinks are opened faster."""
        return nullcontext()

    def apply(self, *changes: RowChange) -> None:
        """Change rows as somebody else than the feed would; no change of a key."""
        choice = given_sink("by hand", self.url, self.options)
        assert choice.kind.dialect is not None
        database = choice.kind.dialect.connect(self.url, choice.options, "by hand", None)
        database.connect()
        with closing(database):
            database.begin()
            database.rows.apply([_group(change) for change in changes])
            database.commit()

    def syncpoint(self) -> Syncpoint | None:
        """Return the feed's newest syncpoint."""
        choice = given_sink("by hand", self.url, self.options)
        assert choice.kind.dialect is not None
        database = choice.kind.dialect.connect(self.url, choice.options, self.feed, None)
        database.connect()
        with closing(database):
            return Syncpoints(database.own_tables, self.feed).last()


def _group(change: RowChange) -> ChangeGroup:
    return ChangeGroup(change.table, change.op, [change])
