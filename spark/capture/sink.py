"""The sink of a capture's feed, which encodes items as Arrow batches into the buffer."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvariantViolated
from ...events import Batch, Checkpoint, Item, Transaction, Ts
from ...sink.sink import CheckpointStore, Sink, SinkTraits
from ..envelope import EnvelopeEncoder
from .buffer import ChangeBuffer
from .entry import SharedRows, cut_small, last_end
from .place import LogPoint, RankOf


class CaptureSink(Sink):
    """A sink whose checkpoint is the position that the readers acknowledged.

    Buffered changes after it are lost at a restart and read again from the source.
    """

    traits = SinkTraits(reads_rows=False, loads_tables=False)

    def __init__(self, target: str, store: CheckpointStore, buffer: ChangeBuffer, rank_of: RankOf) -> None:
        self.name = "capture"
        self.target = target
        self._store = store
        self._buffer = buffer
        self._rank_of = rank_of
        self._durable: Checkpoint | None = None
        self._encoder = EnvelopeEncoder(json=False)
        self._open: tuple[Ts, SharedRows] | None = None  # the commit ts that continues, and its entries

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable = durable = None if stored is None else stored[0]
        self._encoder = EnvelopeEncoder(json=False)
        self._open = None
        if durable is not None:
            self._buffer.source = durable.source
        self._buffer.begin(None if durable is None else self._place(durable.ts, durable.position))
        return durable

    def write(self, batch: Batch) -> None:
        """Append the batch; waits for room. Raises Closed at shutdown, StoreError if the disk fails."""
        if batch.checkpoint is not None:
            self._buffer.source = batch.checkpoint.source
        items = batch.items
        continues = items[-1].commit_ts if batch.checkpoint is None else None
        if self._open is not None:
            items = self._continue(items, *self._open, continues)
        if continues is not None and self._open is None:
            first = next(n for n, item in enumerate(items) if item.commit_ts == continues)
            self._keep(items[:first])
            self._open = continues, SharedRows(self._rank_of, whole=False)
            self._buffer.append(self._encoder.encode(items[first:]), self._open[1])
        elif continues is None:
            self._keep(items)

    def _continue(self, items: Sequence[Item], ts: Ts, span: SharedRows, continues: Ts | None) -> list[Item]:
        """Append the items of the open commit ts; return the others."""
        stop = next((n for n, item in enumerate(items) if item.commit_ts != ts), len(items))
        if not stop:
            raise InvariantViolated(f"what has the commit ts {ts} is not whole, and others follow")
        self._buffer.append(self._encoder.encode(items[:stop]), span)
        if continues != ts:
            self._buffer.reach(self._end(items[stop - 1]), span)
            self._open = None
        return list(items[stop:])

    def _keep(self, items: Sequence[Item]) -> None:
        """Append whole transactions."""
        if not items:
            return
        if not self._buffer.begun and items[0].last:
            self._buffer.reach(self._end(items[0]))
        count = len(items)
        while count and _is_rowless(items[count - 1]) and (count == 1 or items[count - 2].last):
            count -= 1
        for batch in cut_small(self._encoder.encode(items[:count]), self._buffer.entry_bytes):
            span = SharedRows(self._rank_of, whole=True)
            span.end = self._place(*last_end(batch))
            self._buffer.append(batch, span)
            self._buffer.reach(span.end, span)
        self._buffer.reach(self._end(items[-1]))

    def _end(self, item: Item) -> LogPoint:
        if not item.last or not item.position:
            raise InvariantViolated(f"transaction {item.commit_ts} ends without a position")
        return self._place(item.commit_ts, item.position)

    def _place(self, ts: Ts, position: str) -> LogPoint:
        return LogPoint(self._rank_of(position), ts, position)

    def flush(self) -> Checkpoint | None:
        freed, durable = self._buffer.freed, self._durable
        if freed is not None and freed.position and (durable is None or freed.ts > durable.ts):
            durable = Checkpoint(freed.ts, freed.position, None, self._buffer.source)
            self._store.save(durable)
            self._durable = durable
        return durable

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # unknown to a stream of changes

    def close(self) -> None:
        """Keep the buffer readable; it is emptied when the feed opens the sink again, or ends."""


def _is_rowless(item: Item) -> bool:
    return isinstance(item, Transaction) and not item.rows and item.last
