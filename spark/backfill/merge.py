"""Merging a chunk's rows with their later changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ...codec.mysql.result_rows import ResultRowsDecoder
from ...codec.mysql.result_writer import ResultWriter
from ...codec.row_bytes import Images, RowBytes
from ...errors import InvariantViolated
from ...events import KvChange, OrderedKey, Row, RowChange, Table
from ...snapshot.key_bytes import decode_key
from ...snapshot.mysql.packet_keys import PacketKeys
from ...snapshot.overlay import Overlay
from .chunk_file import ChunkWriter
from .errors import NotLoadable
from .plan import TablePlan

MOST_CHANGED: Final = 1_000_000
"""Maximum changed rows of a table whose keys have no order, which are kept in memory."""

Pieces: TypeAlias = Iterable[Iterable[KvChange]]


class MergedChange(Struct, frozen=True, gc=False):
    """A row of the changes file."""

    key: bytes
    change: bytes


def merge(
    source: str, planned: TablePlan, pieces: Pieces, changes: Iterable[MergedChange], out: ChunkWriter
) -> None:
    """Write the chunk's rows with `changes` applied, which are ordered by key and then by time.

    Raises NotLoadable, InvariantViolated and StoreError.
    """
    table = planned.table
    decode = RowBytes(source, table).decode
    if planned.by_key:
        _by_order(table, pieces, _latest(table, changes, decode), out)
    else:
        kind = _ByKey if table.key else _ByRow
        _by_lookup(table, pieces, kind(table, (decode(one.change) for one in changes)), out)


# --- keys with an order: two streams in that order


def _latest(
    table: Table, changes: Iterable[MergedChange], decode: object
) -> Iterator[tuple[OrderedKey, bytes]]:
    """Yield the last change of each key: its row's packets, or none if it was deleted."""
    packets = ResultWriter(table).packets
    last: MergedChange | None = None
    for one in changes:
        if last is not None and last.key != one.key:
            yield _state(last, decode, packets)
        last = one
    if last is not None:
        yield _state(last, decode, packets)


def _state(last: MergedChange, decode: Any, packets: Any) -> tuple[OrderedKey, bytes]:
    _, after, _ = decode(last.change)
    return decode_key(last.key), b"" if after is None else packets(after)


def _by_order(
    table: Table, pieces: Pieces, latest: Iterator[tuple[OrderedKey, bytes]], out: ChunkWriter
) -> None:
    change = next(latest, None)
    keys = PacketKeys(table)
    for piece in pieces:
        for raw in piece:
            packets = raw.value
            last, count = keys.last(packets)
            if change is None or change[0] > last:
                out.add_packets(packets, count)
                continue
            kept, rows = 0, 0  # what is passed on unchanged begins at `kept`
            for key, start, stop in keys.rows(packets):
                while change is not None and change[0] <= key:
                    _pass_on(out, packets[kept:start], rows)
                    kept, rows = start, 0
                    replaces = change[0] == key
                    _pass_on(out, change[1], 1)
                    change = next(latest, None)
                    if replaces:
                        kept = stop
                        break
                rows += kept <= start
            _pass_on(out, packets[kept:], rows)
    while change is not None:
        _pass_on(out, change[1], 1)
        change = next(latest, None)


def _pass_on(out: ChunkWriter, packets: bytes, rows: int) -> None:
    if packets:
        out.add_packets(packets, rows)


# --- other tables: what changed is kept in memory, rows come as the server has them


def _by_lookup(table: Table, pieces: Pieces, changed: _ByKey | _ByRow, out: ChunkWriter) -> None:
    writer = ResultWriter(table)
    decoder = ResultRowsDecoder(table)
    for piece in pieces:
        for raw in piece:
            rows = [change.after for change in decoder.decode(raw.value, 0, 0)]
            kept = [row for row in rows if row is not None and not changed.takes(row)]
            if len(kept) == len(rows):
                _pass_on(out, raw.value, len(rows))
            else:
                _pass_on(out, b"".join([writer.packets(row) for row in kept]), len(kept))
    for row in changed.rest():
        _pass_on(out, writer.packets(row), 1)


def _check(table: Table, count: int) -> None:
    if count > MOST_CHANGED:
        raise NotLoadable(
            f"{table.full_name}: more than {MOST_CHANGED:,} rows changed while it was read, too many for a "
            "table whose keys have no order here: load it by the snapshot of an ordinary feed"
        )


class _ByKey:
    """Rows with a key: the last change of each key counts. Keys are compared as stored, without collation."""

    def __init__(self, table: Table, changes: Iterable[Images]) -> None:
        key = table.key
        self._overlay = Overlay[Row](lambda _: lambda row: tuple([row[index] for index in key]))
        self._key = self._overlay.key(table)
        for before, after, _ in changes:
            self._overlay.add([RowChange(0, 0, table, "update", before, after)])
            _check(table, len(self._overlay))

    def takes(self, row: Row) -> bool:
        """True if the row changed after it was read."""
        return self._key(row) in self._overlay

    def rest(self) -> list[Row]:
        """Return the new versions of the taken rows, and inserted rows."""
        return [change.after for _, change in self._overlay.states() if change.after is not None]


class _ByRow:
    """Rows without a key: equal rows are counted."""

    def __init__(self, table: Table, changes: Iterable[Images]) -> None:
        self._table = table
        self._gone: Counter[Row] = Counter()
        self._new: Counter[Row] = Counter()
        for before, after, _ in changes:
            if before is not None:
                of = self._new if self._new[before] > 0 else self._gone
                of[before] += 1 if of is self._gone else -1
            if after is not None:
                self._new[after] += 1
            _check(table, len(self._gone) + len(self._new))

    def takes(self, row: Row) -> bool:
        if self._gone.get(row, 0) <= 0:
            return False
        self._gone[row] -= 1
        return True

    def rest(self) -> list[Row]:
        if any(count > 0 for count in self._gone.values()):
            raise InvariantViolated(f"{self._table.full_name}: a row was changed that had not been read")
        return list(self._new.elements())
