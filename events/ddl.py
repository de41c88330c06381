"""Schema changes."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .table import Column, Table
from .ts import Ts


class CreateTable(Struct, frozen=True):
    """Create the table as it is in the source, before it is loaded."""

    table: Table


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


Action: TypeAlias = CreateTable | AddColumn | DropColumn


class Ddl(Struct, frozen=True):
    """A schema change of one table, in commit order between transactions."""

    commit_ts: Ts
    start_ts: Ts
    source: str
    schema: str
    table: str
    query: str
    """The statement as the source ran it; empty for a table created for its snapshot."""
    actions: tuple[Action, ...]
    """Effects of the statement; empty if `refusal` says why it can't be followed."""
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
    """True if the refusal applies only to targets in which the table exists."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"
