"""The rows of a transaction as TiDB writes them to pumps: binlog.PrewriteValue."""

from __future__ import annotations

from typing import Any, Final

from ...codec.proto import binlog
from ...codec.tidb.datum import Flag, decode_datums, encode_datum
from ...codec.tidb.key import decode_record_key
from ...codec.tidb.old_row import join_row
from ...events import Row
from .schema import SqlTable

EXTRA_HANDLE: Final = -1
"""Column id of the handle of a table without a clustered key; only a deleted row has it."""

_VALUE_FLAGS: Final = {
    Flag.BYTES: Flag.COMPACT_BYTES,
    Flag.INT: Flag.VARINT,
    Flag.UINT: Flag.UVARINT,
}
"""Flags of a datum outside of keys, by its flag in a key."""


class Mutations:
    """Rows in the order of their statements, by table. A partitioned table's rows have the table's id."""

    def __init__(self) -> None:
        self._by_table: dict[int, Any] = {}

    def insert(self, table: SqlTable, key: bytes, row: Row) -> None:
        mutation = self._of(table)
        mutation.inserted_rows.append(
            _handle(key) + join_row(table.encoder.datums(table.written(row), whole=False))
        )
        mutation.sequence.append(binlog.MutationType.Insert)

    def update(self, table: SqlTable, before: Row, after: Row) -> None:
        mutation = self._of(table)
        images = [join_row(table.encoder.datums(table.written(row))) for row in (before, after)]
        mutation.updated_rows.append(b"".join(images))
        mutation.sequence.append(binlog.MutationType.Update)

    def delete(self, table: SqlTable, key: bytes, row: Row) -> None:
        mutation = self._of(table)
        datums = table.encoder.datums(table.written(row))
        _, handle = decode_record_key(key)
        if isinstance(handle, int) and not table.info.pk_is_handle:
            datums[EXTRA_HANDLE] = Flag.VARINT, handle
        mutation.deleted_rows.append(join_row(datums))
        mutation.sequence.append(binlog.MutationType.DeleteRow)

    def encode(self, schema_version: int) -> bytes:
        """Return the serialised PrewriteValue."""
        value = binlog.PrewriteValue(schema_version=schema_version, mutations=self._by_table.values())
        data: bytes = value.SerializeToString()
        return data

    def _of(self, table: SqlTable) -> Any:
        table_id = table.info.id
        if table_id not in self._by_table:
            self._by_table[table_id] = binlog.TableMutation(table_id=table_id)
        return self._by_table[table_id]


def _handle(key: bytes) -> bytes:
    """Return the handle of a row's key as datums outside of keys."""
    _, handle = decode_record_key(key)
    if isinstance(handle, int):
        return encode_datum(Flag.VARINT, handle)
    return b"".join(encode_datum(_VALUE_FLAGS.get(flag, flag), bare) for flag, bare in decode_datums(handle))
