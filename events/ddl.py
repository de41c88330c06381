"""Schema changes."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .table import Column, Table
from .ts import Ts

TableName: TypeAlias = tuple[str, str]
"""Schema and table."""


class CreateTable(Struct, frozen=True):
    """Create the table, empty, as it is in the source."""

    table: Table
    replaces: bool = False
    """CREATE OR REPLACE: a table of this name is dropped first."""


class DropTable(Struct, frozen=True):
    """Drop the table; nothing happens if the target doesn't have it."""


class TruncateTable(Struct, frozen=True):
    """Delete all rows."""


class RenameTables(Struct, frozen=True):
    """Rename tables, all at once, so that two of them can swap."""

    pairs: tuple[tuple[TableName, TableName], ...]
    """Names before and after the statement. A table whose name is taken and that isn't renamed itself can't
    occur."""


class AddColumn(Struct, frozen=True):
    column: Column
    after: str | None = None
    """The column it follows; "" puts it first, None last."""
    unless_exists: bool = False
    """ADD COLUMN IF NOT EXISTS: nothing happens if the table had such a column before the statement."""


class DropColumn(Struct, frozen=True):
    name: str
    if_exists: bool = False
    """DROP COLUMN IF EXISTS: nothing happens if the table had no such column before the statement."""


class ChangeColumn(Struct, frozen=True):
    """Replace a column's definition: its name, type, charset, default or nullability. Values are converted as
    the source converts them."""

    name: str
    """Name before the statement."""
    column: Column
    """Definition after the statement, with its name."""
    before: Column | None = None
    """Definition before the statement; None if it isn't known."""
    after: str | None = None
    """The column it is moved after; "" moves it to the front, None leaves it where it is."""
    if_exists: bool = False
    """Nothing happens if the table had no such column before the statement."""


class ChangeKey(Struct, frozen=True):
    """Replace the primary key. Comes after the changes of columns of the same statement."""

    columns: tuple[str, ...]
    """Names after the statement, in key order; empty if the table has no primary key any more."""


Action: TypeAlias = (
    CreateTable | DropTable | TruncateTable | RenameTables | AddColumn | DropColumn | ChangeColumn | ChangeKey
)
"""Changes of columns and of the key come together, in the statement's order; any other action is alone."""


class Ddl(Struct, frozen=True):
    """A schema change of one table, in commit order between transactions.

    A statement about several tables comes as one Ddl for each, in the statement's order, but RENAME TABLE as
    one for all its tables.
    """

    commit_ts: Ts
    start_ts: Ts
    source: str
    schema: str
    table: str
    """Name before the statement; of a RENAME, that of its first table."""
    query: str
    """The statement as the source ran it; empty for a table created for its snapshot."""
    actions: tuple[Action, ...]
    """Effects of the statement on the table; empty with `refusal` or `reload`."""
    position: str = ""
    refusal: str = ""
    """A sentence for users that quotes the statement; empty if it can be followed."""
    epoch_seconds: float = 0.0
    """Time of the source's clock when the statement ran, for defaults such as CURRENT_TIMESTAMP."""
    last: bool = True
    utc_offset_seconds: int = 0
    """UTC offset of the session: defaults of date and datetime columns use its local time, and a timestamp's
    default is written in it."""
    if_exists: bool = False
    """True if the refusal or reload applies only to targets in which the table exists."""
    reload: str = ""
    """A sentence for users: why the table must be loaded again, as the statement's effect on it isn't known
    exactly. Empty if `actions` are that effect."""
    sql_mode: int = 0
    """The session's sql_mode as the source's bits, by which a conversion truncates a value or fails."""
    logged_at: str = ""
    """The statement's position in the source's log, the same whenever it is read; empty if it has none."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"
