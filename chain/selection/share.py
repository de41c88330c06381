"""A sink's share of the rows, where each row is in one of several sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from ...errors import SinkError
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Ddl,
    DropColumn,
    Row,
    Table,
    exact_form,
)
from .where import Test


class Share:
    """A condition that is true for the rows of one sink's share.

    The choice is a BLAKE2b of the values of the table's primary key, or of other columns: independent of the
    CRC-32 by which a Kafka sink chooses partitions. Values are taken exactly, not as a collation compares
    them, so the choice doesn't depend on the collations that are known here.
    """

    def __init__(self, number: int, count: int, columns: tuple[str, ...] = ()) -> None:
        """Choose share `number` of `count`, from 0; by the primary key if there are no `columns`."""
        by = ", ".join(columns).lower() or "the primary key"
        self.text: Final = f"share {number} of {count} by {by}"
        self.columns = frozenset(name.lower() for name in columns)
        self._number: Final = number
        self._count: Final = count
        self._columns: Final = columns
        self._keys: Final[dict[tuple[str, str], frozenset[str]]] = {}
        """Columns of the primary keys of tables that have had rows."""

    @property
    def is_by_key(self) -> bool:
        return not self._columns

    def changes(self, ddl: Ddl, columns: Sequence[str]) -> bool:
        """Return True if a schema change may give rows another primary key, if it gives these columns other
        values."""
        if any(isinstance(action, ChangeKey) for action in ddl.actions):
            return True
        key = self._keys.get((ddl.schema, ddl.table))
        if key is None:  # no rows since the start
            key = _candidates(ddl.actions)
        for action in ddl.actions:
            if isinstance(action, ChangeColumn) and action.name.lower() in key:
                key |= {action.column.name.lower()}
        return not key.isdisjoint(columns)

    def problem(self, table: Table) -> str:
        """Return why rows of the table can't be shared; empty if they can."""
        if not (self._columns or table.key):
            return "no primary key: name the columns that decide in split_by, or exclude the table"
        names = {column.name.lower(): column for column in table.columns}
        for name in self._names(table):
            if (column := names.get(name.lower())) is None:
                return f"no column {name!r} of split_by; it has: {', '.join(names)}"
            if exact_form(column) is None:
                return f"column {column.name}, a {column.kind}, can't be hashed: name others in split_by"
        return ""

    def _names(self, table: Table) -> tuple[str, ...]:
        return self._columns or tuple(table.columns[place].name for place in table.key)

    def test(self, table: Table) -> Test:
        if problem := self.problem(table):
            raise SinkError(f"table {table.origin_name} can't be divided among several urls: {problem}")
        places = [column.name.lower() for column in table.columns]
        wanted = [places.index(name.lower()) for name in self._names(table)]
        if not self._columns:
            self._keys[table.schema, table.name] = frozenset(places[place] for place in wanted)
        parts = [(place, _form(table, place)) for place in wanted]
        number, count = self._number, self._count

        def test(row: Row) -> bool:
            text = "\0".join(["" if (one := row[place]) is None else str(form(one)) for place, form in parts])
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            return int.from_bytes(digest) % count == number

        return test


def _candidates(actions: Sequence[Action]) -> frozenset[str]:
    """Return columns that may be in the key: those that couldn't be NULL, and those that are replaced."""
    dropped = {action.name.lower() for action in actions if isinstance(action, DropColumn)}
    names = set()
    for action in actions:
        match action:
            case ChangeColumn(before=before, column=column) if not (before and before.nullable):
                names.add(column.name.lower())
            case AddColumn(column) if column.name.lower() in dropped:
                names.add(column.name.lower())
    return frozenset(names)


def _form(table: Table, place: int) -> Callable[[object], object]:
    form = exact_form(table.columns[place])
    assert form is not None
    return form
