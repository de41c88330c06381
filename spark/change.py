"""The exact bytes of a change: what a sink needs of a row or a schema change, as MessagePack.

A row's bytes have no column names; a separate layout describes how to decode them. The layout has the
source's identity and the table, compressed: about 150 bytes for a table of eight columns, encoded once for
all its rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from ..codec.mysql.layout import Layout
from ..codec.mysql.run import EventRun
from ..errors import SinkError, SourceError
from ..events import Action, AddColumn, Chunk, CreateTable, Ddl, DropColumn, Op, Row, Table, Ts

NO_LAYOUT: Final = b""
"""The layout of a schema change, whose bytes are complete without one."""

Images: TypeAlias = tuple[Row | None, Row | None, Chunk | None]
"""The row before, the row after, and the chunk if it is part of a snapshot."""

_MAX_LAYOUTS: Final = 1000
_DATES: Final = {"date", "datetime", "timestamp"}
_TYPES: Final[dict[str, Any]] = {
    "decimal": Decimal,
    "float": float,
    "double": float,
    "date": date | tuple[str],
    "datetime": datetime | tuple[str],
    "timestamp": datetime | tuple[str],
    "time": timedelta,
    **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json", "uuid", "inet4", "inet6"), str),
    **dict.fromkeys(("binary", "varbinary", "blob", "geometry", "vector"), bytes),
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"), int),
}
"""Types of decoded values. A date that Python has no value for is encoded as a tuple of its text."""

_ACTIONS: Final[dict[str, type[Action]]] = {one.__name__: one for one in (CreateTable, AddColumn, DropColumn)}
_encode = msgspec.msgpack.Encoder().encode


class RowBytes:
    """Encodes and decodes rows of one table of one source."""

    def __init__(self, source: str, table: Table) -> None:
        self.source = source
        self.table = table
        self.layout = zlib.compress(_encode((source, table)), 9)
        self._dates = [i for i, column in enumerate(table.columns) if column.kind in _DATES]
        row = tuple.__class_getitem__(tuple(_TYPES[column.kind] | None for column in table.columns))
        shape = tuple.__class_getitem__((row | None, row | None, Chunk | None))
        self._decode: Callable[[bytes], Images] = msgspec.msgpack.Decoder(shape).decode

    def encode(self, before: Row | None, after: Row | None, chunk: Chunk | None) -> bytes:
        if self._dates:
            before, after = self._wrapped(before), self._wrapped(after)
        return _encode((before, after, chunk))

    def decode(self, change: bytes) -> Images:
        before, after, chunk = self._decode(change)
        if self._dates:
            before, after = self._unwrapped(before), self._unwrapped(after)
        return before, after, chunk

    def _wrapped(self, row: Row | None) -> Row | None:
        if row is None or not any(type(row[i]) is str for i in self._dates):
            return row
        return tuple([(v,) if i in self._dates and type(v) is str else v for i, v in enumerate(row)])

    def _unwrapped(self, row: Row | None) -> Row | None:
        if row is None or not any(type(row[i]) is tuple for i in self._dates):
            return row
        return tuple([v[0] if type(v) is tuple else v for v in row])


class EventBytes:
    """Decodes rows of one table of one source from the bytes of its binlog.

    A change has its row images, two in sequence for an update. The layout has the source's identity and the
    table's Table_map, compressed.
    """

    def __init__(self, source: str, payload: bytes) -> None:
        self.source = source
        self.rows = Layout(payload)
        self.table = self.rows.table
        self.layout = zlib.compress(_encode((source, payload)), 9)

    def run(self, changes: Sequence[bytes], op: Op, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """Return changes of one operation as a run. Raises SinkError if the bytes aren't one change each."""
        run = self.rows.images_run(b"".join(changes), op, commit_ts, start_ts)
        try:
            found = len(run)
        except SourceError as error:
            raise SinkError(f"the column change isn't as it was read: {error}") from None
        if found != len(changes):
            raise SinkError(
                f"the column change holds {found} rows of {self.table.full_name} in {len(changes)}"
            )
        return run


class Layouts:
    """Cache of row codecs: by table for encoding, by the layout's bytes for decoding."""

    def __init__(self) -> None:
        self._by_table: dict[tuple[str, Table], RowBytes] = {}
        self._by_layout: dict[bytes, RowBytes | EventBytes] = {}
        self._by_event: dict[tuple[str, bytes], EventBytes] = {}

    def of_event(self, source: str, payload: bytes) -> EventBytes:
        """Return the codec of a Table_map's payload."""
        key = source, payload
        found = self._by_event.get(key)
        if found is None:
            if len(self._by_event) >= _MAX_LAYOUTS:
                self._by_event.clear()
            found = self._by_event[key] = EventBytes(source, payload)
        return found

    def of(self, source: str, table: Table) -> RowBytes:
        key = source, table
        found = self._by_table.get(key)
        if found is None:
            if len(self._by_table) >= _MAX_LAYOUTS:
                self._by_table.clear()
            found = self._by_table[key] = RowBytes(source, table)
        return found

    def read(self, layout: bytes) -> RowBytes | EventBytes:
        """Return the codec of a layout. Raises SinkError if the bytes aren't a layout."""
        found = self._by_layout.get(layout)
        if found is None:
            if len(self._by_layout) >= _MAX_LAYOUTS:
                self._by_layout.clear()
            try:
                source, table = msgspec.msgpack.decode(
                    zlib.decompress(layout), type=tuple[str, Table | bytes]
                )
                found = RowBytes(source, table) if isinstance(table, Table) else EventBytes(source, table)
            except (zlib.error, msgspec.MsgspecError, SourceError) as error:
                raise SinkError(f"the column layout holds what tidemill didn't write: {error}") from None
            self._by_layout[layout] = found
        return found


def encode_ddl(ddl: Ddl) -> bytes:
    actions = [(type(action).__name__, action) for action in ddl.actions]
    return _encode(structs.asdict(ddl) | {"actions": actions})


def decode_ddl(change: bytes) -> Ddl:
    fields = msgspec.msgpack.decode(change)
    actions = [msgspec.convert(action, _ACTIONS[name]) for name, action in fields["actions"]]
    return Ddl(**fields | {"actions": tuple(actions)})
