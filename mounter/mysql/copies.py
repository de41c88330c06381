"""Effects of ALTER TABLE on copies that lack the generated columns of their source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import NotUnderstood
from ...events import Action, AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table


def without_generated(before: KnownTable, after: KnownTable, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return the effects on the copies of actions on the whole table.

    `before` and `after` are the table without generated columns. Raises NotUnderstood if a column gets
    values that the copies don't have.
    """
    order = _Order(before.complete, actions)
    copied: list[Action] = []
    names: dict[str, str] = {}
    for action in actions:
        match action:
            case AddColumn(column, place):
                place = order.put(column, place)
                if not column.generated:
                    copied.append(replace(action, after=place))
            case ChangeColumn(name, column, Column(generated=was_generated), place):
                place = order.put(column, place) if place is not None else None
                names[name.lower()] = column.name
                if was_generated and not column.generated:
                    raise NotUnderstood(f"generated column {name} becomes an ordinary one")
                if column.generated and not was_generated:
                    copied.append(DropColumn(name))
                elif not column.generated:
                    copied.append(replace(action, after=place))
            case DropColumn(name):
                if not _is_generated(before.complete, name):
                    copied.append(action)
            case ChangeKey():
                pass
            case _:
                raise NotUnderstood(type(action).__name__)
    old = [names.get(name.lower(), name) for name in _key(before.table)]
    new = _key(after.table)
    if [name.lower() for name in old] != [name.lower() for name in new]:
        copied.append(ChangeKey(tuple(new)))
    return tuple(copied)


class _Order:
    """The names of a table's columns, in lower case, and which are in copies, while actions place others."""

    def __init__(self, table: Table, actions: Sequence[Action]) -> None:
        changed: dict[str, Column | None] = {}
        for action in actions:
            match action:
                case ChangeColumn(name, column, _, place):
                    changed[name.lower()] = column if place is None else None
                case DropColumn(name):
                    changed[name.lower()] = None
        columns = [changed.get(column.name.lower(), column) for column in table.columns]
        self._columns = [column for column in columns if column is not None]

    def put(self, column: Column, after: str | None) -> str | None:
        """Place a column as the statement says; return the same place by the columns that are in copies."""
        if after is None:
            self._columns.append(column)
            return None
        names = [one.name.lower() for one in self._columns]
        at = names.index(after.lower()) + 1 if after else 0
        place = next(self._copied(at), "")
        self._columns.insert(at, column)
        return place

    def _copied(self, end: int) -> Iterator[str]:
        """Yield the names of copied columns before number `end`, from there to the first."""
        return (column.name for column in reversed(self._columns[:end]) if not column.generated)


def _is_generated(table: Table, name: str) -> bool:
    return any(column.generated for column in table.columns if column.name.lower() == name.lower())


def _key(table: Table) -> list[str]:
    return [table.columns[i].name for i in table.key]
