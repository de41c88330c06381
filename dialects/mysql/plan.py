"""Statements of MySQL for the rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from ...events import (
    MOMENTS,
    Row,
    Table,
)
from ..groups import ChangeGroup
from ..statement import ANY, Statement, joined
from . import text as text
from .enum import InvalidMembers
from .large import LARGE, LargeValues

_FEWEST_TO_LOAD: Final = 100
"""Least number of rows for which LOAD DATA LOCAL is faster than an INSERT."""


class Plan:
    """Renders the statements of one table, at one version of its schema, by generated code."""

    def __init__(
        self,
        table: Table,
        qualified_name: str,
        *,
        whole: bool = False,
        native_json: bool = False,
        inserted: str = "",
        loads: bool = False,
        large: LargeValues | None = None,
    ) -> None:
        """With `whole`, updates and deletes compare the whole row. `native_json`: see compile_where.

        `inserted` is the template of an inserted value in ON DUPLICATE KEY UPDATE, by which several updates
        share a statement; empty if they can't. With `loads`, many rows are inserted by LOAD DATA LOCAL.
        `large` keeps large values, for which statements have tokens.
        """
        self._large = large or LargeValues()
        self._wide = [i for i, column in enumerate(table.columns) if text.is_wide(column)]
        self.loads = loads
        self._table = table
        self._whole = whole
        self._native_json = native_json
        self._name = qualified_name
        names = ",".join(text.name(column.name) for column in table.columns)
        self._insert = f"INSERT INTO {qualified_name} ({names}) VALUES "
        self._delete = f"DELETE FROM {qualified_name} WHERE "
        sets = [f"{n}={inserted.format(n)}" for n in (text.name(table.columns[i].name) for i in self._rest)]
        alias = "" if "(" in inserted else " AS fresh"
        self._on_duplicate = f"{alias} ON DUPLICATE KEY UPDATE {','.join(sets)}" if inserted else ""

    @cached_property
    def _values(self) -> text.Render:
        return text.compile_values(self._table, self._large.add)

    @cached_property
    def _lines(self) -> text.Render:
        return text.compile_lines(self._table)

    @cached_property
    def _where(self) -> text.Render:
        return text.compile_where(self._table, whole=self._whole, native_json=self._native_json)

    @cached_property
    def _where_key(self) -> text.Render:
        """The renderer of the condition for a row by its key, if it has one."""
        return text.compile_where(self._table, native_json=self._native_json)

    @cached_property
    def _key(self) -> text.Render:
        return text.compile_key(self._table)

    @property
    def _rest(self) -> Sequence[int]:
        """All columns but the key; all columns if nothing else is left.

        A key's temporal columns are included, as a column that is set isn't changed by ON UPDATE, which the
        binlog doesn't show.
        """
        every = range(len(self._table.columns))
        rest = [i for i in every if i not in self._table.key or self._table.columns[i].kind in MOMENTS]
        return rest or every

    @cached_property
    def _set_rest(self) -> text.Render:
        return text.compile_set(self._table, self._rest, self._large.add)

    @cached_property
    def _set_all(self) -> text.Render:
        return text.compile_set(self._table, range(len(self._table.columns)), self._large.add)

    @cached_property
    def _invalid(self) -> InvalidMembers:
        return InvalidMembers(self._table)

    @cached_property
    def _invalid_rest(self) -> InvalidMembers:
        return InvalidMembers(self._table, self._rest)

    def comparison(self, row: Row) -> str:
        """Return the SELECT of the row with this key: each value, and 1 if it is exactly this row's."""
        (values,), (where,) = (
            text.compile_comparison(self._table, native_json=self._native_json)([row]),
            text.compile_where(self._table)([row]),
        )
        return f"SELECT {values} FROM {self._name} WHERE {where} FOR UPDATE"

    def statements(self, group: ChangeGroup, max_chars: int) -> Iterator[Statement]:
        keyed = bool(self._table.key)
        changes = group.changes
        match group.op:
            case "insert":
                rows = [c.after or () for c in changes]
                invalid = self._invalid.count(rows)
                if self.loads and len(rows) >= _FEWEST_TO_LOAD and not (invalid or self._has_large(rows)):
                    yield from self._loads(rows, max_chars)
                    return
                yield from self._joined(self._insert, rows, "", max_chars, invalid)
            case "delete" if keyed and not self._whole and len(changes) > 1:
                start = f"{self._delete}{text.key_columns(self._table)} IN ("
                yield from joined(start, ",", self._key([c.before or () for c in changes]), ")", max_chars)
            case "delete":
                end = "" if keyed else " LIMIT 1"
                for where in self._where([c.before or () for c in changes]):
                    yield Statement(f"{self._delete}{where}{end}", 1)
            case "update" if self._on_duplicate and not self._whole and len(changes) > 1:
                yield from self._updates(group, max_chars)
            case "update" | "move":
                yield from self._single_updates(group)

    def _has_large(self, rows: Sequence[Row]) -> bool:
        return any(len(row[i] or "") >= LARGE for i in self._wide for row in rows)

    def _joined(
        self, start: str, rows: Sequence[Row], end: str, max_chars: int, invalid: Sequence[int] = ()
    ) -> Iterator[Statement]:
        return joined(start, ",", self._values(rows), end, max_chars, invalid, self._large.size)

    def _loads(self, rows: Sequence[Row], max_chars: int) -> Iterator[Statement]:
        load = text.load_lines(self._table, self._name)
        for some in joined("", "", self._lines(rows), "", max_chars):
            yield Statement(load, some.rows, lines=some.text)

    def safe_statements(self, group: ChangeGroup, max_chars: int) -> Iterator[Statement]:
        """Yield statements after which the rows are those after the changes, whatever they were before."""
        keyed = bool(self._table.key)
        if group.op in ("delete", "move") or (group.op == "update" and not keyed):
            end = "" if keyed else " LIMIT 1"
            for where in self._where_key([c.before or () for c in group.changes]):
                yield Statement(f"{self._delete}{where}{end}", ANY)
        if group.op != "delete":
            # REPLACE also deletes rows that have another unique value of the row: they are gone later on.
            start = self._insert.replace("INSERT", "REPLACE", 1) if keyed else self._insert
            rows = [c.after or () for c in group.changes]
            for statement in self._joined(start, rows, "", max_chars, self._invalid.count(rows)):
                yield statement._replace(rows=ANY)

    def _updates(self, group: ChangeGroup, max_chars: int) -> Iterator[Statement]:
        rows = [c.after or () for c in group.changes]
        if self._invalid.count(rows):  # the number of warnings isn't that of the values
            yield from self._single_updates(group)
            return
        done = 0
        for statement in self._joined(self._insert, rows, self._on_duplicate, max_chars):
            if statement.rows > 1:
                yield statement._replace(replaces=True)
            else:  # the server doesn't report the duplicates of a single row
                yield from self._single_updates(ChangeGroup(group.table, "update", [group.changes[done]]))
            done += statement.rows

    def _single_updates(self, group: ChangeGroup) -> Iterator[Statement]:
        keyed = bool(self._table.key)
        is_rest = keyed and group.op == "update"
        assign, invalid = (self._set_rest, self._invalid_rest) if is_rest else (self._set_all, self._invalid)
        rows = [c.after or () for c in group.changes]
        counts = invalid.count(rows) or [0] * len(rows)
        wheres = self._where([c.before or () for c in group.changes])
        end = "" if keyed else " LIMIT 1"
        for assignment, where, count in zip(assign(rows), wheres, counts, strict=True):
            yield Statement(f"UPDATE {self._name} SET {assignment} WHERE {where}{end}", 1, invalid=count)
