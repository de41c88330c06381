"""Statements of PostgreSQL for the rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from ...events import Row, Table
from ..groups import ChangeGroup
from ..net import net_of
from ..statement import ANY, Statement, joined
from . import text as text

STATEMENT_CHARS: Final = 1 << 20
"""Maximum number of characters of a statement, except of one with a single row."""

_BLOCK_ROWS: Final = 1000
"""Rows of a block of lines for COPY."""


class Plan:
    """Renders the statements of one table, at one version of its schema, by generated code.

    Rows of many updates or deletes are a list of VALUES whose first row has NULLs of the columns' types, so
    that the others need no casts; it equals no row. Columns of the list are numbered: c0, c1, …, and b0, b1,
    … of rows before an update.
    """

    def __init__(
        self, table: Table, types: Sequence[str], qualified_name: str, *, whole: bool = False
    ) -> None:
        """`types` are the columns' in the target. With `whole`, updates and deletes compare the whole row."""
        self._table = table
        self._types = types
        self._whole = whole
        self._name = qualified_name
        self._every = range(len(table.columns))
        self._wheres: dict[tuple[int, ...], text.Render] = {}
        self._names = [text.name(column.name) for column in table.columns]
        self._insert = f"INSERT INTO {qualified_name} ({','.join(self._names)}) VALUES "
        self.copy = f"COPY {qualified_name} ({','.join(self._names)}) FROM STDIN (FORMAT csv)"

    @cached_property
    def _lines(self) -> text.Render:
        return text.compile_lines(self._table.columns)

    @cached_property
    def _values(self) -> text.Render:
        return text.compile_values(self._table.columns)

    @cached_property
    def _where(self) -> text.Render:
        key = self._table.key
        compared = dict.fromkeys([*key, *self._every]) if self._whole or not key else key
        return text.compile_where(self._table.columns, compared)

    @cached_property
    def _key(self) -> text.Render:
        return text.compile_list(self._table.columns, self._table.key)

    @cached_property
    def _set_rest(self) -> text.Render:
        return text.compile_set(self._table.columns, self._rest)

    @cached_property
    def _set_all(self) -> text.Render:
        return text.compile_set(self._table.columns, self._every)

    @cached_property
    def _before_and_after(self) -> text.Render:
        """The renderer of two rows as one: "(1,'a',1,'b')"."""
        columns = self._table.columns
        return text.compile_values((*columns, *columns))

    @cached_property
    def _rest(self) -> Sequence[int]:
        """Columns that an update of a row with this key may change; all if it has no others."""
        return [i for i in self._every if i not in self._table.key] or self._every

    def comparison(self, row: Row) -> str:
        """Return the SELECT of the row with this key: each value, and true if it is exactly this row's."""
        (values,) = text.compile_comparison(self._table.columns)([row])
        (where,) = text.compile_where(self._table.columns, self._table.key)([row])
        return f"SELECT {values} FROM {self._name} WHERE {where} FOR UPDATE"

    def statements(self, group: ChangeGroup) -> Iterator[Statement]:
        changes = group.changes
        after = [change.after or () for change in changes]
        before = [change.before or () for change in changes]
        is_many = len(changes) > 1 and bool(self._table.key)
        match group.op:
            case "insert":
                yield from self.inserts(after)
            case "delete" if is_many:
                yield from self._deletes(before)
            case "update" if is_many:
                yield from self._updates(before, after)
            case "delete":
                for where in self._where(before):
                    yield Statement(f"DELETE FROM {self._name} WHERE {self._one(where)}", 1)
            case "update" | "move":
                assign = self._set_rest if self._table.key and group.op == "update" else self._set_all
                for assignment, where in zip(assign(after), self._where(before), strict=True):
                    yield Statement(f"UPDATE {self._name} SET {assignment} WHERE {self._one(where)}", 1)

    def safe_statements(self, group: ChangeGroup, others: Sequence[Sequence[int]]) -> Iterator[Statement]:
        """Yield statements after which the rows are those after the changes, whatever they were before.

        `others` are unique columns besides the key; rows with the values of a new one are deleted.
        """
        key = self._table.key
        where = self._where_of(key or self._every)
        unique = [(other, self._where_of(other)) for other in others]
        has_moved = group.op in ("delete", "move") or (group.op == "update" and not key)
        for change in group.changes:
            if has_moved:
                (old,) = where([change.before or ()])
                yield Statement(f"DELETE FROM {self._name} WHERE {self._one(old)}", ANY)
            if (row := change.after) is None:
                continue
            for other, where_other in unique:
                if all(row[i] is not None for i in other):
                    (same,), (own,) = where_other([row]), where([row])
                    yield Statement(f"DELETE FROM {self._name} WHERE {same} AND NOT ({own})", ANY)
            (values,) = self._values([row])
            yield Statement(f"{self._insert}{values}{self._on_conflict}", ANY)

    def _where_of(self, columns: Sequence[int]) -> text.Render:
        """Return the renderer of a condition on the values of these columns."""
        where = self._wheres.get(tuple(columns))
        if where is None:
            where = self._wheres[tuple(columns)] = text.compile_where(self._table.columns, columns)
        return where

    @cached_property
    def _on_conflict(self) -> str:
        key = ",".join(self._names[i] for i in self._table.key)
        sets = ",".join(f"{self._names[i]}=EXCLUDED.{self._names[i]}" for i in self._rest)
        return f" ON CONFLICT ({key}) DO UPDATE SET {sets}" if key else ""

    def inserts(self, rows: list[Row]) -> Iterator[Statement]:
        yield from joined(self._insert, ",", self._values(rows), "", STATEMENT_CHARS)

    def blocks(self, rows: list[Row]) -> Iterator[str]:
        """Yield the lines of `copy`; a line with a large value comes in pieces."""
        for first in range(0, len(rows), _BLOCK_ROWS):
            block = rows[first : first + _BLOCK_ROWS]
            if self.has_large(block):
                for row in block:
                    yield from text.line_pieces(self._table.columns, row)
            else:
                yield "\n".join([*self._lines(block), ""])

    def has_large(self, rows: list[Row]) -> bool:
        """Return True if a value is so large that its text is better made in pieces."""
        return any(
            (value := row[i]) is not None and len(value) >= text.LARGE for i in self._long for row in rows
        )

    @cached_property
    def _long(self) -> Sequence[int]:
        """Columns that may have large values."""
        return [i for i in self._every if self._table.columns[i].kind in text.LONG]

    def _one(self, where: str) -> str:
        """Return the condition of one row of those that fulfil `where`."""
        if self._table.key:
            return where
        return f"ctid = (SELECT ctid FROM {self._name} WHERE {where} LIMIT 1)"

    def _deletes(self, rows: list[Row]) -> Iterator[Statement]:
        key = self._table.key
        if len(key) == 1 and not self._whole:
            start = f"DELETE FROM {self._name} WHERE {self._names[key[0]]} IN ("
            yield from joined(start, ",", self._key(rows), ")", STATEMENT_CHARS)
            return
        start = f"DELETE FROM {self._name} AS t USING (VALUES {self._nulls(self._types)},"
        end = f") AS v ({self._numbered('c')}) WHERE {self._is_row('c')}"
        yield from joined(start, ",", self._values(rows), end, STATEMENT_CHARS)

    def _updates(self, before: list[Row], after: list[Row]) -> Iterator[Statement]:
        changed = ",".join(f"{self._names[i]}=v.c{i}" for i in self._rest)
        start = f"UPDATE {self._name} AS t SET {changed} FROM (VALUES "
        if self._whole:
            names = f"{self._numbered('b')},{self._numbered('c')}"
            nulls = self._nulls([*self._types, *self._types])
            end = f") AS v ({names}) WHERE {self._is_row('b')}"
            values = self._before_and_after([b + a for b, a in zip(before, after, strict=True)])
        else:
            nulls, values = self._nulls(self._types), self._values(after)
            end = f") AS v ({self._numbered('c')}) WHERE {self._is_row('c')}"
        yield from joined(f"{start}{nulls},", ",", values, end, STATEMENT_CHARS)

    def _is_row(self, letter: str) -> str:
        """Return the condition that t is the row of v, by its key or as a whole."""
        parts = [f"t.{self._names[i]}=v.{letter}{i}" for i in self._table.key]
        if self._whole:
            parts += [
                text.same(column, f"t.{self._names[i]}", f"v.{letter}{i}")
                for i, column in enumerate(self._table.columns)
            ]
        return " AND ".join(parts)

    def _numbered(self, letter: str) -> str:
        return ",".join(f"{letter}{i}" for i in self._every)

    def _nulls(self, types: Sequence[str]) -> str:
        return f"({','.join(f'NULL::{type_}' for type_ in types)})"

    # --- many changes of a table without a key

    def net(self, groups: Sequence[ChangeGroup]) -> tuple[list[Statement], list[Row]]:
        """Return the deletes of the sum of changes, and the rows to insert after them.

        Each delete reads the table twice: its rows are found by a hash of all columns, and of equal rows as
        many are deleted as wanted.
        """
        gone, come = net_of(groups)
        rows = [
            f"({count},{value[1:]}" for count, value in zip(gone.values(), self._values(gone), strict=True)
        ]
        statements = joined(self._find, ",", rows, self._delete_found, STATEMENT_CHARS)
        counts = iter(gone.values())
        deletes = [Statement(one.text, sum(next(counts) for _ in range(one.rows))) for one in statements]
        return deletes, list(come.elements())

    @property
    def _find(self) -> str:
        nulls = f"(0,{self._nulls(self._types)[1:]}"
        return f"WITH v AS MATERIALIZED (SELECT *, row_number() OVER () AS number FROM (VALUES {nulls},"

    @property
    def _delete_found(self) -> str:
        table, columns = self._name, self._table.columns
        theirs = [f"t.{one}" for one in self._names]
        ours = [f"v.c{i}" for i in self._every]
        same = [text.same(c, one, other) for c, one, other in zip(columns, theirs, ours, strict=True)]
        equal = " AND ".join([f"{text.hash_of(columns, theirs)}={text.hash_of(columns, ours)}", *same])
        return (
            f") AS r (wanted,{self._numbered('c')})) DELETE FROM {table} WHERE ctid IN (SELECT place FROM "
            f"(SELECT t.ctid AS place, v.wanted, row_number() OVER (PARTITION BY v.number) AS nth "
            f"FROM {table} AS t JOIN v ON {equal}) AS f WHERE nth <= wanted)"
        )
