"""Rows events of the binlog to row changes."""

from __future__ import annotations

from struct import Struct as Packing
from typing import Final

from ...errors import SourceError
from ...events import RowChange, Ts
from .row_code import compile_images, unreadable_column
from .table_map import TableMap
from .values import UNREADABLE

WRITE: Final = (23, 30)
UPDATE: Final = (24, 31)
DELETE: Final = (25, 32)
"""Event types, as MariaDB and MySQL up to 5.5 write them and as MySQL does since 5.6."""

_POST_HEADER_ENDS: Final = 27
_CHECKSUM_BYTES: Final = 4
_event_bytes = Packing("<9xI").unpack_from
_extra_bytes = Packing(f"<{_POST_HEADER_ENDS}xH").unpack_from


class RowsDecoder:
    """Decodes the rows events that follow one Table_map."""

    def __init__(self, table_map: TableMap) -> None:
        self._table = table_map.table
        self._fields = table_map.fields
        self._images = compile_images(table_map.fields)
        count = len(table_map.fields)
        self._bitmap_bytes = (count + 7) // 8
        # What follows the post-header of an event whose images hold every column: how many there are
        # and a bit for each, twice for an update. MariaDB leaves the bits that have no column unset.
        width = bytes((count,)) if count < 251 else b"\xfc" + count.to_bytes(2, "little")
        self._width = width
        bitmap = ((1 << count) - 1).to_bytes(self._bitmap_bytes, "little")
        self._heads = dict.fromkeys(WRITE + DELETE, width + bitmap)
        self._heads |= dict.fromkeys(UPDATE, width + bitmap + bitmap)

    def decode(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """The changes of one rows event, its header included and its checksum not, in order.

        Raises SourceError, naming the table and where possible the column, for an event that isn't
        whole, whose images lack columns or whose bytes are no values.
        """
        start = self._images_start(event)
        try:
            rows, end = self._images(event, start, len(event))
        except UNREADABLE:
            raise self._unreadable(event, start) from None
        if end != len(event):
            raise self._unreadable(event, start)
        table, kind = self._table, event[4]
        if kind in WRITE:
            return [RowChange(commit_ts, start_ts, table, "insert", None, row) for row in rows]
        if kind in DELETE:
            return [RowChange(commit_ts, start_ts, table, "delete", row, None) for row in rows]
        if len(rows) % 2:
            raise self._unreadable(event, start)
        images = iter(rows)
        return [
            RowChange(commit_ts, start_ts, table, "update", before, after)
            for before, after in zip(images, images, strict=True)
        ]

    def _images_start(self, event: bytes) -> int:
        try:
            kind = event[4]
            head = self._heads.get(kind)
            if head is None:
                raise SourceError(f"{self._name}: an event of type {kind} is no rows event")
            start = _POST_HEADER_ENDS
            if kind >= WRITE[1]:
                start += _extra_bytes(event)[0]
            if _event_bytes(event)[0] - len(event) not in (0, _CHECKSUM_BYTES):
                raise IndexError
        except UNREADABLE:
            raise SourceError(f"{self._name}: a rows event isn't whole") from None
        if not event.startswith(head, start):
            self._check_head(event, start)
        return start + len(head)

    def _check_head(self, event: bytes, start: int) -> None:
        """Accept a head that differs from the expected one only in bits that have no column."""
        if not event.startswith(self._width, start):
            raise SourceError(f"{self._name}: a rows event hasn't as many columns as its Table_map")
        at = start + len(self._width)
        for _ in range(2 if event[4] in UPDATE else 1):
            present = int.from_bytes(event[at : at + self._bitmap_bytes], "little")
            for i, field in enumerate(self._fields):
                if not present >> i & 1:
                    raise SourceError(
                        f"{self._name}: the binlog holds rows without column {field.column.name}: "
                        "the source must run with binlog_row_image=FULL"
                    )
            at += self._bitmap_bytes

    def _unreadable(self, event: bytes, start: int) -> SourceError:
        field = unreadable_column(self._fields, event, start, len(event))
        where = f"column {field.column.name} ({field.column.kind})" if field else "the end"
        return SourceError(f"{self._name}: a row of the binlog can't be read at {where}")

    @property
    def _name(self) -> str:
        return f"table {self._table.full_name}"
