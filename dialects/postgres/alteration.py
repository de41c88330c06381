"""Changes of a table's columns and key in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows, needs_clock
from ...errors import NotReproducible, SinkError
from ...events import WITH_DATE, Action, AddColumn, ChangeColumn, ChangeKey, Column, Ddl, DropColumn
from ..conversion import described, keeps_text, keeps_values
from ..database import cant_compute
from ..renames import Rename, in_order
from .refusals import reason_of_refusal
from .session import PostgresSession
from .tables import Tables, TargetColumn
from .text import literal, name


class Alteration:
    """One statement of the source about one table; `have` has its columns here by name in lower case."""

    def __init__(
        self, session: PostgresSession, tables: Tables, ddl: Ddl, have: Mapping[str, TargetColumn]
    ) -> None:
        self._session = session
        self._tables = tables
        self._ddl = ddl
        self._have = have
        self._own = ddl.schema, ddl.table
        self._table = tables.qualified(self._own)

    def apply(self, actions: Sequence[Action]) -> None:
        """Raises NotReproducible; then the transaction must be undone."""
        changes = [action for action in actions if isinstance(action, ChangeColumn)]
        drops = [action.name for action in actions if isinstance(action, DropColumn)]
        keys = [action.columns for action in actions if isinstance(action, ChangeKey)]
        for change in changes:
            if change.name.lower() not in self._have:
                raise SinkError(f"{self._ddl.full_name}: its copy lacks column {change.name}: add it by hand")
        self._session.execute(f"LOCK TABLE {self._table} IN ACCESS EXCLUSIVE MODE")
        has_row = self._tables.has_row(self._own)
        if has_row:
            for change in changes:
                self._check(change)
        if not keys and any(drop.lower() in self._have and self._have[drop.lower()].is_key for drop in drops):
            raise NotReproducible(self._ddl.full_name, "PostgreSQL can drop no column of a primary key")
        if keys:
            for constraint in {column.constraint for column in self._have.values()} - {""}:
                self._alter(f"DROP CONSTRAINT {name(constraint)}")
        for drop in drops:
            self._alter(f"DROP COLUMN {self._named(drop)}")
        self._rename(changes)
        for change in changes:
            self._redefine(change, has_row=has_row)
        for action in actions:
            if isinstance(action, AddColumn):
                if action.expression and has_row:
                    raise NotReproducible(self._ddl.full_name, cant_compute(action))
                self._add(action.column, has_row=has_row)
        if keys and keys[-1]:
            self._alter(f"ADD PRIMARY KEY ({', '.join(map(self._spelled(actions), keys[-1]))})")

    def _alter(self, clause: str) -> None:
        self._session.execute(f"ALTER TABLE {self._table} {clause}")

    def _named(self, column: str) -> str:
        """Return a column's quoted name here: the source doesn't tell upper from lower case."""
        existing = self._have.get(column.lower())
        return name(existing.name if existing else column)

    def _spelled(self, actions: Sequence[Action]) -> Callable[[str], str]:
        """Return a function that gives a column's quoted name after the actions."""
        names = {one.name.lower(): one.name for one in self._have.values()}
        for action in actions:
            if isinstance(action, (AddColumn, ChangeColumn)):
                names[action.column.name.lower()] = action.column.name
        return lambda column: name(names.get(column.lower(), column))

    def _check(self, change: ChangeColumn) -> None:
        """Raise NotReproducible unless the stored values are those of the source after the change, too."""
        before, after, full_name = change.before, change.column, self._ddl.full_name
        existing = self._have[change.name.lower()]
        if before is None:
            raise NotReproducible(
                full_name, f"column {change.name}: its conversion to {described(after)} isn't known"
            )
        if existing.type != self._tables.type_of(before):
            raise NotReproducible(
                full_name,
                f"column {change.name}: it is {existing.type} in the target, and was {described(before)} in "
                "the source",
            )
        is_text = self._tables.dates_as_text and before.kind in WITH_DATE
        if not (keeps_text if is_text else keeps_values)(before, after):
            raise NotReproducible(
                full_name,
                f"column {change.name}: its values may not stay the same from {described(before)} to "
                f"{described(after)}",
            )
        is_null = f"{self._named(change.name)} IS NULL"
        if before.nullable and not after.nullable and self._tables.has_row(self._own, is_null):
            raise NotReproducible(
                full_name, f"column {change.name}: the value that replaced its NULLs isn't known"
            )

    def _rename(self, changes: Sequence[ChangeColumn]) -> None:
        of = self._ddl.full_name
        renames = [
            Rename(
                self._named(change.name),
                name(change.column.name, f"{of}, column {change.column.name}"),
                name(f"tidemill {number}"),
            )
            for number, change in enumerate(changes)
        ]
        for old, new in in_order(renames, folds=False):
            self._alter(f"RENAME COLUMN {old} TO {new}")

    def _redefine(self, change: ChangeColumn, *, has_row: bool) -> None:
        existing, column = self._have[change.name.lower()], change.column
        own, type_ = name(column.name), self._tables.type_of(column)
        clauses = [f"ALTER COLUMN {own} DROP DEFAULT"]
        if existing.type != type_:
            value = own
            if not has_row:
                value = "NULL"
            elif column.kind == "bit":  # a cast would fill bits on the right
                value = f"lpad({own}::text, {column.length}, '0')"
            clauses.append(f"ALTER COLUMN {own} TYPE {type_} USING {value}::{type_}")
        if existing.is_required == column.nullable:
            clauses.append(f"ALTER COLUMN {own} {'DROP' if column.nullable else 'SET'} NOT NULL")
        if default := constant_default(self._tables, column):
            clauses.append(f"ALTER COLUMN {own} SET DEFAULT {default}")
        self._alter(", ".join(clauses))

    def _add(self, column: Column, *, has_row: bool) -> None:
        """Add a column at the end: rows are written by column names."""
        ddl, own, text = self._ddl, name(column.name), declaration(self._tables, column, self._ddl.full_name)
        if not has_row:
            self._alter(f"ADD COLUMN {text}")
            return
        try:
            value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
        except NotComputable as error:
            raise NotReproducible(ddl.full_name, str(error)) from None
        if reason := reason_of_refusal(column, value, dates_as_text=self._tables.dates_as_text):
            raise SinkError(f"{ddl.full_name}, column {column.name}: {reason}")
        bare = f"{own} {self._tables.type_of(column)}{'' if column.nullable else ' NOT NULL'}"
        self._alter(f"ADD COLUMN {bare} DEFAULT {literal(column, value)}")
        wanted = constant_default(self._tables, column)
        self._alter(f"ALTER COLUMN {own} {f'SET DEFAULT {wanted}' if wanted else 'DROP DEFAULT'}")


def declaration(tables: Tables, column: Column, of: str) -> str:
    """Return a column's line in CREATE TABLE, of the source's table `of`. Raises SinkError for its name."""
    own = name(column.name, f"{of}, column {column.name}")
    default = constant_default(tables, column)
    return (
        f"{own} {tables.type_of(column)}{'' if column.nullable else ' NOT NULL'}"
        f"{f' DEFAULT {default}' if default else ''}"
    )


def constant_default(tables: Tables, column: Column) -> str:
    """Return the literal of a default that is the same at all times; empty without such a one."""
    if column.default is None or needs_clock(column):
        return ""
    try:
        value = default_for_existing_rows(column, 0.0)
    except NotComputable:
        return ""
    if value is None or reason_of_refusal(column, value, dates_as_text=tables.dates_as_text):
        return ""
    return literal(column, value)
