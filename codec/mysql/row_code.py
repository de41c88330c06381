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
from typing import Any, Final, NamedTuple, TypeAlias

from ...events import RowChange, Table, Ts
from .column_code import NAMES, FormatItem, read_changes_of_json, read_column, read_json_before_changes
from .field import Field, Type, visible
from .values import UNREADABLE

RowsReader: TypeAlias = Callable[[bytes, int, int, Ts, Ts], list[RowChange]]
"""Maps (event, start and end of its row images, commit ts, start ts) to the changes they make."""


class Images(NamedTuple):
    """Which columns, by their numbers, the row images of an event have."""

    before: tuple[int, ...]
    """Columns of the image before an update, or of the only image of an insert or delete."""
    after: tuple[int, ...]
    partial: bool = False
    """True if the image after an update may contain changes of JSON documents instead of whole ones."""


def compile_rows(table: Table, fields: Sequence[Field], op: str, images: Images | None = None) -> RowsReader:
    """Compile a function that reads the row images of an insert, update or delete, one after the other.

    Without `images` they have all columns. A column that isn't in the image after an update has its value
    from before it; any other missing value is None. The function raises one of UNREADABLE for bytes that
    aren't such rows.
    """
    every = tuple(range(len(fields)))
    reader: RowsReader = _Code(fields).compile_rows(table, op, images or Images(every, every))
    return reader


def fixed_reader(field: Field) -> Callable[[bytes], object]:
    """Return a function of the stored bytes of a column that has no length; it raises one of UNREADABLE."""
    reader: Callable[[bytes], object] = _Code([field]).compile_value()
    return reader


def unreadable_column(
    fields: Sequence[Field], data: bytes, offset: int, end: int
) -> tuple[Field, int] | None:
    """Return the first unreadable column in the row images `data[offset:end]`, and where its value starts;
    None if all can be read."""
    readers = [_Code([field]).compile_column() for field in fields]
    bitmap_bytes = (len(fields) + 7) // 8
    while offset < end:
        nulls = int.from_bytes(data[offset : offset + bitmap_bytes], "little")
        offset += bitmap_bytes
        for i, (field, read) in enumerate(zip(fields, readers, strict=True)):
            if nulls >> i & 1:
                if not field.column.nullable:
                    return field, offset
                continue
            start = offset
            try:
                offset = read(data, offset)
            except UNREADABLE:
                return field, start
            if offset > end:
                return field, start
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

    def compile_rows(self, table: Table, op: str, images: Images) -> Any:
        row = f"row = ({''.join(f'v{i}, ' for i in visible(self._fields))})"
        self._names |= {"RowChange": RowChange, "table": table}
        if op != "update" or (images.before == images.after and not images.partial):
            body = [*self._missing(images.before), *self._image(images.before), row, *_CHANGES[op]]
        else:
            body = [*self._update(images, row)]
        return self._compile(
            "def function(data, p, end, commit_ts, start_ts):",
            "    changes = []",
            "    append = changes.append",
            "    before = None",
            "    while p < end:",
            *_indented(2, body),
            "    if p != end or before is not None:",
            "        raise ValueError",
            "    return changes",
        )

    def _update(self, images: Images, row: str) -> Iterator[str]:
        """Read two images of different columns, or with changes of documents in the second."""
        documents = [i for i, field in enumerate(self._fields) if field.type == Type.JSON]
        for i in documents if images.partial else ():
            self._reads[i] = read_json_before_changes(i, self._fields[i])
        yield from self._missing(images.before)
        yield from self._image(images.before)
        yield row
        yield "before = row"
        if images.partial:
            for nth, i in enumerate(documents):
                self._reads[i] = read_changes_of_json(i, self._fields[i], 1 << nth)
            size = (len(documents) + 7) // 8
            yield "partial = data[p]"
            yield "p += 1"
            yield "if partial:"
            yield "    if partial != 1:"
            yield "        raise ValueError"
            yield f"    partial = int.from_bytes(data[p:p + {size}], 'little')"
            yield f"    p += {size}"
        yield from self._image(images.after)
        yield row
        yield from _CHANGES["update"]

    def _missing(self, present: Sequence[int]) -> Iterator[str]:
        for i in visible(self._fields):
            if i not in present:
                yield f"v{i} = None"

    def _image(self, columns: Sequence[int]) -> Iterator[str]:
        """Read an image of these columns: a bit for each that is NULL, then the values."""
        count = len(columns)
        bitmap = (count + 7) // 8
        unused = -1 << count & (1 << bitmap * 8) - 1  # bits without a column are set
        nullable = [self._fields[i].column.nullable for i in columns]
        required = sum(1 << nth for nth, may in enumerate(nullable) if not may)
        first = "data[p]" if bitmap == 1 else f"data[p:p + {bitmap}]"
        no_null = unused if bitmap == 1 else unused.to_bytes(bitmap, "little")
        yield f"if {first} == {no_null!r}:"
        yield from _indented(1, self._straight(columns, skip=bitmap) if columns else [f"p += {bitmap}"])
        yield "else:"
        yield f"    nulls = int.from_bytes(data[p:p + {bitmap}], 'little')"
        yield f"    if nulls & {required}:"
        yield "        raise ValueError"
        yield f"    p += {bitmap}"
        yield from _indented(1, self._asking(columns))

    def compile_column(self) -> Any:
        """Compile a function (data, start) that reads the only column and returns its end."""
        return self._compile("def function(data, p):", *_indented(1, self._straight([0])), "    return p")

    def compile_value(self) -> Any:
        """Compile a function of the bytes of the only column that returns its value."""
        lines = ["p = 0", *self._straight([0]), "return v0"]
        return self._compile("def function(data):", *_indented(1, lines))

    def _compile(self, *lines: str) -> object:
        exec(compile("\n".join(lines), "<row images>", "exec"), self._names)
        return self._names["function"]

    def _straight(self, columns: Sequence[int], skip: int = 0) -> Iterator[str]:
        """Read adjacent columns, none of them NULL, after `skip` bytes."""
        parts: list[FormatItem] = []
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

    def _asking(self, columns: Sequence[int]) -> Iterator[str]:
        """Read a row that has a NULL."""
        for nullable, group in groupby(enumerate(columns), lambda nth: self._fields[nth[1]].column.nullable):
            if not nullable:
                yield from self._straight([i for _, i in group])
                continue
            for nth, i in group:
                yield f"if nulls & {1 << nth}:"
                yield f"    v{i} = None"
                yield "else:"
                yield from _indented(1, self._straight([i]))

    def _unpack(self, parts: Sequence[FormatItem], skip: int) -> Iterator[str]:
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
