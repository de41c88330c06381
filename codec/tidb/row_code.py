"""Code generation for reading the rows of one layout as tuples of their columns.

Most rows of a table have the same head: the same columns with a value, none NULL. A function made for that
head knows each column's place, reads the ends of all of them by one struct call, and continues while the head
stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct as Packing
from struct import error as StructError  # noqa: N812
from typing import Any, TypeAlias

from ...events import Row
from .cell_code import NAMES, Cell, cell_code, handle_code
from .columns import Columns
from .field import Field
from .layout import ValueLayout

Pair: TypeAlias = tuple[bytes, bytes]
"""A row's key and value."""

RowsReader: TypeAlias = Callable[[Iterable[Pair], Callable[[Row], None]], Pair | None]
"""Maps (rows, receiver of each row) to the first row with another head; None after the last."""


def compile_rows(columns: Columns, layout: ValueLayout, check: Callable[[bytes, bytes], None]) -> RowsReader:
    """Compile a function that reads rows of `layout`; it calls `check` with the key and value of a row with
    checksums.

    The function raises one of UNREADABLE for bytes that aren't such rows.
    """
    reader: RowsReader = _Code(columns, layout, check).compile()
    return reader


class _Code:
    def __init__(self, columns: Columns, layout: ValueLayout, check: Callable[[bytes, bytes], None]) -> None:
        self._columns = columns
        self._layout = layout
        self._names = {**NAMES, "check": check, "key_values": columns.key_values}
        self._names["StructError"] = StructError

    def compile(self) -> Any:
        layout, count = self._layout, len(self._layout.ids)
        self._names["HEAD"] = layout.head
        packing = Packing(f"<{len(layout.head)}s{count}{'I' if layout.big else 'H'}")
        self._names["begin"] = packing.unpack_from
        lines = [
            "def function(rows, take):",
            "    for key, value in rows:",
            "        try:",
            f"            head, {''.join(f'e{j}, ' for j in range(count))} = begin(value)",
            "        except StructError:",  # a shorter head
            "            return key, value",
            "        if head != HEAD:",
            "            return key, value",
            f"        data = value[{layout.data}:]",
            *(f"        {line}" for line in [*self._end(count), *self._values()]),
            f"        take(({''.join(f'v{i}, ' for i in range(len(self._columns.visible)))}))",
            "    return None",
        ]
        exec(compile("\n".join(lines), "<rows>", "exec"), self._names)
        return self._names["function"]

    def _end(self, count: int) -> Iterator[str]:
        if self._layout.checksum:
            yield "check(key, value)"
        else:
            yield f"if len(data) != {f'e{count - 1}' if count else '0'}:"
            yield "    raise ValueError('the row is cut off, or bytes follow it')"

    def _values(self) -> Iterator[str]:
        places = {id_: j for j, id_ in enumerate(self._layout.ids)}
        absent = [f for f in self._columns.visible if f.column.id not in places]
        if any(self._is_in_common_handle(field) for field in absent):
            yield "handle = key_values(key)"
        for i, field in enumerate(self._columns.visible):
            if (j := places.get(field.column.id)) is not None:
                cell = Cell(i, field, f"e{j - 1}" if j else "0", f"e{j}")
                yield from cell_code(cell, self._names)
            else:
                yield from self._absent(i, field)

    def _is_in_common_handle(self, field: Field) -> bool:
        id_, nulls = field.column.id, self._layout.nulls
        return id_ in self._columns.common_handle and id_ not in nulls

    def _absent(self, i: int, field: Field) -> Iterator[str]:
        id_ = field.column.id
        if id_ == self._columns.handle:
            yield from handle_code(i, field)
        elif self._is_in_common_handle(field):
            self._names[f"read{i}"] = field.read
            yield f"v{i} = read{i}(handle[{id_}])"
        else:
            self._names[f"default{i}"] = None if id_ in self._layout.nulls else field.default()
            yield f"v{i} = default{i}"
