"""Transactions as events of the binlog."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, Literal

from msgspec import Struct

from ...codec.mysql.collation import collation_id
from ...codec.mysql.entry import Query
from ...events import OrderedKey, Row, TableName
from .log import Event, Kind, Vendor
from .schema import SERVER_CHARSET
from .table import MemoryTable

_MAX_ROWS_BYTES: Final = 8192
"""Size of a rows event after which another one begins: binlog_row_event_max_size."""
_KINDS: Final[dict[Vendor, dict[str, Kind]]] = {
    "MariaDB": {"insert": Kind.WRITE_ROWS, "update": Kind.UPDATE_ROWS, "delete": Kind.DELETE_ROWS},
    "MySQL": {
        "insert": Kind.MYSQL_WRITE_ROWS,
        "update": Kind.MYSQL_UPDATE_ROWS,
        "delete": Kind.MYSQL_DELETE_ROWS,
    },
}
_THREAD: Final = 5
_EXPLICIT_TIMESTAMPS: Final = 1 << 24


class Change(Struct, frozen=True):
    """A change of one row."""

    op: Literal["insert", "update", "delete"]
    name: TableName
    table: MemoryTable
    key: OrderedKey
    """The row's key before the change, or that of a new row."""
    before: Row | None = None
    after: Row | None = None
    new_key: OrderedKey | None = None
    """The key after an update."""

    @property
    def after_key(self) -> OrderedKey:
        return self.key if self.new_key is None else self.new_key


def row_events(changes: Iterable[Change], vendor: Vendor) -> Iterator[Event]:
    """Yield the events of a transaction's rows: for each run of changes of one kind a Table_map, and rows.
    A MySQL begins with BEGIN."""
    if vendor == "MySQL":
        yield Event(Kind.QUERY, struct.pack("<IIBHH", _THREAD, 0, 0, 0, 0) + b"\0BEGIN")
    for (op, _), run in groupby(changes, lambda change: (change.op, change.table.number)):
        rows = [*run]
        table = rows[0].table
        yield Event(Kind.TABLE_MAP, table.image.table_map(table.number))
        bodies = [*_bodies(table, rows)]
        for number, body in enumerate(bodies, 1):
            is_last = number == len(bodies)
            head = table.image.rows_head(
                table.number, updates=op == "update", is_last=is_last, is_extensible=vendor == "MySQL"
            )
            yield Event(_KINDS[vendor][op], head + body)


def _bodies(table: MemoryTable, changes: Iterable[Change]) -> Iterator[bytes]:
    body = b""
    for change in changes:
        if len(body) >= _MAX_ROWS_BYTES:
            yield body
            body = b""
        body += b"".join(table.image.row(row) for row in (change.before, change.after) if row is not None)
    yield body


def statement_event(query: Query, vendor: Vendor) -> Event:
    """Return a statement as the server logs it, with the session's settings."""
    seconds = int(query.epoch_seconds)
    micros = int((query.epoch_seconds - seconds) * 1e6)
    charset = collation_id(SERVER_CHARSET.collation or "")
    is_mariadb = vendor == "MariaDB"
    status = b"\0" + struct.pack("<I", _EXPLICIT_TIMESTAMPS if is_mariadb else 0)
    status += b"\1" + struct.pack("<Q", query.sql_mode)
    status += b"\6\3std"
    status += b"\4" + struct.pack("<3H", charset, charset, charset)
    status += (b"\x80" if is_mariadb else b"\x0d") + micros.to_bytes(3, "little")
    if not is_mariadb:
        status += b"\x10\1"  # explicit_defaults_for_timestamp
    schema = query.schema.encode()
    head = struct.pack("<IIBHH", _THREAD, 0, len(schema), 0, len(status))
    return Event(Kind.QUERY, head + status + schema + b"\0" + query.query.encode())
