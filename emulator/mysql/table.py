"""A table in memory: one definition, its rows by key, and how a statement changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import count
from typing import Any, Final, TypeAlias

from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from ...codec.mysql.known_table import KnownTable
from ...events import Action, AddColumn, ChangeColumn, Column, DropColumn, OrderedKey, Row
from .image import TableImage
from .order import server_order
from .values import holder

Key: TypeAlias = Any
"""The primary key's value, a tuple for several columns, or the number of a row of a table without a key."""


class MemoryTable:
    """Rows of one definition. `rows` has each row by its key, in a form that the source compares by."""

    def __init__(self, known: KnownTable, number: int, rows: Mapping[OrderedKey, Row] | None = None) -> None:
        """`number` is the one in Table_map events. Raises ValueError for a definition that can't be held."""
        table = known.table
        _check(known)
        self.known: Final = known
        self.table: Final = table
        self.number: Final = number
        self.image: Final = TableImage(table)
        self.rows: dict[OrderedKey, Row] = {} if rows is None else dict(rows)
        self._holders = [holder(column) for column in table.columns]
        self._places = {column.name.lower(): place for place, column in enumerate(table.columns)}
        self._key_of = _key_function(known)
        increment = known.auto_increment.lower()
        self._increment = self._places[increment] if increment else None
        self._last_number = 0
        """The highest value of the AUTO_INCREMENT column so far."""
        hidden = [] if table.key else [int(key[0]) for key in self.rows]
        self._row_numbers = count(max([0, *hidden]) + 1)

    def filled(self, row: Mapping[str, object] | Sequence[object], now: float) -> Row:
        """Return a new row; columns that a mapping lacks have their defaults. Raises ValueError."""
        columns = self.table.columns
        if not isinstance(row, Mapping):
            if len(row) != len(columns):
                raise ValueError(f"{self.table.name} has {len(columns)} columns, the row has {len(row)}")
            row = {column.name: value for column, value in zip(columns, row, strict=True)}
        given = self._given(row)
        values = [given[i] if i in given else self._default(i, now) for i in range(len(columns))]
        if self._increment is not None and not values[self._increment]:
            values[self._increment] = self._last_number + 1
        made = self._held(values)
        if self._increment is not None:
            self._last_number = max(self._last_number, made[self._increment])
        return made

    def changed(self, row: Row, values: Mapping[str, object], now: float) -> Row:
        """Return a row with other values. Raises ValueError."""
        given = self._given(values)
        made = self._held([given.get(i, value) for i, value in enumerate(row)])
        if made == row:
            return row
        return tuple(
            default_for_existing_rows(_on_update(column), now)
            if column.on_update and i not in given
            else value
            for i, (column, value) in enumerate(zip(self.table.columns, made, strict=True))
        )

    def renamed(self, known: KnownTable, number: int) -> MemoryTable:
        """Return the table under another name."""
        made = MemoryTable(known, number, self.rows)
        made._last_number = self._last_number
        return made

    def new_key(self, row: Row) -> OrderedKey:
        """Return the key of a new row."""
        return self._key_of(row) if self.table.key else (next(self._row_numbers),)

    def key_of(self, row: Row, key: OrderedKey) -> OrderedKey:
        """Return the key of a row that had this one before."""
        return self._key_of(row) if self.table.key else key

    def found_key(self, key: Key) -> OrderedKey:
        """Return the key that a script gives. Raises ValueError for one of another form."""
        if not self.table.key:
            return (key,)
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(self.table.key):
            raise ValueError(f"{self.table.name} has a key of {len(self.table.key)} columns, not {key!r}")
        row: list[object] = [None] * len(self.table.columns)
        for place, part in zip(self.table.key, parts, strict=True):
            row[place] = self._holders[place](part)
        return self._key_of(tuple(row))

    def shown_key(self, row: Row, key: OrderedKey) -> Key:
        """Return a row's key as a script gives it."""
        if not self.table.key:
            return key[0]
        parts = tuple(row[place] for place in self.table.key)
        return parts[0] if len(parts) == 1 else parts

    def altered(self, known: KnownTable, number: int, actions: Sequence[Action], now: float) -> MemoryTable:
        """Return the table after a statement. Raises ValueError if the rows can't be converted."""
        made = MemoryTable(known, number)
        made._last_number = self._last_number
        sources = _sources(self.table.columns, known.table.columns, actions)
        try:
            defaults = [
                default_for_existing_rows(column, now) if place is None else None
                for column, place in zip(known.table.columns, sources, strict=True)
            ]
        except NotComputable as error:
            raise ValueError(str(error)) from None
        for key, row in self.rows.items():
            values = [
                default if place is None else _converted(row[place], self.table.columns[place], column)
                for column, place, default in zip(known.table.columns, sources, defaults, strict=True)
            ]
            after = made._held(values)
            new_key = made._key_of(after) if known.table.key else made.key_of(after, key)
            if new_key in made.rows:
                raise ValueError(f"{known.table.full_name} would have the key of {after!r} twice")
            made.rows[new_key] = after
        return made.renamed(known, number)  # with the next numbers of rows

    def _given(self, values: Mapping[str, object]) -> dict[int, object]:
        try:
            return {self._places[name.lower()]: value for name, value in values.items()}
        except KeyError as unknown:
            names = ", ".join(column.name for column in self.table.columns)
            raise ValueError(
                f"{self.table.full_name} has no column {unknown.args[0]}; it has {names}"
            ) from None

    def _default(self, place: int, now: float) -> object:
        column = self.table.columns[place]
        if place == self._increment:
            return 0
        if column.default is None and not column.nullable:
            raise ValueError(f"column {column.name} of {self.table.name} has no default: give a value")
        try:
            return default_for_existing_rows(column, now)
        except NotComputable as error:
            raise ValueError(str(error)) from None

    def _held(self, values: Sequence[object]) -> Row:
        try:
            return tuple([hold(value) for hold, value in zip(self._holders, values, strict=True)])
        except ValueError as error:
            raise ValueError(f"{self.table.full_name}: {error}") from None


def _check(known: KnownTable) -> None:
    """Raise ValueError for a definition whose effect on rows isn't emulated."""
    table, details = known.table, known.details
    lacking = details.unknown
    if details.references or "FOREIGN KEY" in lacking:
        lacking = "foreign keys"
    elif any(column.generated for column in table.columns):
        lacking = "generated columns"
    elif table.row_end is not None:
        lacking = "system versioning"
    if lacking:
        raise ValueError(f"{table.full_name}: the emulator doesn't have {lacking}")


def _key_function(known: KnownTable) -> Callable[[Row], OrderedKey]:
    """Return the function from a row to its key; by its values, if no order of them is known here."""
    table = known.table
    ordered = server_order(table)
    return ordered or (lambda row: tuple([row[place] for place in table.key]))


def _on_update(column: Column) -> Column:
    """Return a column whose default is its value after an update."""
    return Column(column.name, column.kind, scale=column.scale, default=column.on_update)


def _sources(
    before: Sequence[Column], after: Sequence[Column], actions: Sequence[Action]
) -> list[int | None]:
    """Return the places that the columns had before a statement; None for new ones."""
    places: dict[str, int | None] = {column.name.lower(): place for place, column in enumerate(before)}
    moved: dict[str, int | None] = {}
    for action in actions:
        match action:
            case DropColumn(name):
                places.pop(name.lower(), None)
            case ChangeColumn(name, column):
                moved[column.name.lower()] = places.pop(name.lower())
            case AddColumn(column):
                moved[column.name.lower()] = None
    places |= moved
    return [places[column.name.lower()] for column in after]


def _converted(value: object, before: Column, after: Column) -> object:
    """Return a value for a column's new definition. Raises ValueError if its conversion isn't known here."""
    if before.kind == after.kind or value is None:
        return value
    if after.kind in ("char", "varchar", "text") and isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if after.kind in ("datetime", "timestamp") and type(value) is date:
        return datetime.combine(value, time())
    return value
