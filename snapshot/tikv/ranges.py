"""Ranges of the raw keys of a table's rows."""

from __future__ import annotations

from typing import TypeAlias

from ...codec.tidb.column_type import ColumnFlag
from ...codec.tidb.key import decode_record_key, encode_int, record_prefix, record_span
from ...codec.tidb.table_info import TableInfo, partition_ids
from ...events import OrderedKey

RawRange: TypeAlias = tuple[bytes, bytes]
"""First raw key, and end, exclusive."""


def has_integer_order(info: TableInfo) -> bool:
    """Return True if a table's keys sort as its integer primary key: that of an unsigned one is encoded in
    another order, and partitions are one after the other."""
    wanted = ColumnFlag.PRI_KEY | ColumnFlag.UNSIGNED
    is_unsigned = any(column.flags & wanted == wanted for column in info.columns)
    return info.pk_is_handle and not is_unsigned and not partition_ids(info)


def row_ranges(info: TableInfo) -> list[RawRange]:
    """Return the ranges of all rows: one for each partition."""
    return [record_span(physical_id) for physical_id in partition_ids(info) or (info.id,)]


def range_after(info: TableInfo, key: OrderedKey) -> RawRange:
    """Return the range of the rows above a key; all rows if it is empty. Only with an integer order."""
    start, end = record_span(info.id)
    return (record_prefix(info.id) + encode_int(int(key[0])) + b"\0" if key else start), end


def key_in(raw_key: bytes) -> OrderedKey:
    """Return the key of a row. Only with an integer order."""
    _, handle = decode_record_key(raw_key)
    assert isinstance(handle, int)
    return (handle,)
