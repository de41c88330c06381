"""Generated code that reads the row images of one table.

Columns of fixed width next to each other are read by one struct call for those with the low byte first
and one for those with the high byte first; the length of the text or bytes that follows is read along.
A row without NULL takes a straight path; any other row asks for each column that may be NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from itertools import groupby
from struct import Struct as Packing
from struct import calcsize
from typing import Any, Final, NamedTuple, TypeAlias

from ...events import RowChange, Table, Ts
from .charset import text_decoder
from .field import Field, Type
from .values import (
    EPOCH,
    UNREADABLE,
    old_datetime,
    old_time,
    packed_time,
    printed_date,
    printed_datetime,
    set_printer,
)

RowsReader: TypeAlias = Callable[[bytes, int, int, Ts, Ts], list[RowChange]]
"""(event, where its row images start and end, commit ts, start ts) to the changes they make."""


def compile_rows(table: Table, fields: Sequence[Field], op: str) -> RowsReader:
    """A function that reads the row images of an insert, update or delete, one after the other.

    It raises one of UNREADABLE for bytes that aren't such rows.
    """
    reader: RowsReader = _Code(fields).compile_rows(table, op)
    return reader


def unreadable_column(fields: Sequence[Field], data: bytes, at: int, end: int) -> Field | None:
    """The first column in the row images `data[at:end]` that can't be read; None if all of them can."""
    ends = [_Code([field]).compile_column() for field in fields]
    bitmap_bytes = (len(fields) + 7) // 8
    while at < end:
        nulls = int.from_bytes(data[at : at + bitmap_bytes], "little")
        at += bitmap_bytes
        for i, field in enumerate(fields):
            if nulls >> i & 1:
                if not field.column.nullable:
                    return field
                continue
            try:
                at = ends[i](data, at)
            except UNREADABLE:
                return field
            if at > end:
                return field
    return None


_CHANGES: Final = {
    "insert": ['append(RowChange(commit_ts, start_ts, table, "insert", None, row))'],
    "delete": ['append(RowChange(commit_ts, start_ts, table, "delete", row, None))'],
    "update": [
        "if before is None:",
        "    before = row",
        "else:",
        '    append(RowChange(commit_ts, start_ts, table, "update", before, row))',
        "    before = None",
    ],
}
"""What becomes of each `row`."""


class _Part(NamedTuple):
    """Bytes that one item of a struct format reads."""

    order: str
    """"<" low byte first, ">" high byte first."""
    letter: str
    variable: str


class _Read(NamedTuple):
    """How to read a column: a struct's parts, then code that makes `v<i>` of their variables."""

    parts: list[_Part]
    lines: list[str]
    counted: bool = False
    """The parts are only a length; the code takes that many bytes from `p` on."""


_UINT_LETTERS: Final = {
    "<": {1: "B", 2: "H", 3: "HB", 4: "I", 8: "Q"},
    ">": {1: "B", 2: "H", 3: "BH", 4: "I", 5: "BI", 6: "HI", 7: "BHI", 8: "Q"},
}

_INTEGERS: Final[dict[int, str]] = {
    Type.TINY: "bB",
    Type.SHORT: "hH",
    Type.LONG: "iI",
    Type.LONGLONG: "qQ",
}
"""Signed and unsigned letter."""

_WORD_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that a decimal takes for 0 to 9 digits."""

_FRACTION_BYTES: Final = (0, 1, 1, 2, 2, 3, 3)
"""Bytes of 0 to 6 digits of a second."""

_ROOMY: Final = Context(prec=65)


class _Code:
    """Writes and compiles functions for `fields`; a column's value is in the variable `v<i>`."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._names: dict[str, Any] = {
            "date": date,
            "datetime": datetime,
            "timedelta": timedelta,
            "Decimal": Decimal,
            "scaled": _ROOMY.scaleb,
            "EPOCH": EPOCH,
            "old_datetime": old_datetime,
            "old_time": old_time,
            "packed_time": packed_time,
            "printed_date": printed_date,
            "printed_datetime": printed_datetime,
        }
        self._reads = [self._read(i, field) for i, field in enumerate(fields)]

    # --- functions -------------------------------------------------------------------------------

    def compile_rows(self, table: Table, op: str) -> Any:
        count = len(self._fields)
        bitmap = (count + 7) // 8
        unused = -1 << count & (1 << bitmap * 8) - 1  # bits that have no column are set
        required = sum(1 << i for i, field in enumerate(self._fields) if not field.column.nullable)
        first = "data[p]" if bitmap == 1 else f"data[p:p + {bitmap}]"
        no_null = unused if bitmap == 1 else unused.to_bytes(bitmap, "little")
        self._names |= {"RowChange": RowChange, "table": table}
        return self._compile(
            "def function(data, p, end, commit_ts, start_ts):",
            "    changes = []",
            "    append = changes.append",
            "    before = None",
            "    while p < end:",
            f"        if {first} == {no_null!r}:",
            *_indented(3, self._straight(range(count), skip=bitmap)),
            "        else:",
            f"            nulls = int.from_bytes(data[p:p + {bitmap}], 'little')",
            f"            if nulls & {required}:",
            "                raise ValueError",
            f"            p += {bitmap}",
            *_indented(3, self._asking()),
            f"        row = ({''.join(f'v{i}, ' for i in range(count))})",
            *_indented(2, _CHANGES[op]),
            "    if p != end or before is not None:",
            "        raise ValueError",
            "    return changes",
        )

    def compile_column(self) -> Any:
        """A function (data, start) that reads the only column and returns where it ends."""
        return self._compile("def function(data, p):", *_indented(1, self._straight((0,))), "    return p")

    def _compile(self, *lines: str) -> Any:
        exec(compile("\n".join(lines), "<row images>", "exec"), self._names)
        return self._names["function"]

    def _asking(self) -> Iterator[str]:
        """Read a row that has a NULL."""
        for nullable, group in groupby(range(len(self._fields)), lambda i: self._fields[i].column.nullable):
            if not nullable:
                yield from self._straight(list(group))
                continue
            for i in group:
                yield f"if nulls & {1 << i}:"
                yield f"    v{i} = None"
                yield "else:"
                yield from _indented(1, self._straight((i,)))

    def _straight(self, columns: Sequence[int], skip: int = 0) -> Iterator[str]:
        """Read neighbouring columns, none of them NULL, after `skip` bytes."""
        parts: list[_Part] = []
        lines: list[str] = []
        for i in columns:
            read = self._reads[i]
            parts += read.parts
            lines += read.lines
            if read.counted:
                yield from self._unpack(parts, skip)
                yield from lines
                parts, lines, skip = [], [], 0
        if parts:
            yield from self._unpack(parts, skip)
            yield from lines

    def _unpack(self, parts: Sequence[_Part], skip: int) -> Iterator[str]:
        """Read `parts` after `skip` bytes, a struct call for each byte order, and step over them all."""
        sizes = [calcsize(f"<{part.letter}") for part in parts]
        orders = [part.order for part, size in zip(parts, sizes, strict=True) if size > 1] or ["<"]
        for order in dict.fromkeys(orders):
            letters, variables = [f"{skip}x"], []
            for part, size in zip(parts, sizes, strict=True):
                if (part.order if size > 1 else orders[0]) == order:
                    letters.append(part.letter)
                    variables.append(part.variable)
                else:
                    letters.append(f"{size}x")
            unpack = f"unpack{len(self._names)}"
            self._names[unpack] = Packing(order + "".join(letters)).unpack_from
            yield f"{', '.join(variables)}, = {unpack}(data, p)"
        yield f"p += {skip + sum(sizes)}"

    # --- columns ---------------------------------------------------------------------------------

    def _read(self, i: int, field: Field) -> _Read:
        column, v = field.column, f"v{i}"
        match field.type:
            case Type.TINY | Type.SHORT | Type.LONG | Type.LONGLONG:
                return _Read([_Part("<", _INTEGERS[field.type][column.unsigned], v)], [])
            case Type.INT24:
                low, high = _Part("<", "H", f"a{i}"), _Part("<", "bB"[column.unsigned], f"b{i}")
                return _Read([low, high], [f"{v} = a{i} + (b{i} << 16)"])
            case Type.FLOAT:
                return _Read([_Part("<", "f", v)], [])
            case Type.DOUBLE:
                return _Read([_Part("<", "d", v)], [])
            case Type.NEWDECIMAL:
                return _decimal(i, column.length, column.scale)
            case Type.BIT:
                parts, number = _uint(">", (column.length + 7) // 8, f"a{i}")
                return _Read(parts, [f"{v} = {number}"])
            case Type.YEAR:
                return _Read([_Part("<", "B", f"a{i}")], [f"{v} = a{i} and 1900 + a{i}"])
            case Type.DATE | Type.NEWDATE:
                return _date(i)
            case Type.TIME2:
                return _time(i, column.scale)
            case Type.DATETIME2:
                return _datetime(i, column.scale)
            case Type.TIMESTAMP2:
                return _timestamp(i, ">", column.scale)
            case Type.TIME:
                low, high = _Part("<", "H", f"a{i}"), _Part("<", "b", f"b{i}")
                return _Read([low, high], [f"{v} = old_time(a{i} + (b{i} << 16))"])
            case Type.DATETIME:
                return _Read([_Part("<", "Q", f"a{i}")], [f"{v} = old_datetime(a{i})"])
            case Type.TIMESTAMP:
                return _timestamp(i, "<", 0)
            case Type.ENUM:
                self._names[f"members{i}"] = ("", *column.members)  # 0: a value that wasn't a member
                parts, number = _uint("<", field.size, f"a{i}")
                return _Read(parts, [f"{v} = members{i}[{number}]"])
            case Type.SET:
                self._names[f"printed{i}"] = set_printer(column.members)
                parts, number = _uint("<", field.size, f"a{i}")
                return _Read(parts, [f"{v} = printed{i}({number})"])
            case Type.BLOB:
                return self._counted(i, field, field.size)
            case _:
                return self._counted(i, field, 1 if field.size < 256 else 2)

    def _counted(self, i: int, field: Field, length_bytes: int) -> _Read:
        """Text or bytes after their length."""
        parts, number = _uint("<", length_bytes, f"n{i}")
        piece = f"data[p:(p := p + ({number}))]"
        match field.column.kind:
            case "binary":  # without its zeros at the end
                piece += f".ljust({field.size}, b'\\0')"
            case "char" | "varchar" | "text":
                if field.column.charset in ("utf8mb4", "utf8mb3"):
                    piece += ".decode()"
                else:
                    self._names[f"decode{i}"] = text_decoder(field.column.charset or "")
                    piece = f"decode{i}({piece})"
        return _Read(parts, [f"v{i} = {piece}"], counted=True)


def _uint(order: str, size: int, name: str) -> tuple[list[_Part], str]:
    """The parts of an unsigned integer of `size` bytes, and the expression that puts them together."""
    letters = _UINT_LETTERS[order][size]
    parts = [_Part(order, letter, f"{name}_{k}") for k, letter in enumerate(letters)]
    terms = []
    shift = 0
    for part in parts if order == "<" else reversed(parts):
        terms.append(f"{part.variable} << {shift}" if shift else part.variable)
        shift += 8 * calcsize(f"<{part.letter}")
    return parts, " | ".join(terms)


def _decimal(i: int, digits: int, scale: int) -> _Read:
    """Words of nine digits to both sides of the point, a shorter one first and last; the first bit is the
    sign, inverted, and a negative number has all other bits inverted as well.

    A word holds w, or M - w for a negative number with M all ones, so the number is the sum of
    word * weight minus one of two constants.
    """
    whole = digits - scale
    words = [d for d in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9) if d]
    parts: list[_Part] = []
    terms = []
    ones = 0  # the number if all bits were ones
    for k, word_digits in enumerate(words):
        size, weight = _WORD_BYTES[word_digits], 10 ** sum(words[k + 1 :])
        word, number = _uint(">", size, f"a{i}_{k}")
        parts += word
        terms.append(f"({number}) * {weight}")
        ones += ((1 << 8 * size) - 1) * weight
    first = parts[0]
    sign = 1 << 8 * calcsize(f"<{first.letter}") - 1
    top = (1 << 8 * _WORD_BYTES[words[0]] - 1) * 10 ** sum(words[1:])  # what the sign bit adds
    number = f"{' + '.join(terms)} - ({top} if {first.variable} >= {sign} else {ones - top})"
    return _Read(parts, [f"v{i} = scaled({number}, {-scale})" if scale else f"v{i} = Decimal({number})"])


def _date(i: int) -> _Read:
    """15 bits of year, 4 of month, 5 of day, the low byte first."""
    year, month, day = f"b{i} << 7 | a{i} >> 9", f"a{i} >> 5 & 15", f"a{i} & 31"
    return _Read(
        [_Part("<", "H", f"a{i}"), _Part("<", "B", f"b{i}")],
        [
            "try:",
            f"    v{i} = date({year}, {month}, {day})",
            "except ValueError:",
            f"    v{i} = printed_date({year}, {month}, {day})",
        ],
    )


def _fraction(i: int, scale: int) -> tuple[list[_Part], str]:
    """The parts of a second's fraction, and its microseconds."""
    if not scale:
        return [], "0"
    parts, number = _uint(">", _FRACTION_BYTES[scale], f"u{i}")
    unit = (0, 10_000, 100, 1)[_FRACTION_BYTES[scale]]
    return parts, f"({number}) * {unit}" if unit > 1 else number


def _time(i: int, scale: int) -> _Read:
    """One number, moved up by half its range; the fraction's bits are its lowest."""
    fraction_bytes = _FRACTION_BYTES[scale]
    parts, number = _uint(">", 3 + fraction_bytes, f"a{i}")
    half = 1 << 8 * (3 + fraction_bytes) - 1
    unit = (1, 10_000, 100, 1)[fraction_bytes]
    return _Read(parts, [f"v{i} = packed_time(({number}) - {half}, {8 * fraction_bytes}, {unit})"])


def _datetime(i: int, scale: int) -> _Read:
    """A set bit, 17 bits of year * 13 + month, 5 of day, 5 of hour, 6 of minute, 6 of second."""
    parts, micros = _fraction(i, scale)
    fields = f"m{i} // 13, m{i} % 13, b{i} >> 17 & 31, b{i} >> 12 & 31, b{i} >> 6 & 63, b{i} & 63, {micros}"
    return _Read(
        [_Part(">", "B", f"a{i}"), _Part(">", "I", f"b{i}"), *parts],
        [
            f"m{i} = (a{i} << 10 | b{i} >> 22) - {1 << 17}",
            "try:",
            f"    v{i} = datetime({fields})",
            "except ValueError:",
            f"    v{i} = printed_datetime({fields}, {scale})",
        ],
    )


def _timestamp(i: int, order: str, scale: int) -> _Read:
    """Seconds since 1970; 0 stands for the zero date."""
    parts, micros = _fraction(i, scale)
    zero = printed_datetime(0, 0, 0, 0, 0, 0, 0, scale)
    return _Read(
        [_Part(order, "I", f"a{i}"), *parts],
        [f"v{i} = EPOCH + timedelta(0, a{i}, {micros}) if a{i} else {zero!r}"],
    )


def _indented(levels: int, lines: Iterable[str]) -> list[str]:
    return ["    " * levels + line for line in lines]
