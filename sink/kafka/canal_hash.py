"""Canal's hash of rows, by which it chooses partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC
from operator import xor
from struct import Struct
from typing import Final

from ...errors import SinkError
from ...events import Row, Table
from ..encoding.canal_columns import texts_of
from .canal_names import HashBy

_UNIT: Final = Struct("<H")
_BITS: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


def java_hash(text: str) -> int:
    """Return Java's String.hashCode(): 32 bits, with a sign."""
    code = 0
    data = text.encode("utf-16-le", "surrogatepass")
    for (unit,) in _UNIT.iter_unpack(data):
        code = code * 31 + unit & _BITS
    return (code ^ _SIGN) - _SIGN


def partition_of(code: int, count: int) -> int:
    """Return Math.abs(Math.abs(code) % count), where abs of the least int is that number itself."""
    return abs(code) % count


def table_partition(table: str, count: int) -> int:
    """Return the partition of a table's name, without its schema."""
    return partition_of(java_hash(table), count)


def row_partitions(
    table: Table, by: HashBy, count: int, *, database_hash: bool
) -> Callable[[Iterable[Row]], list[int]]:
    """Return the function from rows to their partitions.

    The hash is the exclusive or of the values' hashes as texts, NULL being the empty one, and of that of the
    schema's name with `database_hash`. Raises SinkError for a column that the table lacks.
    """
    first = java_hash(table.schema) if database_hash else 0
    indexes = _indexes(table, by.columns) if by.columns else table.key
    writers = [texts_of("partition_hash", table, table.columns[index], UTC) for index in indexes]

    def partitions(rows: Iterable[Row]) -> list[int]:
        listed = list(rows)
        codes = [first] * len(listed)
        for index, texts in zip(indexes, writers, strict=True):
            values = [row[index] for row in listed]
            codes = list(map(xor, codes, map(_hash, values, texts(values))))
        return [partition_of(code, count) for code in codes]

    return partitions


def _hash(value: object, text: bytes) -> int:
    return 0 if value is None else java_hash(text.decode())


def _indexes(table: Table, columns: tuple[str, ...]) -> list[int]:
    """Return the indexes of columns, in any case of letters; a column that is named twice is hashed once."""
    names = [column.name.lower() for column in table.columns]
    for name in columns:
        if name.lower() not in names:
            raise SinkError(
                f"table {table.full_name} has no column {name!r} of partition_hash; it has: "
                f"{', '.join(column.name for column in table.columns)}",
                table.full_name,
            )
    return sorted({names.index(name.lower()) for name in columns})
