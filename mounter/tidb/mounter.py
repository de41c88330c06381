"""Decoding of TiKV's raw changes into transactions of rows and schema changes."""

from __future__ import annotations

from typing import Final

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.job_entry import JOB_KEYS, read_job
from ...codec.tidb.key import decode_int, table_prefix
from ...codec.tidb.load_entry import LOAD_KEY, GoneTable, LoadedRows, read_load
from ...codec.tidb.table import to_table
from ...codec.tidb.table_info import partition_ids
from ...errors import SourceError
from ...events import Chunk, CreateTable, Ddl, DropTable, Item, KvChange, RowChange, Sorted
from .ddl import read_ddl
from .history import SchemaHistory
from .items import Items, Parts
from .runs import TABLE_BYTES, RowReader, by_transaction, raw_parts

READERS: Final = 20_000
"""Maximum number of readers kept, the newest ones; each is generated code of some 10 kB."""

_MARKS: Final = (*JOB_KEYS, LOAD_KEY)
"""Prefixes of the keys of changes that aren't rows."""


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
        parts = self._parts([*released.changes]) if released.changes else Parts()
        return self._items.of(parts, released.continues)

    def _parts(self, changes: list[KvChange]) -> Parts:
        """Return the parts of transactions."""
        keys = [change.key for change in changes]
        low, high = min(keys), max(keys)
        parts = Parts()
        start = 0
        if any(low[: len(prefix)] <= prefix <= high for prefix in _MARKS):
            for at, key in enumerate(keys):
                if key.startswith(_MARKS):
                    change = changes[at]
                    parts.extend(self._rows(changes[start:at]))
                    for content in self._marked(change):
                        parts.add(change.commit_ts, change.start_ts, content)
                    start = at + 1
        elif self._decodes and low[:TABLE_BYTES] == high[:TABLE_BYTES]:  # one table, as nearly always
            reader = self._reader(low[:TABLE_BYTES], changes[0])
            return Parts() if reader is None else by_transaction(reader.read(changes))
        parts.extend(self._rows(changes[start:] if start else changes))
        return parts

    def _rows(self, changes: list[KvChange]) -> Parts:
        """Return the parts of changes between two marks."""
        return by_transaction(self._decoded(changes)) if self._decodes else raw_parts(changes, self._reader)

    def _decoded(self, changes: list[KvChange]) -> list[RowChange | None]:
        """Decode rows, a table at a time; None for changes without effect on followed rows."""
        decoded: list[RowChange | None] = [None] * len(changes)
        by_table: dict[bytes, list[int]] = {}
        for at, change in enumerate(changes):
            by_table.setdefault(change.key[:TABLE_BYTES], []).append(at)
        for prefix, places in by_table.items():
            reader = self._reader(prefix, changes[places[0]])
            if reader is not None:
                for at, row in zip(places, reader.read([changes[at] for at in places]), strict=True):
                    decoded[at] = row
        return decoded

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
