"""Encoding of a table's rows from tuples of their columns to TiDB's keys and values."""

from __future__ import annotations

from typing import Any, Literal

from ...events import (
    TEXTS,
    Row,
)
from .checksum import checksum_of
from .column_type import key_keeps_text
from .columns import columns_of, primary_index
from .datum import Bare, Flag, encode_datum
from .field import Field
from .key import record_key
from .layout import build_row
from .old_row import join_row
from .sort_key import prefix_of, sort_key
from .storage import BYTES
from .table_info import ColumnInfo, TableInfo


class RowEncoder:
    """Writes rows of one version of a table; format 2 may carry a checksum.

    Values are those of RowDecoder, or their text; a virtual generated column has none.
    """

    def __init__(
        self,
        schema: str,
        info: TableInfo,
        *,
        row_format: Literal[1, 2] = 2,
        checksum: bool = False,
        new_collations: bool = True,
    ) -> None:
        """`new_collations` is the cluster's new_collations_enabled_on_first_bootstrap: without them a
        clustered key contains each text unchanged."""
        self._new_collations = new_collations
        self._info = info
        self._columns = columns_of(schema, info)
        self._fields = self._columns.visible
        self._format = row_format
        self._has_checksum = checksum and row_format == 2

    def encode(
        self, row: Row, handle: int | bytes | None = None, table_id: int | None = None
    ) -> tuple[bytes, bytes]:
        """Return the key and value of a row with its columns in the order of RowDecoder's table.

        `handle` is needed for a table without a clustered key, and for keys of collations that need a
        table of weights; `table_id` for a partition. Raises ValueError or TypeError for a value that its
        column can't have.
        """
        bare = self._bare(row)
        key = record_key(
            self._info.id if table_id is None else table_id, self.handle(bare) if handle is None else handle
        )
        return key, self._value(bare)

    def _bare(self, row: Row) -> dict[int, object]:
        return {
            field.column.id: None if value is None else _written(field, value)
            for field, value in zip(self._fields, row, strict=True)
        }

    def handle(self, bare: dict[int, Any]) -> int | bytes:
        """Return the handle of a row's bare values by column id. Raises ValueError if they aren't
        sufficient."""
        columns = self._columns
        if columns.handle is not None:
            number: int = bare[columns.handle]
            return number - (1 << 64) if number >= 1 << 63 else number
        index = primary_index(self._info)
        if index is None or not columns.common_handle:
            raise ValueError(f"{columns.full_name} has no clustered key: a row needs a handle")
        fields = {field.column.id: field for field in self._fields}
        return b"".join(
            self._key_datum(fields[id_], bare[id_], part.length)
            for id_, part in zip(columns.common_handle, index.columns, strict=True)
        )

    def datums(self, row: Row, *, whole: bool = True) -> dict[int, tuple[Flag, Bare]]:
        """Return the datums of a row of format 1 by column id; without `whole`, only those that a stored row
        has.

        Raises ValueError or TypeError for a value that its column can't have.
        """
        bare = self._bare(row)
        return {
            field.column.id: _datum(field, bare[field.column.id])
            for field in self._fields
            if whole or not self._can_skip(field, bare[field.column.id])
        }

    def _value(self, bare: dict[int, object]) -> bytes:
        stored = [field for field in self._fields if not self._can_skip(field, bare[field.column.id])]
        if self._format == 1:
            return join_row({field.column.id: _datum(field, bare[field.column.id]) for field in stored})
        cells = {
            field.column.id: field.storage.encode(bare[field.column.id])
            for field in stored
            if bare[field.column.id] is not None
        }
        nulls = [field.column.id for field in stored if bare[field.column.id] is None]
        checksums = (checksum_of(self._columns, bare),) if self._has_checksum else ()
        return build_row(cells, nulls, checksums)

    def _can_skip(self, field: Field, value: object) -> bool:
        """True if a row omits the column: its key contains it, or its absence means NULL."""
        column = field.column
        if column.id == self._columns.handle:
            return True
        if column.id in self._columns.common_handle:
            return column.id not in self._columns.prefixes and self._keeps_text(column)
        has_default = (column.default, column.default_bit, column.origin_default, column.origin_default_bit)
        return value is None and has_default == (None, None, None, None)

    def _keeps_text(self, column: ColumnInfo) -> bool:
        return not self._new_collations or key_keeps_text(column)

    def _key_datum(self, field: Field, bare: Any, length: int) -> bytes:
        if bare is None:
            raise ValueError(f"column {field.column.name} of the key can't be NULL")
        if field.storage is BYTES:
            bare = prefix_of(bare, length, is_text=field.kind in TEXTS)
            if self._new_collations:
                bare = sort_key(field.column, bare)
        return encode_datum(field.storage.key_flag, bare)


def _written(field: Field, value: object) -> object:
    try:
        return field.write(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"column {field.column.name} can't be {value!r}: {error}") from error


def _datum(field: Field, bare: Any) -> tuple[Flag, Bare]:
    return (Flag.NULL, None) if bare is None else (field.storage.row_flag, bare)
