"""Decoding of snapshot rows of the text protocol to row changes, and the SELECT for these rows.

Every value equals the one that the binlog's decoder produces for the same row.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from struct import Struct as Packing
from threading import Lock
from typing import Any, Final, TypeAlias

from ...errors import SourceError
from ...events import Column, Kind, RowChange, Table, Ts, not_a_member
from ..native import library
from ..native.mysql_text import TextLayout, text_reader
from .row_code import RowsReader
from .tokens import quoted
from .values import UNREADABLE, text_date, text_datetime, text_time, text_timestamp

SESSION: Final = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = ''"
"""Statement that sets up the session in which the rows must be selected."""


def select_expression(column: Column) -> str:
    """Return the expression to select for `column`'s exact value as text."""
    name = quoted(column.name)
    match column.kind:
        case "float":  # otherwise printed with six digits
            return f"CAST({name} AS DOUBLE)"
        case "bit":  # otherwise bytes
            return f"{name} + 0"
        case "enum" if "" in column.members:  # index 0 is printed as that member otherwise
            return f"IF({name} + 0 = 0, '{not_a_member(column.members)}', {name})"
        case _:
            return name


_HEADER_BYTES: Final = 4
_LONGEST_PAYLOAD: Final = 0xFFFFFF
_NULL: Final = 0xFB
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
_uint32 = Packing("<I").unpack_from

_Convert: TypeAlias = Callable[[bytes], Any]


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode())


_CONVERTERS: Final[dict[Kind, _Convert]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"), int),
    **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json"), bytes.decode),
    **dict.fromkeys(("uuid", "inet4", "inet6"), bytes.decode),
    **dict.fromkeys(("binary", "varbinary", "blob", "geometry", "vector"), bytes),
    **dict.fromkeys(("float", "double"), float),
    "decimal": _decimal,
    "date": text_date,
    "time": text_time,
    "datetime": text_datetime,
    "timestamp": text_timestamp,
}  # fmt: skip


class TextRowsDecoder:
    """Decodes rows selected by `select_expression` of each column of `table`."""

    def __init__(self, table: Table) -> None:
        self.table: Final = table
        self._converters = [_CONVERTERS[column.kind] for column in table.columns]
        self.layout: Final = TextLayout(table) if library.in_use else None
        """The native layout; None if the native decoder isn't in use."""
        self.read = compile_text_rows(table, self._converters)
        if library.in_use:
            self.read = text_reader(table, self._converters, self.read)
        self.lock: Final = Lock()
        """Held to decode a run, which several sinks may ask for at once."""

    def decode(self, packets: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return an insert for each row of `packets`: consecutive row packets with their headers.

        Raises SourceError, naming the table and if possible the column, for bytes that aren't such rows.
        """
        try:
            return self.read(packets, 0, len(packets), commit_ts, start_ts)
        except UNREADABLE:
            found = self._unreadable_column(packets)
            where = "to its end"
            if found is not None:
                column, at = found
                where = f"at column {column.name} ({column.kind}), byte {at} of its chunk"
            raise SourceError(
                f"table {self.table.full_name}: a row of the snapshot can't be read {where}"
            ) from None

    def _unreadable_column(self, data: bytes) -> tuple[Column, int] | None:
        """Return the first column that can't be read, and where its value starts; None if the packets
        themselves are invalid."""
        at, end = 0, len(data)
        while at < end - _HEADER_BYTES:
            at += _HEADER_BYTES
            for column, convert in zip(self.table.columns, self._converters, strict=True):
                start = at
                try:
                    size, at = _length(data, at)
                    if size is not None:
                        convert(data[at : at + size])
                        at += size
                except UNREADABLE:
                    return column, start
                if at > end:
                    return column, start
        return None


def row_starts(packets: bytes) -> array[int]:
    """Return where the packets of each row begin, and where those of the last one end, as int64.

    Raises ValueError if a row is cut off; the values aren't looked at.
    """
    if library.in_use:
        return array("q", library.native.row_starts(packets))
    starts, at, end = array("q", (0,)), 0, len(packets)
    while at < end:
        size = _LONGEST_PAYLOAD
        while size == _LONGEST_PAYLOAD:
            if at + _HEADER_BYTES > end:
                raise ValueError("a header is cut off")
            size = _uint32(packets, at)[0] & _LONGEST_PAYLOAD
            at += _HEADER_BYTES + size
        starts.append(at)
    if at > end:
        raise ValueError("a row is cut off")
    return starts


def compile_text_rows(table: Table, converters: Sequence[_Convert]) -> RowsReader:
    """Compile a function that reads the row packets in a range; it raises one of UNREADABLE."""
    names: dict[str, Any] = {
        "uint32": _uint32,
        "length": _length,
        "unsplit": _unsplit,
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
        f"        if stop - p == {_LONGEST_PAYLOAD}:",
        "            data, stop = unsplit(data, p)",
        "            p, end = 0, len(data)",
    ]
    for i, convert in enumerate(converters):
        names[f"convert{i}"] = convert
        value = "data[p:(p := p + size)]"
        if convert is not bytes:
            value = f"convert{i}({value})"
        lines += [
            "        size = data[p]",
            "        p += 1",
            f"        if size >= {_NULL}:",
            "            size, p = length(data, p - 1)",
            f"        v{i} = None if size is None else {value}",
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
    exec(compile("\n".join(lines), "<text rows>", "exec"), names)
    function: RowsReader = names["function"]
    return function


def _length(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a length-encoded integer and its end; None stands for NULL."""
    first = data[at]
    at += 1
    if first < _NULL:
        return first, at
    if first == _NULL:
        return None, at
    after = at + _LENGTH_BYTES[first]
    return int.from_bytes(data[at:after], "little"), after


def _unsplit(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes from `at` on with the row of more than 16 MiB that starts there joined, and its
    end."""
    pieces = []
    size = _LONGEST_PAYLOAD
    while True:
        pieces.append(data[at : at + size])
        at += size
        if size < _LONGEST_PAYLOAD:
            break
        size = _uint32(data, at)[0] & _LONGEST_PAYLOAD
        at += _HEADER_BYTES
    row = b"".join(pieces)
    return row + data[at:], len(row)
