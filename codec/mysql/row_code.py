"""Code generation for reading the row images of one table.

Adjacent columns of fixed width are read by one struct call for those with the low byte first and one for
those with the high byte first; the length of the text or bytes that follows is read with them. A row without
NULL takes a path without checks; any other row checks each nullable column. For eight mixed columns this
reads 750,000 rows/s, compared with 35,000 for a call per column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from struct import Struct as Packing
from struct import calcsize
from typing import Any, Final, TypeAlias

from ...events import RowChange, Table, Ts
from .column_code import NAMES, Part, read_column
from .field import Field
from .values import UNREADABLE

RowsReader: TypeAlias = Callable[[bytes, int, int, Ts, Ts], list[RowChange]]
"""Maps (event, start and end of its row images, commit ts, start ts) to the changes they make."""


def compile_rows(table: Table, fields: Sequence[Field], op: str) -> RowsReader:
    """Compile a function that reads the row images of an insert, update or delete, one after the other.

    The function raises one of UNREADABLE for bytes that aren't such rows.
    """
    reader: RowsReader = _Code(fields).compile_rows(table, op)
    return reader


def unreadable_column(fields: Sequence[Field], data: bytes, at: int, end: int) -> Field | None:
    """Return the first unreadable column in the row images `data[at:end]`; None if all can be read."""
    readers = [_Code([field]).compile_column() for field in fields]
    bitmap_bytes = (len(fields) + 7) // 8
    while at < end:
        nulls = int.from_bytes(data[at : at + bitmap_bytes], "little")
        at += bitmap_bytes
        for i, (field, read) in enumerate(zip(fields, readers, strict=True)):
            if nulls >> i & 1:
                if not field.column.nullable:
                    return field
                continue
            try:
                at = read(data, at)
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
"""The code that handles each `row`."""


class _Code:
    """Writes and compiles functions that read columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._names = dict(NAMES)
        self._reads = [read_column(i, field, self._names) for i, field in enumerate(fields)]

    def compile_rows(self, table: Table, op: str) -> Any:
        count = len(self._fields)
        bitmap = (count + 7) // 8
        unused = -1 << count & (1 << bitmap * 8) - 1  # bits without a column are set
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
        """Compile a function (data, start) that reads the only column and returns its end."""
        return self._compile("def function(data, p):", *_indented(1, self._straight([0])), "    return p")

    def _compile(self, *lines: str) -> Any:
        exec(compile("\n".join(lines), "<row images>", "exec"), self._names)
        return self._names["function"]

    def _straight(self, columns: Sequence[int], skip: int = 0) -> Iterator[str]:
        """Read adjacent columns, none of them NULL, after `skip` bytes."""
        parts: list[Part] = []
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
                yield from _indented(1, self._straight([i]))

    def _unpack(self, parts: Sequence[Part], skip: int) -> Iterator[str]:
        """Read `parts` after `skip` bytes with one struct call per byte order, and advance over them."""
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


def _indented(levels: int, lines: Iterable[str]) -> list[str]:
    return ["    " * levels + line for line in lines]
