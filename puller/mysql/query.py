"""Query events: statements that the server logged as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final

from pymysql.charset import charset_by_id

from ...codec.mysql.entry import Query
from .compression import uncompress

DDL_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"})
DML_VERBS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "DO", "CALL"})
"""SELECT and DO are logged where a stored function changes data."""

_head = Struct("<IIBHH").unpack_from  # thread, seconds it took, length of schema, error, length of status
_STATUS_WIDTHS: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 128: 3, 129: 8}
_SQL_MODE, _CHARSET, _TIME_ZONE, _CATALOG, _MICROSECONDS = 1, 4, 5, 6, 128
_ANSI_QUOTES: Final = 4

# What may stand before the first word; the server runs what is inside /*! */ and /*M! */.
_VERB = re.compile(r"(?:\s+|/\*M?!\d*|/\*.*?\*/|--[ \t][^\n]*\n|\#[^\n]*\n|\()*([A-Za-z]+)", re.DOTALL)
_NAME = r"(?:(`[^`]+`|[\w$]+)\s*\.\s*)?(`[^`]+`|[\w$]+)"
_NAMES = re.compile(_NAME)
_INSERT = re.compile(
    rf"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE)\s+)*(?:INTO\s+)?{_NAME}", re.I
)
_LOAD = re.compile(rf"\bINTO\s+TABLE\s+{_NAME}", re.I)
_NO_NAMES: Final = frozenset(
    {"FROM", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN"}
    | {"ON", "USING", "AS", "AND", "OR", "PARTITION"}
)
_UPDATE = re.compile(r"UPDATE\s+(?:(?:LOW_PRIORITY|IGNORE)\s+)*(.*?)\sSET\s", re.I | re.DOTALL)
_DELETE = re.compile(
    r"DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)*(.*?)(?:\sWHERE\s|\sORDER\s|\sLIMIT\s|\sRETURNING\s|;|$)",
    re.I | re.DOTALL,
)


def parse_query(epoch_seconds: int, body: bytes, *, compressed: bool = False) -> Query:
    """The body of a query event."""
    _, _, schema_length, _, status_length = _head(body)
    status_end = 13 + status_length
    schema_end = status_end + schema_length
    ansi_quotes = False
    encoding = "utf-8"
    microseconds = 0
    for code, value in _status(body[13:status_end]):
        if code == _SQL_MODE:
            ansi_quotes = bool(int.from_bytes(value, "little") & _ANSI_QUOTES)
        elif code == _CHARSET:
            encoding = _encoding(int.from_bytes(value[:2], "little"))
        elif code == _MICROSECONDS:
            microseconds = int.from_bytes(value, "little")
    statement = body[schema_end + 1 :]
    if compressed:
        statement = uncompress(statement)
    return Query(
        schema=body[status_end:schema_end].decode(),
        query=statement.decode(encoding, "replace"),
        epoch_seconds=epoch_seconds + microseconds / 1e6,
        ansi_quotes=ansi_quotes,
    )


def _status(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The status variables up to the first one of a kind that isn't known."""
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in (_TIME_ZONE, _CATALOG):
            at += 1 + data[at]
            continue
        width = _STATUS_WIDTHS.get(code)
        if width is None:
            return
        yield code, data[at : at + width]
        at += width


def _encoding(charset: int) -> str:
    try:
        return charset_by_id(charset).encoding
    except KeyError:
        return "utf-8"


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
    if match := _INSERT.match(statement) or _LOAD.search(statement):
        return [_unquoted(match[1], match[2])]
    if match := _UPDATE.match(statement) or _DELETE.match(statement):
        found = _NAMES.findall(match[1])
        return [_unquoted(*names) for names in found if names[1].upper() not in _NO_NAMES]
    return None


def _unquoted(schema: str | None, name: str) -> tuple[str, str]:
    return (schema or "").strip("`"), name.strip("`")
