"""Decoding of the bench's binlogs into rows for a sink without a target, with a relay or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from msgspec import Struct

from ..actors import ActorSystem, Failed, PooledActor
from ..chain import Stage
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.column_type import ColumnFlag, Type
from ..codec.tidb.table_info import ColumnInfo, DbInfo, TableInfo
from ..events import Checkpoint, Sorted, Ts
from ..mounter import BinlogMounter, SchemaHistory
from ..sink import Acknowledged, Deliver, Delivery, FromSink, Reports, spawn_sink
from ..sink.relay.options import RelayOptions
from ..sink.relay.stage import RelayStage
from ..store.store import Store
from .dropping_sink import DroppingSink

TABLE_ID = 100


class _Coordinator(PooledActor[FromSink | Failed]):
    """Notes when the sink has everything up to `last`."""

    def __init__(self, last: Ts, done: Event) -> None:
        self._last = last
        self._done = done

    def on_receive(self, message: FromSink | Failed) -> None:
        if isinstance(message, Acknowledged) and message.checkpoint.ts >= self._last:
            self._done.set()


class _Start(Struct, frozen=True):
    """Start of the sink."""

    checkpoint: Checkpoint
    stages: Sequence[Stage]


class Decoding(PooledActor[Sorted]):
    """Decodes released binlogs for a sink; `done` is set once the sink has everything up to `last`."""

    def __init__(
        self, done: Event, last: Ts, mounter: BinlogMounter, start: _Start, blocking: ActorSystem
    ) -> None:
        reports = Reports(DroppingSink.name, blocking.spawn(_Coordinator, last, done))
        delivery = Delivery(
            DroppingSink(start.checkpoint),
            start.checkpoint,
            "bench",
            stages=start.stages,
            acknowledged=reports.acknowledged,
        )
        self._sink = spawn_sink(blocking, delivery, reports)
        self._mounter = mounter

    def on_receive(self, message: Sorted) -> None:
        self.send(self._sink, Deliver(self._mounter.mount(message)))


@contextmanager
def decoding(start: Ts, last: Ts, *, relays: bool) -> Iterator[tuple[object, ...]]:
    """Yield the arguments of Decoding, but for `done`: for rows above `start`, and a sink that has a relay if
    it `relays`.

    Its files are in the working directory, and are removed.
    """
    with TemporaryDirectory(dir=".", prefix="bench-") as name, ActorSystem("bench-sink") as blocking:
        directory = Path(name)
        store = Store(directory / "schema")
        history = SchemaHistory(store, start, [(DbInfo(id=1, name="bench"), [_table()])])
        checkpoint = Checkpoint(start, str(start), None, "bench")
        stages = [RelayStage(RelayOptions(directory=directory / "relay"))] if relays else []
        mounter = BinlogMounter(history, "bench", TablePatterns.parse(["*.*"]))
        yield last, mounter, _Start(checkpoint, stages), blocking
        blocking.stop(5.0)
        store.close()


def _table() -> TableInfo:
    key = ColumnFlag.NOT_NULL | ColumnFlag.PRI_KEY
    kinds = (("id", Type.LONGLONG, key, 20), ("v", Type.BLOB, 0, 65535))
    columns = tuple(
        ColumnInfo(
            id=offset + 1,
            name=name,
            offset=offset,
            type=type_,
            flags=flags,
            length=length,
            charset="binary",
            collation="binary",
        )
        for offset, (name, type_, flags, length) in enumerate(kinds)
    )
    return TableInfo(id=TABLE_ID, name="t", columns=columns, pk_is_handle=True)
