"""The keys of tables, as of one moment: their ends, or all of them in order."""

from __future__ import annotations

from collections.abc import Iterator

from ...dialects.mysql.key_range import is_ordered
from ...events import OrderedKey, Table
from ...snapshot.mysql.keys import OrderedKeys
from ...snapshot.mysql.tables import Follows
from .options import MysqlOptions
from .snapshot import Snapshot


class MysqlKeySpace:
    """The keys of one table. Its snapshot is used by one reader at a time."""

    def __init__(self, source: str, snapshot: Snapshot, table: Table) -> None:
        self.source = source
        self.table = table
        self._keys = OrderedKeys(snapshot.run, table) if is_ordered(table) else None

    def ends(self) -> tuple[OrderedKey, OrderedKey] | None:
        """Return the lowest and highest key; None for an empty table, or if keys can't be compared."""
        return None if self._keys is None else self._keys.ends()

    def keys(self) -> Iterator[OrderedKey] | None:
        """Return all keys in order; None if they can't be compared."""
        return None if self._keys is None else self._keys.all()


class KeySnapshot:
    """A consistent view of tables, whose keys can be read."""

    def __init__(self, source: str, options: MysqlOptions, follows: Follows) -> None:
        """`source` is the name in every key space. Raises Retryable or SourceError."""
        self._snapshot = Snapshot(options, follows)
        self.spaces = [MysqlKeySpace(source, self._snapshot, one.table) for one in self._snapshot.tables]

    def close(self) -> None:
        self._snapshot.close()
