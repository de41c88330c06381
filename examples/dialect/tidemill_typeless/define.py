"""Tables: columns without types, and a unique index as the key. Schema changes are transactional."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from tidemill.dialects.conversion import keeps_text
from tidemill.dialects.database import cant_compute, effective
from tidemill.dialects.definer import TransactionalDefiner
from tidemill.dialects.renames import Rename, in_order
from tidemill.dialects.sqlite.types import compile_encode
from tidemill.errors import NotReproducible
from tidemill.events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    Ddl,
    Details,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
)

from .own import TypelessOwnTables
from .session import Session, literal, quoted


class TypelessDefiner(TransactionalDefiner):
    folds_names = True

    def __init__(self, session: Session, own_tables: TypelessOwnTables) -> None:
        super().__init__(session.identity, own_tables)
        self._session = session

    def name_of(self, schema: str, table: str) -> str:
        return self._session.name_of(schema, table)

    def columns(self, table: Table) -> dict[str, str] | None:
        name = self.name_of(table.schema, table.name)
        key = self._session.key(name)
        return {column: " key" if column in key else "" for column in self._session.columns(name)} or None

    def _type(self, column: Column) -> str:
        return ""

    def is_empty(self, table: Table) -> bool:
        return not self._has_row(self._session.table(table))

    def _has_row(self, name: str, where: str = "TRUE") -> bool:
        return bool(self._session.rows(f"SELECT 1 FROM {name} WHERE {where} LIMIT 1"))

    def create_table(self, table: Table, details: Details | None, *, is_shared: bool = False) -> None:
        columns = ", ".join(quoted(column.name) for column in table.columns)
        self._session.execute(f"CREATE TABLE {self._session.table(table)} ({columns})")
        self._index(self.name_of(table.schema, table.name), [table.columns[i].name for i in table.key])

    def _index(self, name: str, key: Sequence[str]) -> None:
        if key:
            columns = ", ".join(map(quoted, key))
            self._session.execute(
                f"CREATE UNIQUE INDEX {quoted(name + ' key')} ON {quoted(name)} ({columns})"
            )

    def _drop_index(self, name: str) -> None:
        for (index,) in self._session.rows("SELECT name FROM pragma_index_list(?) WHERE [unique]", name):
            self._session.execute(f"DROP INDEX {quoted(index)}")

    def drop_table(self, table: Table) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {self._session.table(table)}")

    # --- schema changes

    def _apply(self, ddl: Ddl) -> None:
        name = self.name_of(ddl.schema, ddl.table)
        match ddl.actions[0]:
            case DropTable():
                self._session.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
            case TruncateTable():
                self._session.execute(f"DELETE FROM {quoted(name)}")
            case RenameTables(pairs):
                self._rename([(self.name_of(*old), self.name_of(*new)) for old, new in pairs])
            case _:
                self._change(ddl, name, effective(ddl.actions, self._session.columns(name)))

    def _rename(self, pairs: Sequence[tuple[str, str]]) -> None:
        keys = {new: self._session.key(old) for old, new in pairs}
        for old, _ in pairs:
            self._drop_index(old)  # its name is that of the table
        for old, new in in_order([Rename(*pair, f"tidemill {i}") for i, pair in enumerate(pairs)]):
            self._session.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")
        for name, key in keys.items():
            self._index(name, key)

    def _change(self, ddl: Ddl, name: str, actions: Sequence[Action]) -> None:
        table = quoted(name)
        changes = [action for action in actions if isinstance(action, ChangeColumn)]
        for change in changes:
            self._check(ddl, table, change)
        keys = [action.columns for action in actions if isinstance(action, ChangeKey)]
        drops = [action.name for action in actions if isinstance(action, DropColumn)]
        key = {column.lower() for column in self._session.key(name)}
        if keys:
            self._drop_index(name)
        elif key & {drop.lower() for drop in drops}:
            raise NotReproducible(ddl.full_name, "a column of the key is dropped")
        for drop in drops:
            self._session.execute(f"ALTER TABLE {table} DROP COLUMN {quoted(drop)}")
        renames = [Rename(one.name, one.column.name, f"tidemill {i}") for i, one in enumerate(changes)]
        for old, new in in_order(renames):
            self._session.execute(f"ALTER TABLE {table} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
        for action in actions:
            if isinstance(action, AddColumn):
                if action.expression and self._has_row(table):
                    raise NotReproducible(ddl.full_name, cant_compute(action))
                self._add(ddl, table, action.column)
        if keys:
            self._index(name, keys[-1])

    def _check(self, ddl: Ddl, table: str, change: ChangeColumn) -> None:
        """Raise NotReproducible unless the stored values stay as they are."""
        before, after = change.before, change.column
        if not self._has_row(table):
            return
        if before is None or not keeps_text(before, after):
            raise NotReproducible(ddl.full_name, f"column {change.name}: its values may not stay the same")
        if before.nullable and not after.nullable and self._has_row(table, f"{quoted(change.name)} IS NULL"):
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: the value in place of NULL isn't known"
            )

    def _add(self, ddl: Ddl, table: str, column: Column) -> None:
        try:
            value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
        except NotComputable as error:
            raise NotReproducible(ddl.full_name, str(error)) from None
        ((stored,),) = compile_encode((column,), [0])([(value,)])
        self._session.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(column.name)}")
        self._session.execute(f"UPDATE {table} SET {quoted(column.name)}={literal(stored)}")
