"""Items as frames of a relay, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ...codec.ddl_bytes import decode_ddl, encode_ddl
from ...codec.row_bytes import RowBytes
from ...errors import StoreError
from ...events import Chunk, Ddl, Item, Op, RowChange, Rows, Run, Table, Transaction, Ts
from .frame import DDL, LAYOUT, TRANSACTION, Frame, decode, frame

_Runs: TypeAlias = list[tuple[int, Op, bytes]]
_Transaction: TypeAlias = tuple[Ts, Ts, str, str, bool, Chunk | None, _Runs]
_Layout: TypeAlias = tuple[int, Table]

_encode = msgspec.msgpack.Encoder().encode
_transaction = msgspec.msgpack.Decoder(_Transaction).decode


class RecordWriter:
    """Makes the frames of one file; its tables are in it before the first transaction that names them."""

    def __init__(self) -> None:
        self._layouts: dict[Table, tuple[int, RowBytes]] = {}
        self._last: tuple[Table, int, RowBytes] | None = None

    def frames(self, item: Item) -> Iterator[bytes]:
        if isinstance(item, Ddl):
            yield frame(DDL, encode_ddl(item))
            return
        runs: _Runs = []
        for run in item.runs:
            table = run.table
            if self._last is None or self._last[0] is not table:
                layout = self._layouts.get(table)
                if layout is None:
                    number = len(self._layouts)
                    layout = self._layouts[table] = number, RowBytes("", table)
                    yield frame(LAYOUT, _encode((number, table)))
                self._last = table, *layout
            _, number, code = self._last
            runs.append((number, run.op, code.encode_all(run.changes())))
        head = (item.commit_ts, item.start_ts, item.source, item.position, item.last, item.chunk)
        yield frame(TRANSACTION, _encode((*head, runs)))


class RecordReader:
    """Reads the items of one file's frames, in order."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._layouts: dict[int, RowBytes] = {}

    def item(self, frame: Frame) -> Item | None:
        """Return the item of a frame; None for a frame without one. Raises StoreError."""
        try:
            match frame.kind:
                case kind if kind == LAYOUT:
                    number, table = decode(frame.payload, _Layout, self._path)
                    self._layouts[number] = RowBytes("", table)
                case kind if kind == TRANSACTION:
                    return self._transaction(frame.payload)
                case kind if kind == DDL:
                    return decode_ddl(frame.payload)
        except (msgspec.MsgspecError, KeyError) as error:
            raise StoreError(
                f"{self._path}, before byte {frame.end}: a record can't be read: {error}"
            ) from None
        return None

    def _transaction(self, payload: bytes) -> Transaction:
        commit_ts, start_ts, source, position, last, chunk, encoded = _transaction(payload)
        runs = []
        for number, op, data in encoded:
            code = self._layouts[number]
            table = code.table
            changes = [
                RowChange(commit_ts, start_ts, table, op, before, after)
                for before, after in code.decode_all(data)
            ]
            runs.append(Run(commit_ts, start_ts, table, op, changes))
        return Transaction(commit_ts, start_ts, source, Rows(runs), position, last, chunk)
