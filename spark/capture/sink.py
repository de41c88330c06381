"""The end of a capture's feed: items become Arrow batches that are held."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvariantViolated
from ...events import Batch, Checkpoint, Item, Transaction, Ts
from ...sink.sink import CheckpointStore
from ..envelope import Encoder
from .buffer import ChangeBuffer
from .entry import Span, cut_small, last_end
from .place import Place, RankOf


class CaptureSink:
    """Its checkpoint is what was acknowledged by those who read. What is held beyond is scratch: after a
    restart it comes again."""

    reads_rows = False

    def __init__(self, target: str, store: CheckpointStore, held: ChangeBuffer, rank_of: RankOf) -> None:
        self.name = "capture"
        self.target = target
        self.source = ""
        """The identity of the source; empty before the first transaction."""
        self._store = store
        self._held = held
        self._rank_of = rank_of
        self._durable: Checkpoint | None = None
        self._encoder = Encoder(json=False)
        self._open: tuple[Ts, Span] | None = None  # the commit ts that goes on, and its pieces

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable = durable = None if stored is None else stored[0]
        self._encoder = Encoder(json=False)
        self._open = None
        if durable is not None:
            self.source = durable.source
        self._held.begin(None if durable is None else self._place(durable.ts, durable.position))
        return durable

    def write(self, batch: Batch) -> None:
        """Waits for room. Raises Closed at the end, StoreError if the disk fails."""
        if batch.checkpoint is not None:
            self.source = batch.checkpoint.source
        items = batch.items
        continues = items[-1].commit_ts if batch.checkpoint is None else None
        if self._open is not None:
            items = self._continue(items, *self._open, continues)
        if continues is not None and self._open is None:
            first = next(n for n, item in enumerate(items) if item.commit_ts == continues)
            self._keep(items[:first])
            self._open = continues, Span(self._rank_of, whole=False)
            self._held.append(self._encoder.encode(items[first:]), self._open[1])
        elif continues is None:
            self._keep(items)

    def _continue(self, items: Sequence[Item], ts: Ts, span: Span, continues: Ts | None) -> list[Item]:
        """Take what belongs to the open commit ts; what is left."""
        behind = next((n for n, item in enumerate(items) if item.commit_ts != ts), len(items))
        if not behind:
            raise InvariantViolated(f"what has the commit ts {ts} is not whole, and others follow")
        self._held.append(self._encoder.encode(items[:behind]), span)
        if continues != ts:
            self._held.reach(self._end(items[behind - 1]), span)
            self._open = None
        return list(items[behind:])

    def _keep(self, items: Sequence[Item]) -> None:
        """Whole transactions."""
        if not items:
            return
        if not self._held.begun and items[0].last:
            self._held.reach(self._end(items[0]))
        count = len(items)
        while count and _is_rowless(items[count - 1]) and (count == 1 or items[count - 2].last):
            count -= 1
        for piece in cut_small(self._encoder.encode(items[:count]), self._held.piece_bytes):
            span = Span(self._rank_of, whole=True)
            span.end = self._place(*last_end(piece))
            self._held.append(piece, span)
            self._held.reach(span.end, span)
        self._held.reach(self._end(items[-1]))

    def _end(self, item: Item) -> Place:
        if not item.last or not item.position:
            raise InvariantViolated(f"transaction {item.commit_ts} ends without a position")
        return self._place(item.commit_ts, item.position)

    def _place(self, ts: Ts, position: str) -> Place:
        return Place(self._rank_of(position), ts, position)

    def flush(self) -> Checkpoint | None:
        freed, durable = self._held.freed, self._durable
        if freed is not None and freed.position and (durable is None or freed.ts > durable.ts):
            durable = Checkpoint(freed.ts, freed.position, None, self.source)
            self._store.save(durable)
            self._durable = durable
        return durable

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # a stream of changes doesn't know

    def close(self) -> None:
        """What is held may be read on: it is let go when the feed opens this again, or ends."""


def _is_rowless(item: Item) -> bool:
    return isinstance(item, Transaction) and not item.rows and item.last
