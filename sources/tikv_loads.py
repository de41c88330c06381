"""Tables loaded again while a feed of TiKV runs, in chunks that are read as of a ts of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ..chain.selection.tables import TablePatterns
from ..codec.blocks import NOTHING, block_of
from ..codec.tidb.load_entry import GoneTable, LoadedRows, NewTable, load_change
from ..events import (
    CREATED,
    PUT,
    REST,
    WHOLE,
    Block,
    Changes,
    Checkpoint,
    Chunk,
    KvChange,
    OrderedKey,
    TableProgress,
    Ts,
    progress_of,
)
from ..failpoint import reach
from ..mounter import SchemaHistory, TableAt
from ..puller.puller import SnapshotReport
from ..puller.tikv.client import TikvClient
from ..snapshot.tikv.ranges import has_integer_order, key_in, range_after, row_ranges
from ..snapshot.tikv.reads import Pairs, all_rows, first_rows
from .tikv_snapshot import CHUNK_BYTES, CHUNK_ROWS

MAX_READ: Final = 8
"""Maximum number of chunks that wait until the schema at their ts is known."""

Step: TypeAlias = Changes | SnapshotReport | None
"""Output of a load; None: it waits until more of the schema is known."""


def tables_to_load(checkpoints: Sequence[Checkpoint]) -> dict[str, OrderedKey] | None:
    """Return the tables that sinks load again, each with the key up to which every sink has it.

    Empty if only the end of the load is left; None if no sink loads tables again.
    """
    loads = [loading for one in checkpoints if (loading := one.to_load) is not None and REST in loading]
    lasts: dict[str, OrderedKey] = {}
    for loading in loads:
        for name, have in loading.items():
            if have != WHOLE:
                last = (progress_of(loading, name) or CREATED).last or ()
                lasts[name] = min(lasts.get(name, last), last)
    return lasts if loads else None


class _Read(Struct, frozen=True):
    """A chunk that was read as of `ts`."""

    ts: Ts
    chunk: Chunk
    pairs: Pairs


class TikvLoads:
    """The load of tables, as a keyspace of the sorter.

    Each step has a TSO of its own as its commit ts, and a chunk has the rows as of it. So it is exact where
    the sorter puts it, between the changes of the tables' keyspaces: those at or below that ts are in it. The
    keyspace is resolved up to the next step, so other tables wait only while a chunk is read. As the schema
    at a new ts isn't known yet, a chunk is read by the present one, and again if the table has changed.
    """

    def __init__(
        self,
        client: TikvClient,
        history: SchemaHistory,
        tables: TablePatterns,
        names: Mapping[str, OrderedKey],
        ended: Callable[[Ts], object],
        known_ts: Ts,
    ) -> None:
        """`names` are tables with the keys after which they are read. `ended` is called with the ts of the
        last step, before it is sent. `known_ts` is the ts up to which `history` is complete."""
        self._known_ts = known_ts
        self._client = client
        self._history = history
        self._tables = tables
        self._names = names
        self._ended = ended
        self._rows = 0

    def known(self, ts: Ts) -> None:
        """Note that the history is complete up to `ts`."""
        self._known_ts = ts

    def steps(self) -> Iterator[Step]:
        """Yield what the keyspace and the coordinator get. Raises Retryable and Fatal; waits for the
        cluster."""
        for done, (name, after) in enumerate(self._names.items()):
            yield self._report(name, done)
            for step in self._table(name, after):
                yield step
                if isinstance(step, Changes) and step.changes:
                    yield self._report(name, done)
        yield self._report("", len(self._names))
        ts = self._next_ts()
        self._ended(ts)
        yield Changes(block_of([load_change(LoadedRows(Chunk("")), ts)]), ts)

    def _report(self, name: str, done: int) -> SnapshotReport:
        return SnapshotReport(name, self._rows, 0, done, len(self._names))

    def _table(self, name: str, after: OrderedKey) -> Iterator[Step]:
        is_created = False
        while True:
            ts = yield from self._known_next_ts()
            table = self._table_at(name, ts)
            if table is None:
                yield Changes(block_of([load_change(GoneTable(*name.split(".", 1)), ts)]), ts)
                return
            if not is_created:
                is_created = True  # sinks that have a part of it already drop this
                yield Changes(block_of([load_change(NewTable(table.info.id), ts)]), ts)
            elif not has_integer_order(table.info):
                yield from self._whole(table, ts, after)
                return
            else:
                yield Changes(NOTHING, ts)
                after, is_loaded = yield from self._chunks(table, after)
                if is_loaded:
                    return

    def _table_at(self, name: str, ts: Ts) -> TableAt | None:
        schema, table = name.split(".", 1)
        return self._history.named(schema, table, ts) if self._tables.matches(schema, table) else None

    def _next_ts(self) -> Ts:
        return self._client.run(self._client.pd.tso())

    def _known_next_ts(self) -> Generator[Step, None, Ts]:
        """Return a new ts at which the schema is known; nothing above it leaves the sorter."""
        ts = self._next_ts()
        yield Changes(NOTHING, ts - 1)
        while self._known_ts < ts:
            yield None
        return ts

    def _whole(self, table: TableAt, ts: Ts, after: OrderedKey) -> Iterator[Step]:
        """Yield the table in one transaction of any size: a restart can't resume inside it."""
        yield Changes(block_of([load_change(LoadedRows(Chunk(table.name, WHOLE, after)), ts)]))
        for pairs in all_rows(self._client, row_ranges(table.info), ts, CHUNK_ROWS, CHUNK_BYTES):
            reach("snapshot.chunk_read")
            yield Changes(self._changes(pairs, ts))
        yield Changes(NOTHING, ts)

    def _chunks(self, table: TableAt, after: OrderedKey) -> Generator[Step, None, tuple[OrderedKey, bool]]:
        """Yield chunks by integer key; each is a transaction, after which a restart continues.

        Return the key up to which the table was yielded, and True if that is all of it; else it has changed.
        """
        waiting: deque[_Read] = deque()
        last: OrderedKey | None = after
        while True:
            while waiting and waiting[0].ts <= self._known_ts:
                read = waiting.popleft()
                now = self._table_at(table.name, read.ts)
                if now is None or (now.info.id, now.since) != (table.info.id, table.since):
                    return after, False
                loaded = load_change(LoadedRows(read.chunk), read.ts)
                yield Changes(self._changes(read.pairs, read.ts, loaded), read.ts)
                if read.chunk.loaded.last is None:
                    return after, True
                after = read.chunk.loaded.last
                if waiting:
                    yield Changes(NOTHING, waiting[0].ts - 1)
            if last is None or len(waiting) >= MAX_READ:
                yield None
                continue
            ts = self._next_ts()
            if not waiting:
                yield Changes(NOTHING, ts - 1)
            waiting.append(read := self._chunk(table, last, ts))
            last = read.chunk.loaded.last

    def _chunk(self, table: TableAt, after: OrderedKey, ts: Ts) -> _Read:
        rest = range_after(table.info, after)
        keys, values = pairs = first_rows(self._client, [rest], ts, CHUNK_ROWS, CHUNK_BYTES)
        reach("snapshot.chunk_read")
        is_full = len(keys) >= CHUNK_ROWS or sum(map(len, values)) >= CHUNK_BYTES
        loaded = TableProgress(key_in(keys[-1])) if is_full else WHOLE
        return _Read(ts, Chunk(table.name, loaded, after), pairs)

    def _changes(self, pairs: Pairs, ts: Ts, *before: KvChange) -> Block:
        self._rows += len(pairs[0])
        return block_of([*before, *[KvChange(ts, ts, PUT, *pair) for pair in zip(*pairs, strict=True)]])
