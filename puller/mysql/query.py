"""Query events: statements that the server logged as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from struct import Struct
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pymysql.charset import charset_by_id

from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...errors import SourceError
from .compression import uncompress

DDL_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "SET"})
"""SET: what a SET STATEMENT that can't be read begins with; the mounter says whether to refuse it."""
DML_VERBS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "DO", "CALL"})
"""SELECT and DO are logged where a stored function changes data."""

_head = Struct("<IIBHH").unpack_from  # thread, seconds it took, length of schema, error, length of status
_STATUS_WIDTHS: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 128: 3, 129: 8}
_SQL_MODE, _CHARSET, _TIME_ZONE, _CATALOG, _MICROSECONDS = 1, 4, 5, 6, 128
_ANSI_QUOTES: Final = 4
_HEAD: Final = 13
_OFFSET = re.compile(r"([+-])(\d+):(\d+)")

# What may stand before the first word; the server runs what is inside /*! */ and /*M! */.
_VERB = re.compile(r"(?:\s|/\*M?!\d*|/\*.*?\*/|--[ \t][^\n]*\n|\#[^\n]*\n|\()*([A-Za-z]+)", re.DOTALL)
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
_DELETE = re.compile(
    r"DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)*(.*?)(?:\sWHERE\s|\sORDER\s|\sLIMIT\s|\sRETURNING\s|;|$)",
    re.I | re.DOTALL,
)


class LoggedStatement:
    """The body of a query event."""

    def __init__(self, body: bytes, *, compressed: bool = False) -> None:
        _, _, schema_length, _, status_length = _head(body)
        status_end = _HEAD + status_length
        schema_end = status_end + schema_length
        self._status = dict(_variables(body[_HEAD:status_end]))
        text = body[schema_end + 1 :]
        self.schema = body[status_end:schema_end].decode()
        """The session's default database."""
        self.text = (uncompress(text) if compressed else text).decode(self._encoding(), "replace")

    def as_query(self, epoch_seconds: int, system_offset_seconds: int) -> Query:
        """With all that may count for its effect.

        `system_offset_seconds` is how far the server's own time zone is ahead of UTC. Raises SourceError
        if the session had a zone that isn't known here.
        """
        status = self._status
        zone = status.get(_TIME_ZONE, b"SYSTEM").decode()
        return Query(
            schema=self.schema,
            query=self.text,
            epoch_seconds=epoch_seconds + _number(status.get(_MICROSECONDS, b"")) / 1e6,
            ansi_quotes=self._ansi_quotes,
            utc_offset_seconds=(
                system_offset_seconds if zone == "SYSTEM" else _utc_offset(zone, epoch_seconds)
            ),
        )

    @property
    def without_settings(self) -> str:
        """The text behind SET STATEMENT ... FOR, if it begins so; all of it where that can't be read."""
        if verb(self.text) != "SET":
            return self.text
        try:
            return self.text[Tokens(self.text, ansi_quotes=self._ansi_quotes).skip_settings().start :]
        except NotUnderstood:
            return self.text

    @property
    def _ansi_quotes(self) -> bool:
        return bool(_number(self._status.get(_SQL_MODE, b"")) & _ANSI_QUOTES)

    def _encoding(self) -> str:
        collation = _number(self._status.get(_CHARSET, b"")[:2])  # of what the client sends
        try:
            return charset_by_id(collation).encoding
        except KeyError:
            return "utf-8"


def _variables(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The status variables (kind, value) up to the first one of a kind that isn't known."""
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in (_TIME_ZONE, _CATALOG):
            width = data[at]
            at += 1
        elif code in _STATUS_WIDTHS:
            width = _STATUS_WIDTHS[code]
        else:
            return
        yield code, data[at : at + width]
        at += width


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little")


def _utc_offset(zone: str, epoch_seconds: int) -> int:
    if match := _OFFSET.fullmatch(zone):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60
        return -seconds if match[1] == "-" else seconds
    try:
        offset = datetime.fromtimestamp(epoch_seconds, ZoneInfo(zone)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError):
        raise SourceError(
            f"a statement was run in the time zone {zone!r}, which isn't known here: install tzdata"
        ) from None
    return int(offset.total_seconds()) if offset else 0


def verb(statement: str) -> str:
    """The statement's first word in capitals; empty if there is none."""
    match = _VERB.match(statement)
    return match[1].upper() if match else ""


def changed_tables(statement: str) -> list[tuple[str, str]] | None:
    """(schema or "", name) of the tables that a statement of DML_VERBS may change; None if unclear.

    Where several are joined, everything that could be a table's name is in the list.
    """
    first = _VERB.match(statement)
    statement = statement[first.start(1) :] if first else statement
    match = _INSERT.match(statement) or _LOAD.match(statement)
    if match:
        return [_unquoted(match[1], match[2])]
    match = _UPDATE.match(statement) or _DELETE.match(statement)
    if match:
        found = _NAMES.findall(match[1])
        return [_unquoted(*names) for names in found if names[1].upper() not in _NO_NAMES]
    return None


def _unquoted(schema: str | None, name: str) -> tuple[str, str]:
    return (schema or "").strip("`"), name.strip("`")
