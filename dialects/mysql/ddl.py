"""Changes of a table's columns and key as SQL of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ...codec.mysql.column_defaults import needs_clock
from ...codec.mysql.definition import parse_column
from ...codec.mysql.tokens import NotUnderstood
from ...errors import InvariantViolated, NotReproducible
from ...events import Action, AddColumn, ChangeColumn, ChangeKey, Column, Ddl, DropColumn
from . import text as text
from .session import UTC

_LEAST_OFFSET: Final = -(12 * 60 + 59) * 60
_MOST_OFFSET: Final = 13 * 3600
"""UTC offsets, in seconds, that MariaDB accepts as a time zone."""


def session_zone(ddl: Ddl, actions: Iterable[Action]) -> str:
    """Return the time zone to run a statement in: its session's, if a default depends on the clock.

    Raises NotReproducible if no server knows that zone.
    """
    clocks = [
        action.column.name
        for action in actions
        if isinstance(action, (AddColumn, ChangeColumn)) and needs_clock(action.column)
    ]
    if not clocks:
        return UTC
    ahead = ddl.utc_offset_seconds
    if ahead % 60 or not _LEAST_OFFSET <= ahead <= _MOST_OFFSET:
        raise NotReproducible(
            ddl.full_name,
            f"what the default of column {clocks[0]} put into the existing rows can't be computed here, "
            f"{ahead} s ahead of UTC",
        )
    hours, minutes = divmod(abs(ahead) // 60, 60)
    return f"{'-' if ahead < 0 else '+'}{hours:02}:{minutes:02}"


def alterations(
    actions: Iterable[Action], have: Mapping[str, str], end_of: Callable[[Column], str] = lambda _: ""
) -> Iterator[str]:
    """Yield the clauses of an ALTER TABLE; `have` has the types of the table's columns by name, and `end_of`
    returns the end of a column's definition."""
    columns = {name.lower(): column for name, type_ in have.items() if (column := known_column(name, type_))}
    for action in actions:
        match action:
            case AddColumn(column, after, _, str(expression)) if expression:
                columns[column.name.lower()] = column
                definition = text.define(replace(column, nullable=True)).removesuffix(" NULL")
                stored = f"{definition} GENERATED ALWAYS AS {expression} STORED"
                yield f"ADD COLUMN {stored}{end_of(column)}{_place(after)}"
            case AddColumn(column, after):
                columns[column.name.lower()] = column
                definition = text.define(column)
                if column.kind == "timestamp" and not column.nullable and column.default is None:
                    # A server with explicit_defaults_for_timestamp=OFF would use the current time.
                    definition += " DEFAULT '0000-00-00 00:00:00'"
                yield f"ADD COLUMN {definition}{end_of(column)}{_place(after)}"
            case DropColumn(name):
                yield f"DROP COLUMN {text.name(name)}"
            case ChangeColumn(name, column, _, after):
                columns[column.name.lower()] = column
                yield f"CHANGE COLUMN {text.name(name)} {text.define(column)}{end_of(column)}{_place(after)}"
            case ChangeKey(names):
                if any(type_.endswith(" key") for type_ in have.values()):
                    yield "DROP PRIMARY KEY"
                if names:
                    parts = [text.key_part(name, columns.get(name.lower()), len(names)) for name in names]
                    yield f"ADD PRIMARY KEY ({', '.join(parts)})"
            case _:
                raise InvariantViolated(f"{type(action).__name__} came among changes of columns")


def known_column(name: str, type_: str, *, is_mariadb: bool = True) -> Column | None:
    """Return the column of a type that information_schema shows; None for a type that no source has."""
    with suppress(NotUnderstood):
        return parse_column(name, type_.removesuffix(" key"), of_mysql=not is_mariadb)
    return None


def _place(after: str | None) -> str:
    return "" if after is None else " FIRST" if after == "" else f" AFTER {text.name(after)}"
