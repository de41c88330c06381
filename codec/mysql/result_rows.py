"""Rows of a table that a server sends as a result, in the binary protocol, and the SELECT for them.

Every value equals the one that the binlog's decoder produces for the same row. Source: the MySQL
client/server protocol, "Binary Protocol Resultset Row".
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from struct import Struct as Packing
from threading import Lock
from typing import Any, Final, TypeAlias, assert_never

from ...errors import SourceError
from ...events import (
    FLOATS,
    Column,
    Kind,
    RowChange,
    Table,
    Ts,
    not_a_member,
)
from ..native import library
from .field import Type
from .native_result import ResultLayout, result_reader
from .row_code import RowsReader
from .tokens import quoted
from .values import UNREADABLE, sent_date, sent_datetime, sent_time, sent_timestamp

SESSION: Final = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"
"""Statement that sets up the session in which the rows must be selected."""

HEADER_BYTES: Final = 4
LONGEST_PAYLOAD: Final = 0xFFFFFF
"""Length of a packet whose row goes on in the next one."""
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
_uint32 = Packing("<I").unpack_from

_Convert: TypeAlias = Callable[[bytes], Any]
_NUMBERS: Final[dict[Kind, tuple[Type, str]]] = {
    "tinyint": (Type.TINY, "b"),
    "smallint": (Type.SHORT, "h"),
    "mediumint": (Type.INT24, "i"),
    "int": (Type.LONG, "i"),
    "bigint": (Type.LONGLONG, "q"),
    "year": (Type.YEAR, "h"),
    "float": (Type.FLOAT, "f"),
    "double": (Type.DOUBLE, "d"),
}
"""Kinds whose values have a fixed number of bytes: their type in a result, and struct's format if signed."""
_TYPES: Final[dict[Kind, Type]] = {
    **{kind: type_ for kind, (type_, _) in _NUMBERS.items()},
    "date": Type.DATE,
    "time": Type.TIME,
    "datetime": Type.DATETIME,
    "timestamp": Type.TIMESTAMP,
}
"""Type in a result of each kind whose values aren't stored as text or bytes."""
_OTHER_FORMS: Final = frozenset(_TYPES.values())


def select_expression(column: Column) -> str:
    """Return the expression to select for `column`'s value."""
    name = quoted(column.name)
    if column.kind == "enum" and "" in column.members:  # index 0 is printed as that member otherwise
        return f"IF({name} + 0 = 0, '{not_a_member(column.members)}', {name})"
    return name


def result_type(column: Column) -> Type:
    """Return the type by which a result's values of a column are read; of those with a length, any."""
    return _TYPES.get(column.kind, Type.VAR_STRING)


def check_types(table: Table, types: Sequence[int]) -> None:
    """Raise SourceError if a result's columns have other types than its rows are read by."""
    if len(types) != len(table.columns):
        raise SourceError(f"table {table.full_name}: {len(types)} columns came, not {len(table.columns)}")
    for column, type_ in zip(table.columns, types, strict=True):
        wanted = _TYPES.get(column.kind)
        is_fit = type_ not in _OTHER_FORMS if wanted is None else type_ == wanted
        if not is_fit:
            raise SourceError(
                f"table {table.full_name}: column {column.name} ({column.kind}) came as type {type_} of the "
                "protocol, by which its values can't be read"
            )


def number_format(column: Column) -> Packing | None:
    """Return how a value of a fixed number of bytes is stored; None for values with a length before them."""
    if column.kind not in _NUMBERS:
        return None
    code = _NUMBERS[column.kind][1]
    is_unsigned = column.unsigned and column.kind not in FLOATS
    return Packing(f"<{code.upper() if is_unsigned else code}")


def bitmap_bytes(columns: int) -> int:
    """Return the size of the NULL bits of a row, of which the first two aren't used."""
    return (columns + 2 + 7) // 8


def converter(column: Column) -> _Convert | None:
    """Return the function of the bytes of a value that has its length before it; None for other values."""
    match column.kind:
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6":
            return bytes.decode
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return bytes
        case "decimal":
            return _decimal
        case "bit":
            return _bits
        case "date":
            return sent_date
        case "time":
            return sent_time
        case "datetime":
            return partial(sent_datetime, scale=column.scale)
        case "timestamp":
            return partial(sent_timestamp, scale=column.scale)
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "year":
            return None
        case _:
            assert_never(column.kind)


def _decimal(digits: bytes) -> Decimal:
    return Decimal(digits.decode())


def _bits(data: bytes) -> int:
    if len(data) > 8:
        raise ValueError
    return int.from_bytes(data, "big")


class ResultRowsDecoder:
    """Decodes rows selected by `select_expression` of each column of `table`."""

    def __init__(self, table: Table) -> None:
        self.table: Final = table
        converters = [converter(column) for column in table.columns]
        self.layout: Final = ResultLayout(table) if library.in_use else None
        """The native layout; None if the native decoder isn't in use."""
        self.read = compile_rows(table, converters)
        if library.in_use:
            self.read = result_reader(table, converters, self.read)
        self.lock: Final = Lock()
        """Held to decode a run, which several sinks may ask for at once."""

    def decode(self, packets: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return an insert for each row of `packets`: consecutive row packets with their headers.

        Raises SourceError, naming the table and if possible the column, for bytes that aren't such rows.
        """
        try:
            return self.read(packets, 0, len(packets), commit_ts, start_ts)
        except UNREADABLE:
            unreadable = self._unreadable_column(packets)
            where = "to its end"
            if unreadable is not None:
                column, offset = unreadable
                where = f"at column {column.name} ({column.kind}), byte {offset} of its chunk"
            raise SourceError(
                f"table {self.table.full_name}: a row of the snapshot can't be read {where}"
            ) from None

    def _unreadable_column(self, data: bytes) -> tuple[Column, int] | None:
        """Return the first column that can't be read, and where its value starts; None if the packets
        themselves are invalid."""
        offset, end = 0, len(data)
        readers = [_value_reader(column) for column in self.table.columns]
        bits = bitmap_bytes(len(readers))
        while offset < end - HEADER_BYTES and not data[offset + HEADER_BYTES]:
            offset += HEADER_BYTES + 1
            nulls = int.from_bytes(data[offset : offset + bits], "little") >> 2
            offset += bits
            for number, (column, read) in enumerate(zip(self.table.columns, readers, strict=True)):
                start = offset
                if nulls >> number & 1:
                    continue
                try:
                    offset = read(data, offset)
                except UNREADABLE:
                    return column, start
                if offset > end:
                    return column, start
        return None


def _value_reader(column: Column) -> Callable[[bytes, int], int]:
    """Return a function that reads the value at a place and returns its end."""
    packing, convert = number_format(column), converter(column)
    if packing is not None:
        return lambda _, offset: offset + packing.size

    def read(data: bytes, offset: int) -> int:
        assert convert is not None
        size, offset = counted(data, offset)
        convert(data[offset : offset + size])
        return offset + size

    return read


def row_starts(packets: bytes) -> array[int]:
    """Return where the packets of each row begin, and where those of the last one end, as int64.

    Raises ValueError if a row is cut off; the values aren't looked at.
    """
    if library.in_use:
        return array("q", library.native.row_starts(packets))
    starts, offset, end = array("q", (0,)), 0, len(packets)
    while offset < end:
        offset = end_of_row(packets, offset)
        starts.append(offset)
    if offset > end:
        raise ValueError("a row is cut off")
    return starts


def end_of_row(packets: bytes, offset: int) -> int:
    """Return the end of the packets of a row. Raises ValueError if a header is cut off."""
    size = LONGEST_PAYLOAD
    while size == LONGEST_PAYLOAD:
        if offset + HEADER_BYTES > len(packets):
            raise ValueError("a header is cut off")
        size = _uint32(packets, offset)[0] & LONGEST_PAYLOAD
        offset += HEADER_BYTES + size
    return offset


def compile_rows(table: Table, converters: Sequence[_Convert | None]) -> RowsReader:
    """Compile a function that reads the row packets in a range; it raises one of UNREADABLE."""
    bits = bitmap_bytes(len(table.columns))
    names: dict[str, Any] = {
        "uint32": _uint32,
        "bits": int.from_bytes,
        "counted": counted,
        "unsplit": unsplit,
        "RowChange": RowChange,
        "table": table,
    }
    lines = [
        "def function(data, p, end, commit_ts, start_ts):",
        "    changes = []",
        "    append = changes.append",
        "    while p < end:",
        "        stop = (uint32(data, p)[0] & 0xFFFFFF) + p + 4",
        "        p += 4",
        f"        if stop - p == {LONGEST_PAYLOAD}:",
        "            data, stop = unsplit(data, p)",
        "            p, end = 0, len(data)",
        "        if data[p]:",
        "            raise ValueError",
        f"        nulls = bits(data[p + 1:p + {1 + bits}], 'little')",
        f"        p += {1 + bits}",
    ]
    for i, (column, convert) in enumerate(zip(table.columns, converters, strict=True)):
        lines += [f"        if nulls & {1 << (i + 2)}:", f"            v{i} = None", "        else:"]
        packing = number_format(column)
        if packing is not None:
            names[f"unpack{i}"] = packing.unpack_from
            lines += [f"            v{i}, = unpack{i}(data, p)", f"            p += {packing.size}"]
            continue
        names[f"convert{i}"] = convert
        value = "data[p:(p := p + size)]"
        if convert is not bytes:
            value = f"convert{i}({value})"
        lines += [
            "            size = data[p]",
            "            p += 1",
            "            if size >= 251:",
            "                size, p = counted(data, p - 1)",
            f"            v{i} = {value}",
        ]
    values = "".join(f"v{i}, " for i in range(len(converters)))
    lines += [
        "        if p != stop:",
        "            raise ValueError",
        f"        append(RowChange(commit_ts, start_ts, table, 'insert', None, ({values})))",
        "    if p != end:",
        "        raise ValueError",
        "    return changes",
    ]
    exec(compile("\n".join(lines), "<result rows>", "exec"), names)
    function: RowsReader = names["function"]
    return function


def counted(data: bytes, offset: int) -> tuple[int, int]:
    """Return the length of the value at a place, and where the value begins. Raises one of UNREADABLE."""
    first = data[offset]
    offset += 1
    if first < 0xFB:
        return first, offset
    after = offset + _LENGTH_BYTES[first]
    return int.from_bytes(data[offset:after], "little"), after


def unsplit(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return the bytes from `offset` on with the row of more than 16 MiB that starts there joined, and its
    end. `offset` is after the first packet's header."""
    pieces = []
    size = LONGEST_PAYLOAD
    while True:
        pieces.append(data[offset : offset + size])
        offset += size
        if size < LONGEST_PAYLOAD:
            break
        size = _uint32(data, offset)[0] & LONGEST_PAYLOAD
        offset += HEADER_BYTES
    row = b"".join(pieces)
    return row + data[offset:], len(row)
