"""Schema changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from .details import Details
from .table import Column, Table, origin_name
from .ts import Ts

TableName: TypeAlias = tuple[str, str]
"""Schema and table."""


class CreateTable(Struct, frozen=True):
    """Create the table, empty, as it is in the source."""

    table: Table
    replaces: bool = False
    """CREATE OR REPLACE: a table of this name is dropped first."""
    exists: bool = False
    """Another feed has created the table, and may have put rows into it."""


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
    expression: str = ""
    """The expression, in parentheses, that computed the values of existing rows in the source; empty if they
    have the default."""


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


class ChangeDetails(Struct, frozen=True):
    """Replace the parts of a definition that don't concern values. Only for sinks that copy definitions.

    It is the last action of a CreateTable, or of changes of columns and the key.
    """

    before: Details
    """As they are after the other actions: an index of a dropped column is gone, for instance."""
    after: Details
    table: Table
    """The table after the statement."""


Action: TypeAlias = (
    CreateTable
    | DropTable
    | TruncateTable
    | RenameTables
    | AddColumn
    | DropColumn
    | ChangeColumn
    | ChangeKey
    | ChangeDetails
)
"""Changes of columns and of the key come together, in the statement's order, and with ChangeDetails, as does
CreateTable; any other action is alone."""


def computed_columns(actions: Iterable[Action]) -> list[AddColumn]:
    """Return the actions that add generated columns."""
    return [action for action in actions if isinstance(action, AddColumn) and action.expression]


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
    """Effects of the statement on the table; empty with `refusal`. With `reload`, they are for sinks that can
    compute the values of added columns, if there are any."""
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
    exactly. Empty if `actions` are that effect in every sink."""
    sql_mode: int = 0
    """The session's sql_mode as the source's bits, by which a conversion truncates a value or fails."""
    logged_at: str = ""
    """The statement's position in the source's log, the same whenever it is read; empty if it has none."""
    origin: str = ""
    """Full name of the source's table if the change was routed to another one."""
    source_name: str = ""
    """That of its table: `Table.source_name`."""
    shared: int | None = None
    """Number of the change of a table that several feeds write into, 0 for its creation: the target executes
    each once, whichever feeds apply it. None for a change that only this feed applies."""
    noted: bool = False
    """True if the source has noted it in the feed's data directory, and needs the note at a restart after
    it. One without actions is only noted. Not set behind a sink's resume filter."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def origin_name(self) -> str:
        """Name of the table in checkpoints: that of the source's table, also if this is routed."""
        return origin_name(self.source_name, self.origin or self.full_name)
