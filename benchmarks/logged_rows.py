"""Rows of the benchmarks' table as a MariaDB logs them, undecoded."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from ..codec.mysql.layout import Layouts
from ..emulator.mysql.packed import datetime_bytes, decimal_bytes
from ..events import Row, Run, Ts
from ..testing.binlog_events import (
    INSERT,
    INT,
    TINY,
    UTF8MB4_BIN,
    ColumnSpec,
    decimal,
    rows_event,
    table_map,
)
from .sink import TABLE

_COLUMNS = (
    INT,
    ColumnSpec(8),  # BIGINT
    decimal(12, 2),
    ColumnSpec(5, b"\10"),  # DOUBLE
    ColumnSpec(15, (240).to_bytes(2, "little"), collation=UTF8MB4_BIN),  # VARCHAR(60)
    ColumnSpec(18, b"\0"),  # DATETIME
    TINY,
    ColumnSpec(252, b"\2", collation=UTF8MB4_BIN),  # TEXT
)
_LAYOUTS = Layouts()
_LAYOUT = _LAYOUTS.layout(_LAYOUTS.number_of(table_map(*_COLUMNS, table=(TABLE.schema, TABLE.name))))


def inserts(rows: Sequence[Row], ts: Ts) -> Run:
    """Return inserts of rows of sink.TABLE."""
    return _LAYOUT.block().add(rows_event(INSERT, [_stored(row) for row in rows]), ts, ts)


def _stored(row: Row) -> list[bytes]:
    id_, big, price, ratio, name, at, flag, note = row
    return [
        pack("<i", id_),
        pack("<Q", big),
        decimal_bytes(price, 12, 2),
        pack("<d", ratio),
        bytes((len(name),)) + name.encode(),
        datetime_bytes(at, 0),
        pack("<b", flag),
        len(note).to_bytes(2, "little") + note.encode(),
    ]
