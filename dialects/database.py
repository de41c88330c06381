"""The protocols of databases: everything in which dialects differ for those who write to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from ..errors import Retryable, SinkError
from ..events import Action, AddColumn, ChangeColumn, Ddl, Details, DropColumn, RowChange, Table
from .groups import ChangeGroup
from .keys import TableKeys
from .own_tables import OwnTables

MISSING = "there is no such row; was the target changed by something else?"

_MAX_CHARS = 100

OWN_SCHEMA = "tidemill"
"""Schema of the checkpoint table in MySQL if tables go to their own schemas."""

CHECKPOINT_TABLE = "tidemill_checkpoint"
"""Name of the table with one row per feed: its checkpoint, in the same SQL transaction as the rows."""


class StatementRejected(Exception):
    """The database rejected a group of changes. The change at fault is known only in a group of one."""


class ObjectRejected(StatementRejected):
    """... because of the table, or another object that it names: any other change of the table would be
    rejected as well. Changes of other tables can be applied."""


class Comparison(NamedTuple):
    """A value of a row here, and whether it is exactly the source's."""

    value: Any
    same: Any
    """True, or 1."""


class Applier(Protocol):
    """Changes rows, in the open SQL transaction of its Database."""

    max_rows: int
    """Maximum number of changes in a group."""

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        """Make exactly one row change for each change, in order. Raises StatementRejected."""

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        """Make the rows those after the changes, in order, whatever they were before.

        Of a table without a key, a row that isn't there is no error; an inserted one may be there twice.
        """

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:
        """Return the statements for a group of one change as text for people."""

    def compare(self, change: RowChange) -> list[Comparison] | None:
        """Compare the row here that has the key of `change` before it; None if there is none."""

    def keys_of(self, table: Table) -> TableKeys:
        """Return the keys of a table's copy, in columns of the source."""

    def is_linked(self, table: Table) -> bool:
        """Return True if foreign keys that are enforced here link the table to others, or to itself."""


class Definer(Protocol):
    """Creates, alters and describes tables. A table is given as the source has it."""

    identity: str
    """Canonical name of the database."""
    ddl_commits: bool
    """True if a schema change commits the transaction, and can't be rolled back."""
    folds_names: bool
    """True if table names that differ only in case are the same table."""

    def name_of(self, schema: str, table: str) -> str:
        """Return the name that a source's table has here, for messages and as a unique key."""

    def columns(self, table: Table) -> dict[str, str] | None:
        """Return the types of the table's columns here by name, in order; None if it doesn't exist."""

    def wanted_columns(self, table: Table) -> dict[str, str]:
        """Return the result of `columns` for a table that `create_table` made."""

    def is_empty(self, table: Table) -> bool: ...

    def keeps_rows(self, table: Table) -> bool:
        """Return True if a rollback undoes changes of the table's rows."""

    def undo_creation(self) -> None:
        """Drop the empty table that an ended process left: it created it, and no checkpoint covers that.

        The source's table may be another by now, or gone.
        """

    def create_table(self, table: Table, details: Details | None, *, is_shared: bool = False) -> None:
        """Create the table, with its details if they are copied; no feed drops a shared one again."""

    def drop_table(self, table: Table) -> None:
        """Drop the table if it is there."""

    def defining(self, schema: str, table: str) -> AbstractContextManager[None]:
        """Let nobody else define this table meanwhile. Raises Retryable while somebody does."""

    def has_shared(self, ddl: Ddl) -> bool:
        """Return True if the target has a shared change, or a later one of its table."""

    def note_shared(self, ddl: Ddl) -> None:
        """Store that the target has a shared change."""

    def alter(self, ddl: Ddl) -> None:
        """Apply a schema change other than CreateTable: once, even if it is called again after a crash, and
        a shared one even if other feeds call it too.

        Raises NotReproducible before anything is applied.
        """


class Database(Protocol):
    """One connection to a database, for one feed. Used by one thread at a time.

    Methods, also those of `rows` and `tables`, raise the driver's errors, StatementRejected, Retryable or
    SinkError; `explain` converts the driver's errors.
    """

    identity: str
    """Canonical name of the database."""
    feed: str
    """Name of the feed; several feeds may write to one database."""

    @property
    def rows(self) -> Applier: ...

    @property
    def tables(self) -> Definer: ...

    @property
    def own_tables(self) -> OwnTables:
        """The feed's tables beside its checkpoint, for other modules."""

    def connect(self) -> None:
        """Connect, and create the checkpoint table if it is missing."""

    def close(self) -> None:
        """Close the connection, if there is one; an open transaction is rolled back. Doesn't raise."""

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def savepoint(self) -> None:
        """Set the transaction's savepoint, in place of the previous one."""

    def rollback_to_savepoint(self) -> None: ...

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        """Return the stored text of the checkpoint; None if there is none.

        With `locked`, in a transaction, nobody else changes it until the end of the transaction.
        """

    def save_checkpoint(self, previous_ts: int | None, ts: int, text: str) -> bool:
        """Store the text; return False, storing nothing, if the stored checkpoint isn't of `previous_ts`."""

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        """Return tidemill's error for a driver's error; None for any other."""


def check_columns(tables: Definer, table: Table) -> None:
    """Raise SinkError unless the target's table has the columns of the source's, in any order."""
    have = tables.columns(table)
    name = tables.name_of(table.schema, table.name)
    if have is None:
        raise SinkError(
            f"{tables.identity}: table {name}, the copy of {table.full_name}, isn't there: name another "
            "target to load everything again",
            table.full_name,
        )
    wanted = tables.wanted_columns(table)
    if set(have) != set(wanted):
        names_only = {column: have.get(column, type_) for column, type_ in wanted.items()}
        raise SinkError(
            f"{tables.identity}: table {name} differs from {table.full_name}: it "
            f"{difference(have, names_only)}: change it by hand, or name another target to load "
            "everything again",
            table.full_name,
        )


def difference(have: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return the differences from the wanted columns, as a phrase after "it"; both are types by name."""
    lacks = [f"lacks column {name} {type_}" for name, type_ in wanted.items() if name not in have]
    more = [
        f"has column {name} {type_}".rstrip() + ", which the source lacks"
        for name, type_ in have.items()
        if name not in wanted
    ]
    others = [
        f"has column {name} as {have[name] or 'untyped'} in place of {type_}"
        for name, type_ in wanted.items()
        if name in have and have[name] != type_
    ]
    return "; ".join(lacks + more + others)


def cant_compute(action: AddColumn) -> str:
    """Return why a generated column can't be added to a table with rows of a target of another kind."""
    return f"column {action.column.name}: this target can't compute {action.expression} as the source does"


def effective(actions: Iterable[Action], columns: Iterable[str]) -> list[Action]:
    """Return the actions that apply to a table of these columns.

    IF EXISTS and IF NOT EXISTS refer to its columns before all of the actions.
    """
    had = {name.lower() for name in columns}
    added: set[str] = set()
    dropped: set[str] = set()
    left: list[Action] = []
    for action in actions:
        match action:
            case AddColumn(column, _, unless_exists):
                name = column.name.lower()
                if unless_exists and (name in had or name in added):
                    continue
                added.add(name)
            case DropColumn(name, if_exists):
                if if_exists and (name.lower() not in had or name.lower() in dropped):
                    continue
                dropped.add(name.lower())
            case ChangeColumn(name, if_exists=True) if name.lower() not in had:
                continue
        left.append(action)
    return left


def describe(change: RowChange) -> str:
    """Return a description of a row: its table and key, or all its values without a key."""
    return f"{change.table.full_name} ({describe_row(change)})"


def describe_row(change: RowChange) -> str:
    """Return a row's key, or all its values without a key, as "id=7, lang='de'"."""
    table = change.table
    row = change.before if change.before is not None else change.after
    assert row is not None
    index = table.key or range(len(table.columns))
    return ", ".join(f"{table.columns[i].name}={_shortened(row[i])}" for i in index)


def describe_differences(change: RowChange, here: Sequence[Comparison]) -> str:
    """Return the columns that differ from the source's before the change, with both values, as a phrase."""
    assert change.before is not None
    return ", ".join(
        f"{column.name} is {_shortened(one.value)} here, and was {_shortened(before)} in the source"
        for column, before, one in zip(change.table.columns, change.before, here, strict=True)
        if not one.same
    )


def _shortened(value: object) -> str:
    return shortened(repr(value), _MAX_CHARS)


def shortened(text: str, max_chars: int) -> str:
    """Return the text, or its first characters with a sign that there are more."""
    return text if len(text) <= max_chars else text[:max_chars] + "…"
