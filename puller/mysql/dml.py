"""Statements that the server logged in place of the rows that they changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ...errors import SourceError
from .query import VERB, LoggedStatement

DML_VERBS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "DO", "CALL"})
"""SELECT and DO are logged where a stored function changes data."""

_NAME = r"(?:(`[^`]+`|[\w$]+)\s*\.\s*)?(`[^`]+`|[\w$]+)"
_NAMES = re.compile(_NAME)
_INSERT = re.compile(
    rf"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE)\s+)*(?:INTO\s+)?{_NAME}", re.I
)
_LOAD = re.compile(rf"LOAD\s.*?\bINTO\s+TABLE\s+{_NAME}", re.I | re.DOTALL)
_NO_NAMES: Final = frozenset(
    {"FROM", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN"}
    | {"ON", "USING", "AS", "AND", "OR", "PARTITION"}
)
_UPDATE = re.compile(r"UPDATE\s+(?:(?:LOW_PRIORITY|IGNORE)\s+)*(.*?)\sSET\s", re.I | re.DOTALL)
_USING_COLUMNS = re.compile(r"\sUSING\s*\([^()]*\)", re.I)
_DELETE = re.compile(
    r"DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)*(.*?)(?:\sWHERE\s|\sORDER\s|\sLIMIT\s|\sRETURNING\s|;|$)",
    re.I | re.DOTALL,
)


def reject_followed(logged: LoggedStatement, follows: Callable[[str, str], bool], after: object) -> None:
    """Raise SourceError if a statement of DML_VERBS may change a followed table; `after` is its position."""
    tables = changed_tables(logged.without_settings)
    named = {(schema or logged.schema, name): None for schema, name in tables or ()}
    followed = [f"{schema}.{name}" for schema, name in named if follows(schema, name)]
    if tables is None or followed:
        of = (
            f"of {', '.join(followed)}"
            if followed
            else f"of tables that it doesn't name (schema {logged.schema})"
        )
        raise SourceError(
            f"after {after} the binlog has a statement instead of the rows {of}, "
            f"{logged.text[:200]!r}: set binlog_format = ROW for all sessions, then take a new snapshot"
        )


def changed_tables(statement: str) -> list[tuple[str, str]] | None:
    """Return (schema or "", name) of the tables that a statement of DML_VERBS may change; None if unclear.

    For a join, the list contains everything that could be the name of a table.
    """
    first = VERB.match(statement)
    statement = statement[first.start(1) :] if first else statement
    match = _INSERT.match(statement) or _LOAD.match(statement)
    if match:
        return [_unquoted(match[1], match[2])]
    match = _UPDATE.match(statement) or _DELETE.match(statement)
    if match:
        found = _NAMES.findall(_USING_COLUMNS.sub(" ", match[1]))
        return [_unquoted(*names) for names in found if names[1].upper() not in _NO_NAMES]
    return None


def _unquoted(schema: str | None, name: str) -> tuple[str, str]:
    return (schema or "").strip("`"), name.strip("`")
