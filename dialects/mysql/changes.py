"""Schema changes in MySQL and MariaDB, each once although it commits implicitly.

An intent row is stored before a change that can't be repeated, and the statement leaves a mark that is
atomic with it: an ALTER TABLE sets the table's comment, a RENAME TABLE renames one more table. After a crash
the mark shows if the statement ran. It is removed once the intent row says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pymysql
from msgspec.structs import replace

from ...codec.mysql.tokens import literal
from ...errors import NotReproducible, Retryable
from ...events import (
    FLOATS,
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    Column,
    Ddl,
    Details,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
    computed_columns,
)
from ...failpoint import reach
from ..conversion import keeps_values
from ..database import cant_compute, effective
from ..renames import Rename, in_order
from ..statement import quoted
from . import text as text
from .computed import unknown_to_server
from .ddl import alterations, known_column, session_zone
from .details import attributes, changed, changed_columns, repartitioned
from .fit import Fit
from .home import Home, Intent
from .modes import STRICT, converting
from .session import UTC, MySqlSession
from .tables import Tables

_MARIADB: Final = "mariadb "
"""Beginning of the identity of a source whose conversions a MariaDB target repeats."""
_MYSQL: Final = "mysql "


class SchemaChanges:
    """Applies the schema changes of one feed."""

    def __init__(self, session: MySqlSession, home: Home, tables: Tables, fit: Fit) -> None:
        self._session = session
        self._home = home
        self._tables = tables
        self._fit = fit
        self._marker = f"{home.name}.{text.name(home.own_name)}"
        self._renamed_marker = f"{home.name}.{text.name(f'{home.own_name}_done')}"

    def apply(self, ddl: Ddl) -> None:
        """Apply any action but CreateTable. Raises NotReproducible before anything is applied."""
        action = ddl.actions[0]
        name = ddl.schema, ddl.table
        change = f"{type(action).__name__} {ddl.full_name}"
        intent = self._home.intent(ddl)
        if intent.number > (ddl.shared or 0):  # another feed is further
            return
        if change not in intent.done:
            match action:
                case DropTable():
                    self._session.execute(f"DROP TABLE IF EXISTS {self._tables.qualified(name)}")
                case TruncateTable():  # foreign keys don't forbid it, as this session doesn't check them
                    self._session.execute(f"TRUNCATE TABLE {self._tables.qualified(name)}")
                case RenameTables(pairs):
                    self._rename(ddl, pairs, intent, change)
                case _:
                    intent = self._alter(ddl, intent, change)
            reach("sink.altered")
            intent = replace(intent, done=(*intent.done, change), doing="")
            self._home.intend(ddl, intent)
        reach("sink.altered")
        if isinstance(action, RenameTables):
            self._drop_markers()
        elif not isinstance(action, (DropTable, TruncateTable)):
            self._complete(ddl, intent)
        reach("sink.altered")

    # --- names

    def _rename(
        self, ddl: Ddl, pairs: Sequence[tuple[TableName, TableName]], intent: Intent, change: str
    ) -> None:
        steps = in_order(
            [self._renaming(old, new, number) for number, (old, new) in enumerate(pairs)],
            folds=self._session.folds_names,
        )
        if not steps or (intent.doing == change and self._is_there(f"{self._home.own_name}_done")):
            return
        self._drop_markers()
        self._home.intend(ddl, replace(intent, doing=change))
        for _, new in pairs:
            self._session.create_schema(self._tables.schema_of(new))
        self._session.execute(f"CREATE TABLE {self._marker} (id INT) ENGINE=InnoDB")
        reach("sink.altered")
        every = [(self._marker, self._renamed_marker), *steps]
        self._session.execute(f"RENAME TABLE {', '.join(f'{old} TO {new}' for old, new in every)}")

    def _renaming(self, old: TableName, new: TableName, number: int) -> Rename:
        temporary = old[0], f"{self._home.own_name}_{number}"
        qualified = self._tables.qualified
        return Rename(qualified(old), qualified(new), qualified(temporary))

    def _is_there(self, own_table: str) -> bool:
        return bool(self._session.rows(f"SHOW TABLES FROM {self._home.name} LIKE {quoted(own_table)}"))

    def _drop_markers(self) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {self._marker}, {self._renamed_marker}")

    # --- columns and keys

    def _alter(self, ddl: Ddl, intent: Intent, change: str) -> Intent:
        """Return the intent with the table's comment before the statement."""
        name, mark = (ddl.schema, ddl.table), _mark(intent)
        comment = self._tables.comment(name)
        if intent.doing == change and comment == mark:
            return intent
        have = self._tables.columns(name) or {}
        details = next((one for one in ddl.actions if isinstance(one, ChangeDetails)), None)
        actions = [one for one in effective(ddl.actions, have) if not isinstance(one, ChangeDetails)]
        if details is not None:
            comment = self._checked(ddl, details).comment
        if not actions and details is None:
            return intent
        if self._tables.has_row(name):
            self._check(ddl, actions, have)
            self._check_computed(ddl, actions, have)
        else:  # there is nothing to compute
            actions = [replace(one, expression="") if isinstance(one, AddColumn) else one for one in actions]
        zone, modes = session_zone(ddl, actions), self._modes(ddl, actions)
        clauses = self._clauses(ddl, actions, have, details, f"COMMENT={quoted(mark)}")
        intent = replace(intent, doing=change, comment=comment)
        self._home.intend(ddl, intent)
        reach("sink.altered")
        # Values of existing rows depend on the clock of the statement's session.
        self._session.execute(f"SET timestamp={ddl.epoch_seconds:.6f}, time_zone='{zone}'")
        try:
            self._session.define(f"ALTER TABLE {self._tables.qualified(name)} {clauses}", modes)
        except pymysql.MySQLError as error:
            # Of indexes and the like, what the server did in the source may not be all that the log says. It
            # computes no virtual column of the existing rows, of which one may have an invalid value. TiDB
            # lacks many changes that MySQL has, such as another primary key of a clustered table.
            is_certain = details is None and not computed_columns(actions) and not self._session.is_tidb
            if is_certain or isinstance(self._session.explain(error, ""), Retryable):
                raise
            raise NotReproducible(ddl.full_name, f"the target refused the statement: {error}") from error
        self._session.execute(f"SET timestamp=DEFAULT, time_zone='{UTC}'")
        return intent

    def _checked(self, ddl: Ddl, change: ChangeDetails) -> Details:
        """Return the details after the statement. Raises NotReproducible if they aren't known."""
        if change.after.unknown:
            why = f"its definition isn't known, because of {change.after.unknown}"
            raise NotReproducible(ddl.full_name, why)
        return change.after

    def _clauses(
        self,
        ddl: Ddl,
        actions: Sequence[Action],
        have: dict[str, str],
        details: ChangeDetails | None,
        mark: str,
    ) -> str:
        fitted = self._fitted(ddl, actions)
        if details is None:
            return ", ".join([*alterations(fitted, have), mark])
        before, after = self._fit.details(details.before), self._fit.details(details.after)
        is_mariadb = self._session.is_mariadb
        defined = {one.column.name for one in fitted if isinstance(one, (AddColumn, ChangeColumn))}
        fitted += [
            ChangeColumn(column.name, self._fit.column(column, ddl.full_name))
            for column in changed_columns(before, after, details.table)
            if column.name not in defined
        ]
        clauses = [
            *alterations(fitted, have, lambda column: attributes(after.of_column(column.name), column)),
            *changed(before, after, self._fit.table(details.table), is_mariadb=is_mariadb),
            mark,
        ]
        return ", ".join(clauses) + repartitioned(before, after)

    def _fitted(self, ddl: Ddl, actions: Sequence[Action]) -> list[Action]:
        """Return the actions with columns that this server can define."""
        return [
            replace(one, column=self._fit.column(one.column, ddl.full_name))
            if isinstance(one, (AddColumn, ChangeColumn))
            else one
            for one in actions
        ]

    def _complete(self, ddl: Ddl, intent: Intent) -> None:
        """Remove the mark; generated columns become ordinary ones, with the values that they have."""
        name = ddl.schema, ddl.table
        if self._tables.comment(name) != _mark(intent):
            return
        details = next((one.after for one in ddl.actions if isinstance(one, ChangeDetails)), None)
        clauses = [f"COMMENT={literal(intent.comment)}"]
        for added in computed_columns(self._fitted(ddl, ddl.actions)):
            end = ""
            if details is not None:
                end = attributes(details.of_column(added.column.name), added.column)
            clauses.append(f"MODIFY COLUMN {text.define(added.column)}{end}")
        self._session.define(f"ALTER TABLE {self._tables.qualified(name)} {', '.join(clauses)}")

    def _computes_like(self, ddl: Ddl) -> bool:
        return ddl.source.startswith(_MARIADB if self._session.is_mariadb else _MYSQL)

    def _is_like(self, ddl: Ddl) -> bool:
        """Return True if this server converts values as the source does."""
        return self._session.is_mariadb and ddl.source.startswith(_MARIADB)

    def _modes(self, ddl: Ddl, actions: Sequence[Action]) -> str:
        converts = any(isinstance(action, (ChangeColumn, ChangeKey)) for action in actions)
        repeats = (converts and self._is_like(ddl)) or computed_columns(actions)
        return converting(ddl.sql_mode) if repeats else STRICT

    def _check(self, ddl: Ddl, actions: Sequence[Action], have: dict[str, str]) -> None:
        """Raise NotReproducible unless all columns are converted as in the source."""
        types = {column.lower(): type_.removesuffix(" key") for column, type_ in have.items()}
        for action in actions:
            if isinstance(action, ChangeColumn):
                reason = self._difference(ddl, action, types.get(action.name.lower(), ""))
                if reason:
                    raise NotReproducible(ddl.full_name, f"column {action.name}: {reason}")

    def _check_computed(self, ddl: Ddl, actions: Sequence[Action], have: dict[str, str]) -> None:
        """Raise NotReproducible unless added generated columns are computed as in the source."""
        is_mariadb = self._session.is_mariadb
        columns = {
            name.lower(): known_column(name, type_, is_mariadb=is_mariadb) for name, type_ in have.items()
        }
        for action in actions:
            if not isinstance(action, AddColumn):
                continue
            column = action.column
            if action.expression:
                if not self._computes_like(ddl) or self._fit.has_substitutes:
                    raise NotReproducible(ddl.full_name, cant_compute(action))
                unknown = unknown_to_server(action.expression, column, columns, is_mariadb=is_mariadb)
                if unknown:
                    why = f"column {column.name}: its expression depends on {unknown}, which may differ here"
                    raise NotReproducible(ddl.full_name, why)
            columns[column.name.lower()] = column

    def _difference(self, ddl: Ddl, change: ChangeColumn, type_: str) -> str:
        """Return why the conversion of a column of that type may differ; empty if it can't."""
        is_mariadb = self._session.is_mariadb
        before, after = (
            change.before or known_column(change.name, type_, is_mariadb=is_mariadb),
            change.column,
        )
        if before is None:
            return f"its conversion from {type_ or 'an unknown type'} isn't known"
        if self._tables.types([before]) != [type_]:
            return f"it is {type_} in the target, and was {text.type_text(before)} in the source"
        what = f"its conversion from {text.type_text(before)} to {text.type_text(after)}"
        if self._is_like(ddl):
            unknown = unknown_to_mariadb(before, after)
            return unknown and f"{what} depends on {unknown}, which isn't known"
        # Before is the target's own column if the statement doesn't say, whose character set is unknown.
        if change.before is None or not keeps_values(before, after):
            return f"{what} may differ between this server and {ddl.source}"
        loses_nulls = before.nullable and not after.nullable
        if loses_nulls and self._tables.has_row((ddl.schema, ddl.table), f"{text.name(change.name)} IS NULL"):
            return "the value that replaced its NULLs isn't known"
        return ""


def _mark(intent: Intent) -> str:
    return f"tidemill: altered at {intent.statement}"


_NUMBERS: Final = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"}


def unknown_to_mariadb(before: Column, after: Column) -> str:
    """Return what a conversion between two MariaDB servers depends on beyond the columns, the statement's
    clock and its sql_mode; empty if on nothing.

    By its algorithm, an ALTER TABLE rounds the rows to the digits of a FLOAT(m,d) or leaves them as they are;
    versions print such values and those of ZEROFILL in their own ways; and the offset of a time zone is known
    for one moment only.
    """
    if before.kind == after.kind:
        digits = (0, 0), (before.length, before.scale)
        if before.kind in FLOATS and (after.length, after.scale) not in digits:
            return "the algorithm, which rounds rows to the digits or doesn't"
        return ""
    if "timestamp" in (before.kind, after.kind):
        return "the time zone of its session"
    if after.kind in FLOATS:
        return "the number of digits of the new type"
    if before.kind in FLOATS or (before.unsigned and before.kind in _NUMBERS):
        return "" if after.kind in _NUMBERS else "the number of digits that the source prints"
    return ""
