"""Schema changes in DuckDB, as part of the transaction.

A table whose columns or key change is created again with the same rows: ALTER TABLE can't change columns of a
key or before one, nor add one that is NOT NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from ...errors import NotReproducible, SinkError
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
)
from ..conversion import described, keeps_text, keeps_values
from ..database import StatementRejected, cant_compute, effective
from ..renames import Rename, in_order
from .session import DuckDbSession
from .tables import Declared, Tables, quoted
from .types import Encoder, is_text


class SchemaChanges:
    def __init__(self, session: DuckDbSession, tables: Tables) -> None:
        self._session = session
        self._tables = tables

    def apply(self, ddl: Ddl) -> None:
        """Apply any action but CreateTable. Raises NotReproducible; then the transaction must be undone."""
        place = self._tables.place_of((ddl.schema, ddl.table))
        match ddl.actions[0]:
            case DropTable():
                self._session.change(f"DROP TABLE IF EXISTS {self._tables.qualified(place)}")
            case TruncateTable():
                self._session.change(f"DELETE FROM {self._tables.qualified(place)}")
            case RenameTables(pairs):
                self._rename(pairs)
            case _:
                have = self._tables.columns(place)
                if actions := effective(ddl.actions, [column.name for column in have]):
                    self._alter(ddl, place, have, actions)

    def _rename(self, pairs: Sequence[tuple[TableName, TableName]]) -> None:
        places: dict[str, TableName] = {}

        def named(place: TableName) -> str:
            places[qualified := self._tables.qualified(place)] = place
            return qualified

        renames = []
        for number, pair in enumerate(pairs):
            old, new = map(self._tables.place_of, pair)
            renames.append(Rename(named(old), named(new), named((old[0], f"tidemill {number}"))))
        for one, other in in_order(renames):
            self._tables.rename(places[one], places[other])

    # --- columns and keys

    def _alter(self, ddl: Ddl, place: TableName, have: list[Declared], actions: Sequence[Action]) -> None:
        has_row = self._tables.has_row(place)
        by_name = {one.name.lower(): one for one in have}
        columns: dict[str, tuple[Declared, str]] = {
            name: (one, f"t.{quoted(one.name)}") for name, one in by_name.items()
        }
        key = old_key = [name.lower() for name in self._tables.key(place)]
        staged: dict[str, pa.Array] = {}
        names: dict[str, str] = {}  # new ones, by the old
        for action in actions:
            match action:
                case DropColumn(name):
                    del columns[name.lower()]
                case ChangeColumn(name, column):
                    if name.lower() not in by_name:
                        raise SinkError(f"{ddl.full_name}: its copy lacks column {name}: add it by hand")
                    if has_row:
                        self._check(ddl, place, by_name[name.lower()], action)
                    names[name.lower()] = column.name.lower()
                    wanted = self._tables.declared(column)
                    columns[name.lower()] = wanted, f"t.{quoted(by_name[name.lower()].name)}::{wanted.type}"
                case AddColumn(column):
                    if has_row:
                        staged[f"a{len(staged)}"] = self._default(ddl, action)
                    value = f"r.a{len(staged) - 1}" if has_row else "NULL"
                    columns[f"+{column.name.lower()}"] = self._tables.declared(column), value
                case ChangeKey(wanted_key):
                    key = [name.lower() for name in wanted_key]
        if not any(isinstance(action, ChangeKey) for action in actions):
            if not columns.keys() >= set(old_key):
                raise NotReproducible(
                    ddl.full_name, "a column of the primary key is dropped without a new key"
                )
            key = [names.get(name, name) for name in old_key]
        left = list(columns.values())
        by_name = {one.name.lower(): one for one, _ in left}
        left = [
            (one._replace(is_required=one.is_required or one.name.lower() in key), value)
            for one, value in left
        ]
        if [one for one, _ in left] != have or key != old_key:
            own_key = [by_name[name].name for name in key]
            self._tables.replace(place, place, left, own_key, pa.table(staged) if staged else None)

    def _check(self, ddl: Ddl, place: TableName, have: Declared, change: ChangeColumn) -> None:
        """Raise NotReproducible unless the stored values are those of the source after the change, too."""
        before, after, texts = change.before, change.column, self._tables.dates_as_text
        types = f"{'its type' if before is None else described(before)} to {described(after)}"
        if before is None or have.type != self._tables.declared(before).type:
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: it isn't known how it gets from {types}"
            )
        as_text = is_text(before, dates_as_text=texts)
        keeps = keeps_text if as_text else keeps_values
        if not keeps(before, after) or as_text != is_text(after, dates_as_text=texts):
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: its values may not stay the same from {types}"
            )
        is_null = f"{quoted(have.name)} IS NULL"
        if before.nullable and not after.nullable and self._tables.has_row(place, is_null):
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: the value that replaced its NULLs isn't known"
            )

    def _default(self, ddl: Ddl, action: AddColumn) -> pa.Array:
        """Return the value of a new column for the existing rows."""
        if action.expression:
            raise NotReproducible(ddl.full_name, cant_compute(action))
        column = action.column
        try:
            value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
        except NotComputable as error:
            raise NotReproducible(ddl.full_name, str(error)) from None
        try:
            return Encoder((column,), dates_as_text=self._tables.dates_as_text).arrays([(value,)], [0])[0]
        except StatementRejected as error:
            raise SinkError(f"{ddl.full_name}, {error}") from error
