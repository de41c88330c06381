"""Changes of a table's columns as SQL of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...errors import InvariantViolated, SinkError
from ...events import Action, AddColumn, Ddl, DropColumn
from . import mysql_text as text
from .defaults import LOAD_AGAIN, needs_clock
from .mysql_session import UTC

_LEAST_OFFSET: Final = -(12 * 60 + 59) * 60
_MOST_OFFSET: Final = 13 * 3600
"""UTC offsets, in seconds, that MariaDB accepts as a time zone."""


def session_zone(ddl: Ddl, actions: Iterable[Action], identity: str) -> str:
    """Return the time zone to run a statement in: its session's, if a default depends on the clock.

    Raises SinkError if no server knows that zone; `identity` names the target in it.
    """
    clocks = [
        action.column.name
        for action in actions
        if isinstance(action, AddColumn) and needs_clock(action.column)
    ]
    if not clocks:
        return UTC
    ahead = ddl.utc_offset_seconds
    if ahead % 60 or not _LEAST_OFFSET <= ahead <= _MOST_OFFSET:
        raise SinkError(
            f"{identity}: what the default of {ddl.full_name}, column {clocks[0]}, put into the "
            f"existing rows can't be computed here, {ahead} s ahead of UTC; {LOAD_AGAIN}"
        )
    hours, minutes = divmod(abs(ahead) // 60, 60)
    return f"{'-' if ahead < 0 else '+'}{hours:02}:{minutes:02}"


def alteration(action: Action) -> str:
    """Return the clause of an ALTER TABLE."""
    match action:
        case AddColumn(column, after):
            place = "" if after is None else " FIRST" if after == "" else f" AFTER {text.name(after)}"
            definition = text.define(column)
            if column.kind == "timestamp" and not column.nullable and column.default is None:
                # A server with explicit_defaults_for_timestamp=OFF would use the current time.
                definition += " DEFAULT '0000-00-00 00:00:00'"
            return f"ADD COLUMN {definition}{place}"
        case DropColumn(name):
            return f"DROP COLUMN {text.name(name)}"
        case _:
            raise InvariantViolated(f"{type(action).__name__} came among changes of columns")


def altered(before: Iterable[str], actions: Iterable[Action]) -> set[str]:
    """Return the names of the columns after the statement, in lower case."""
    names = {name.lower() for name in before}
    for action in actions:
        if isinstance(action, AddColumn):
            names.add(action.column.name.lower())
        elif isinstance(action, DropColumn):
            names.discard(action.name.lower())
    return names
