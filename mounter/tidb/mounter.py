"""Decoding of TiKV's raw changes into transactions of rows and schema changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.changes import TABLE_BYTES
from ...codec.tidb.job_entry import JOB_KEYS, read_job
from ...codec.tidb.key import decode_int, table_prefix
from ...codec.tidb.load_entry import LOAD_KEY, GoneTable, LoadedRows, read_load
from ...codec.tidb.table import to_table
from ...codec.tidb.table_info import partition_ids
from ...errors import SourceError
from ...events import Block, Chunk, CreateTable, Ddl, DropTable, Item, KvChange, Sorted
from .ddl import read_ddl
from .history import SchemaHistory
from .items import Items, Parts
from .runs import RowReader, raw_parts, row_parts

READERS: Final = 20_000
"""Maximum number of readers kept, the newest ones; each is generated code of some 10 kB."""

_MARKS: Final = (*JOB_KEYS, LOAD_KEY)
"""Prefixes of the keys of changes that aren't rows."""
_BEGINS: Final = tuple([prefix[:TABLE_BYTES] for prefix in _MARKS])


class TidbMounter:
    """Decodes the changes that a feed's sorter releases, in order.

    Not thread-safe: it keeps the state of the open transaction.
    """

    def __init__(
        self,
        history: SchemaHistory,
        source: str,
        tables: TablePatterns,
        *,
        readers: int = READERS,
        decodes: bool = True,
        details: bool = False,
    ) -> None:
        """`source` is the name in every item. Without `decodes`, rows are decoded when they are read, which
        costs 1 µs more for each transaction if they are read as tuples. With `details`, changes of indexes
        and the like are told."""
        self._history: Final = history
        self._source: Final = source
        self._tables: Final = tables
        self._limit: Final = readers
        self._decodes: Final = decodes
        self._details: Final = details
        self._readers: dict[bytes, RowReader | None] = {}
        """Readers by table prefix of the key, at the ts of the change being decoded; None for a table that
        isn't followed."""
        self._items: Final = Items(source)

    def mount(self, released: Sorted) -> list[Item]:
        """Return the items of released changes: transactions of rows, and schema changes, in commit order.

        Raises SourceError for a row or a job that can't be decoded.
        """
        return self._items.of(self._parts(released.changes), released.continues)

    def _parts(self, changes: Block) -> Parts:
        """Return the parts of transactions."""
        tables = changes.by_prefix(TABLE_BYTES)
        marks = [
            change
            for prefix, those in tables.items()
            if prefix.startswith(_BEGINS)
            for change in those
            if change.key.startswith(_MARKS)
        ]
        if not marks:
            return self._rows(changes, tables)
        parts = Parts([], [], [])
        start = 0
        for ts, group in groupby(sorted(marks), key=attrgetter("commit_ts")):
            first = changes.find(ts)
            parts.extend(self._between(changes.slice(start, first)))
            start = self._at_one_ts(changes, first, [*group], parts)
        parts.extend(self._between(changes.slice(start, len(changes))))
        return parts

    def _at_one_ts(self, changes: Block, start: int, marks: list[KvChange], parts: Parts) -> int:
        """Add the parts of changes from `start` to the last mark of a ts; return the index after them.

        A commit in one phase computes its own ts, which can be that of a schema change or of a step of a
        load. The schema at a ts has all changes up to it, so schema changes come first, as a part of the
        first transaction.
        """
        chunks: list[tuple[KvChange, Chunk | None]] = []
        start_ts = changes[start].start_ts
        for mark in marks:
            chunk = None
            for content in self._marked(mark):
                if isinstance(content, Chunk):
                    chunk = content
                else:
                    parts.add(mark.commit_ts, start_ts, replace(content, start_ts=start_ts))
            chunks.append((mark, chunk))
        for mark, chunk in chunks:
            # The same mark may come from two keyspaces: neighbours, of which `find` returns the first.
            mark_place = max(start, changes.find(mark.commit_ts, mark.start_ts, mark.op, mark.key))
            parts.extend(self._between(changes.slice(start, mark_place)))
            if chunk is not None:
                parts.add(mark.commit_ts, mark.start_ts, chunk)
            start = mark_place + 1
        return start

    def _between(self, changes: Block) -> Parts:
        """Return the parts of changes between two marks."""
        return self._rows(changes, changes.by_prefix(TABLE_BYTES))

    def _rows(self, changes: Block, tables: Mapping[bytes, Block]) -> Parts:
        readers = {prefix: self._reader(prefix, those[0]) for prefix, those in tables.items()}
        return (row_parts if self._decodes else raw_parts)(changes, tables, readers)

    def _marked(self, change: KvChange) -> list[Ddl | Chunk]:
        return self._load_step(change) if change.key == LOAD_KEY else [*self._ddls(change)]

    def _load_step(self, change: KvChange) -> list[Ddl | Chunk]:
        """Return the effect of a step of a table's load."""
        ts, entry = change.commit_ts, read_load(change)
        if isinstance(entry, LoadedRows):
            return [entry.chunk]
        if isinstance(entry, GoneTable):
            return [Ddl(ts, ts, self._source, entry.schema, entry.table, "", (DropTable(),), last=False)]
        entry_then = self._history.logical_at(entry.table_id, ts)
        assert entry_then is not None
        table = to_table(entry_then.schema, entry_then.info)
        return [Ddl(ts, ts, self._source, table.schema, table.name, "", (CreateTable(table),), last=False)]

    def _ddls(self, change: KvChange) -> list[Ddl]:
        job = read_job(change)
        if job is None:
            return []
        for before, after in self._history.changes(job.id, change.commit_ts):
            for table in (before, after):
                if table is not None:
                    for physical_id in partition_ids(table.info) or (table.info.id,):
                        self._readers.pop(table_prefix(physical_id), None)
        return read_ddl(job, change, self._history, self._tables, self._source, details=self._details)

    def _reader(self, prefix: bytes, change: KvChange) -> RowReader | None:
        readers = self._readers
        if prefix not in readers:
            if len(readers) >= self._limit:
                del readers[next(iter(readers))]
            readers[prefix] = self._make_reader(decode_int(prefix, 1), change)
        return readers[prefix]

    def _make_reader(self, physical_id: int, change: KvChange) -> RowReader | None:
        table = self._history.table_at(physical_id, change.commit_ts)
        if table is None:
            raise SourceError(
                f"a row of table id {physical_id} at ts {change.commit_ts}, which isn't in the schema at"
                f" that ts; its key is {change.key.hex()}. Start again from the last checkpoint: then the"
                " schema is read again"
            )
        if not self._tables.matches(table.schema, table.info.name):
            return None
        return RowReader(table)
