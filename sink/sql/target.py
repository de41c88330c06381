"""What the SQL sink needs of a database: everything in which dialects differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...errors import Retryable, SinkError
from ...events import Action, AddColumn, Ddl, DropColumn, RowChange, Table
from .runs import Run

MISSING = "there is no such row; was the target changed by something else?"

_MAX_CHARS = 100

OWN_SCHEMA = "tidemill"
"""MySQL: the schema of the checkpoint table if tables go to their own schemas."""

CHECKPOINT_TABLE = "tidemill_checkpoint"
"""One row a feed: its checkpoint, in the same database and SQL transaction as the rows."""


class StatementRejected(Exception):
    """The database didn't take a run of changes as it should have. Nothing is said about which one,
    unless the run had one only."""


class Target(Protocol):
    """One connection to a database, for one feed.

    Methods raise the driver's errors, StatementRejected, Retryable or SinkError; `explain` turns the driver's
    errors into ours.
    """

    identity: str
    """The database, spelled one way."""
    feed: str
    """Whose checkpoint this is: several feeds may write to one database."""
    max_rows: int
    """The most changes in one run."""
    ddl_commits: bool
    """Whether a schema change ends the transaction, and can't be undone."""
    folds_names: bool
    """Whether tables whose names differ in case only are the same."""

    def connect(self) -> None:
        """Connect and make the checkpoint table if it isn't there."""

    def close(self) -> None:
        """Let go of the connection, if there is one; an open transaction is undone. Doesn't raise."""

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def savepoint(self) -> None:
        """Remember this point of the transaction, in place of the last one remembered."""

    def rollback_to_savepoint(self) -> None: ...

    def apply(self, runs: Sequence[Run]) -> None:
        """Make exactly one row change for each change, in order. Raises StatementRejected."""

    def load_checkpoint(self) -> str | None:
        """The stored text."""

    def save_checkpoint(self, previous_ts: int | None, ts: int, text: str) -> bool:
        """Store the text; False, and nothing is stored, if the stored one isn't of `previous_ts`."""

    def name_of(self, schema: str, table: str) -> str:
        """Of a source's table, as it is called here, for people and to tell two from each other."""

    def columns(self, table: Table) -> dict[str, str] | None:
        """Types by name of the columns that the table has here, in order; None if it isn't there."""

    def wanted_columns(self, table: Table) -> dict[str, str]:
        """What `columns` says of a table that `create_table` made."""

    def is_empty(self, table: Table) -> bool: ...

    def create_table(self, table: Table) -> None: ...

    def alter(self, ddl: Ddl) -> None:
        """Add and drop columns: once, even if a crash lets it come twice."""

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        """A driver's error as one of ours; None if it isn't a driver's."""


def check_columns(target: Target, table: Table) -> None:
    """Raises SinkError unless the target's table has the columns of the source's, in any order."""
    have = target.columns(table)
    name = target.name_of(table.schema, table.name)
    if have is None:
        raise SinkError(
            f"{target.identity}: table {name}, the copy of {table.full_name}, isn't there: name another "
            "target to load everything again"
        )
    wanted = target.wanted_columns(table)
    if set(have) != set(wanted):
        names_only = {column: have.get(column, type_) for column, type_ in wanted.items()}
        raise SinkError(
            f"{target.identity}: table {name} differs from {table.full_name}: it "
            f"{difference(have, names_only)}: change it by hand, or name another target to load "
            "everything again"
        )


def difference(have: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """What sets columns apart from those wanted, to follow "it"; both are types by name."""
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


def effective(actions: Iterable[Action], columns: Iterable[str]) -> list[Action]:
    """What is left of them for a table of these columns: IF EXISTS and IF NOT EXISTS are about what it had
    before all of them."""
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
        left.append(action)
    return left


def describe(change: RowChange) -> str:
    """A row for people: its table and key, or all of it where there is no key."""
    table = change.table
    row = change.before if change.before is not None else change.after
    assert row is not None
    index = table.key or range(len(table.columns))
    return f"{table.full_name} ({', '.join(f'{table.columns[i].name}={_shortened(row[i])}' for i in index)})"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "…"
