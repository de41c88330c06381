"""The keys of tables, as of one moment: their ends, or all of them in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...codec.mysql.result_rows import ResultRowsDecoder
from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.key_range import chunk_query, is_ordered
from ...dialects.mysql.result import Result
from ...events import OrderedKey, Table, key_order
from .options import MysqlOptions
from .snapshot import Snapshot
from .tables import Follows

CHUNK_KEYS: Final = 20_000
"""Maximum number of keys of one table that are in memory."""


class MysqlKeySpace:
    """The keys of one table. Its snapshot is used by one reader at a time."""

    def __init__(self, source: str, snapshot: KeySnapshot, table: Table) -> None:
        self.source = source
        self.table = table
        self._snapshot = snapshot
        columns = tuple(table.columns[index] for index in table.key)
        self._keys = Table(table.schema, table.name, columns, tuple(range(len(columns))))
        self._order = key_order(self._keys) if is_ordered(self._keys) else None

    def ends(self) -> tuple[OrderedKey, OrderedKey] | None:
        """Return the lowest and highest key; None for an empty table, or if keys can't be compared."""
        lowest = self._read(chunk_query(self._keys, None, 1)) if self._order is not None else []
        if not lowest:
            return None
        head = chunk_query(self._keys, None, 1).rpartition(" ORDER BY ")[0]
        columns = ", ".join(f"{quoted(column.name)} DESC" for column in self._keys.columns)
        return lowest[0], self._read(f"{head} ORDER BY {columns} LIMIT 1")[0]

    def keys(self) -> Iterator[OrderedKey] | None:
        """Return all keys in order; None if they can't be compared."""
        return None if self._order is None else self._chunks()

    def _chunks(self) -> Iterator[OrderedKey]:
        after: OrderedKey | None = None
        while chunk := self._read(chunk_query(self._keys, after, CHUNK_KEYS)):
            yield from chunk
            after = chunk[-1]

    def _read(self, query: str) -> list[OrderedKey]:
        assert self._order is not None
        order, packets = self._order, []
        result = self._snapshot.run(self._keys, query)
        while not result.done:
            packets.append(result.read())
        changes = ResultRowsDecoder(self._keys).decode(b"".join(packets), 0, 0)
        return [order(change.after) for change in changes if change.after is not None]


class KeySnapshot:
    """A consistent view of tables, whose keys can be read."""

    def __init__(self, source: str, options: MysqlOptions, follows: Follows) -> None:
        """`source` is the name in every key space. Raises Retryable or SourceError."""
        self._snapshot = Snapshot(options, follows)
        self.spaces = [MysqlKeySpace(source, self, one.table) for one in self._snapshot.tables]

    def run(self, table: Table, query: str) -> Result:
        return self._snapshot.run(table, query)

    def close(self) -> None:
        self._snapshot.close()
