"""Schema changes in MySQL and MariaDB, each once although it commits implicitly.

An intent row is stored before a change that can't be repeated, and the statement leaves a mark that is
atomic with it: an ALTER TABLE sets the table's comment, a RENAME TABLE renames one more table. After a crash
the mark shows if the statement ran. It is removed once the intent row says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Ddl,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
)
from ...failpoint import reach
from ..sink import NotReproducible
from . import mysql_text as text
from .conversion import keeps_values
from .mysql_conversion import unknown_to_mariadb
from .mysql_ddl import alterations, known_column, session_zone
from .mysql_fit import Fit
from .mysql_home import Home, Intent
from .mysql_modes import STRICT, converting
from .mysql_session import UTC, MySqlSession, quoted
from .mysql_tables import Tables
from .renames import Rename, in_order
from .target import effective

_MARIADB: Final = "mariadb "
"""Beginning of the identity of a source whose conversions a MariaDB target repeats."""


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
        intent = self._home.intent(ddl.logged_at or str(ddl.commit_ts))
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
            self._restore_comment(name, intent)
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
        actions = effective(ddl.actions, have)
        if not actions:
            return intent
        if self._tables.has_row(name):
            self._check(ddl, actions, have)
        zone, modes = session_zone(ddl, actions), self._modes(ddl, actions)
        clauses = ", ".join([*alterations(self._fitted(ddl, actions), have), f"COMMENT={quoted(mark)}"])
        intent = replace(intent, doing=change, comment=comment)
        self._home.intend(ddl, intent)
        reach("sink.altered")
        # Values of existing rows depend on the clock of the statement's session.
        self._session.execute(f"SET timestamp={ddl.epoch_seconds:.6f}, time_zone='{zone}'")
        self._session.define(f"ALTER TABLE {self._tables.qualified(name)} {clauses}", modes)
        self._session.execute(f"SET timestamp=DEFAULT, time_zone='{UTC}'")
        return intent

    def _fitted(self, ddl: Ddl, actions: Sequence[Action]) -> list[Action]:
        """Return the actions with columns that this server can define."""
        return [
            replace(one, column=self._fit.column(one.column, ddl.full_name))
            if isinstance(one, (AddColumn, ChangeColumn))
            else one
            for one in actions
        ]

    def _restore_comment(self, name: TableName, intent: Intent) -> None:
        if self._tables.comment(name) == _mark(intent):
            self._session.execute(
                f"ALTER TABLE {self._tables.qualified(name)} COMMENT={quoted(intent.comment)}"
            )

    def _is_like(self, ddl: Ddl) -> bool:
        """Return True if this server converts values as the source does."""
        return self._session.is_mariadb and ddl.source.startswith(_MARIADB)

    def _modes(self, ddl: Ddl, actions: Sequence[Action]) -> str:
        converts = any(isinstance(action, (ChangeColumn, ChangeKey)) for action in actions)
        return converting(ddl.sql_mode) if converts and self._is_like(ddl) else STRICT

    def _check(self, ddl: Ddl, actions: Sequence[Action], have: dict[str, str]) -> None:
        """Raise NotReproducible unless all columns are converted as in the source."""
        types = {column.lower(): type_.removesuffix(" key") for column, type_ in have.items()}
        for action in actions:
            if isinstance(action, ChangeColumn):
                reason = self._difference(ddl, action, types.get(action.name.lower(), ""))
                if reason:
                    raise NotReproducible(ddl.full_name, f"column {action.name}: {reason}")

    def _difference(self, ddl: Ddl, change: ChangeColumn, type_: str) -> str:
        """Return why the conversion of a column of that type may differ; empty if it can't."""
        before, after = change.before or known_column(change.name, type_), change.column
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
