"""Statements of MySQL for the rows of one table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ...events import Row, Table
from . import mysql_text as text
from .groups import Group


class Statement(NamedTuple):
    text: str
    rows: int


class Plan:
    """Renders the statements of one table, at one version of its schema, by generated code."""

    def __init__(
        self, table: Table, qualified_name: str, *, whole: bool = False, native_json: bool = False
    ) -> None:
        """With `whole`, updates and deletes compare the whole row. `native_json`: see compile_where."""
        self._table = table
        self._whole = whole
        self._native_json = native_json
        self._name = qualified_name
        names = ",".join(text.name(column.name) for column in table.columns)
        self._insert = f"INSERT INTO {qualified_name} ({names}) VALUES "
        self._delete = f"DELETE FROM {qualified_name} WHERE "

    @cached_property
    def _values(self) -> text.Render:
        return text.compile_values(self._table)

    @cached_property
    def _where(self) -> text.Render:
        return text.compile_where(self._table, whole=self._whole, native_json=self._native_json)

    @cached_property
    def _key(self) -> text.Render:
        return text.compile_key(self._table)

    @cached_property
    def _set_rest(self) -> text.Render:
        """The renderer of SET with all columns but the key; with all columns if nothing else is left.

        A key's temporal columns are set too, as a column that is set isn't changed by ON UPDATE, which the
        binlog doesn't show.
        """
        every = range(len(self._table.columns))
        rest = [
            i
            for i in every
            if i not in self._table.key or self._table.columns[i].kind in ("timestamp", "datetime")
        ]
        return text.compile_set(self._table, rest or every)

    @cached_property
    def _set_all(self) -> text.Render:
        return text.compile_set(self._table, range(len(self._table.columns)))

    def comparison(self, row: Row) -> str:
        """Return the SELECT of the row with this key: each value, and 1 if it is exactly this row's."""
        (values,), (where,) = (
            text.compile_comparison(self._table, native_json=self._native_json)([row]),
            text.compile_where(self._table)([row]),
        )
        return f"SELECT {values} FROM {self._name} WHERE {where} FOR UPDATE"

    def statements(self, group: Group, max_chars: int) -> Iterator[Statement]:
        keyed = bool(self._table.key)
        changes = group.changes
        match group.op:
            case "insert":
                yield from joined(
                    self._insert, ",", self._values([c.after or () for c in changes]), "", max_chars
                )
            case "delete" if keyed and not self._whole and len(changes) > 1:
                start = f"{self._delete}{text.key_columns(self._table)} IN ("
                yield from joined(start, ",", self._key([c.before or () for c in changes]), ")", max_chars)
            case "delete":
                end = "" if keyed else " LIMIT 1"
                for where in self._where([c.before or () for c in changes]):
                    yield Statement(f"{self._delete}{where}{end}", 1)
            case "update" | "move":
                end = "" if keyed else " LIMIT 1"
                assign = self._set_rest if keyed and group.op == "update" else self._set_all
                wheres = self._where([c.before or () for c in changes])
                for assignment, where in zip(assign([c.after or () for c in changes]), wheres, strict=True):
                    yield Statement(f"UPDATE {self._name} SET {assignment} WHERE {where}{end}", 1)


def joined(start: str, comma: str, parts: list[str], end: str, max_chars: int) -> Iterator[Statement]:
    """Yield groups of parts up to the maximum number of characters of a statement; none without parts."""
    if not parts:
        return
    first = size = 0
    for index, part in enumerate(parts):
        if size + len(part) > max_chars and index > first:
            yield Statement(start + comma.join(parts[first:index]) + end, index - first)
            first, size = index, 0
        size += len(part) + 1
    yield Statement(start + comma.join(parts[first:]) + end, len(parts) - first)
