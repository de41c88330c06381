"""Defaults of columns: the values that they give to existing rows, and how they are spelled."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec.structs import replace

from ...codec.mysql.definition import Definition
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import (
    ANSI_QUOTES,
    EMPTY_STRING_IS_NULL,
    TIME_ROUND_FRACTIONAL,
    NotUnderstood,
    Tokens,
)
from ...events import (
    BYTE_STRINGS,
    Column,
)

_TODAY: Final = frozenset({"CURRENT_DATE", "CURDATE"})
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"}) | _TODAY
_DIGITS: Final = {"X", "B", "DATE", "TIME", "TIMESTAMP"}
"""Prefixes of a string that form a constant."""
_MOMENT: Final = re.compile(
    r"(?:TIMESTAMP )?'(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.\d*)?)?)?'", re.IGNORECASE
)
_FIXED_OFFSET: Final = re.compile(r"[+-]\d+:\d+")


def check_text(column: Column, query: Query) -> None:
    """Raise NotUnderstood if the column's texts aren't known as the server has them."""
    texts = [column.name, column.default or "", *column.members]
    if any("\ufffd" in text for text in texts):
        raise NotUnderstood("a character that the session's character set doesn't have")
    text = column.default or ""
    is_binary = column.kind in BYTE_STRINGS
    if is_binary and not text.isascii():
        raise NotUnderstood(f"DEFAULT {text} of a {column.kind}")
    converted = [one for one in texts[1:] if not one.isascii() or (is_binary and one.startswith("'"))]
    if query.converts_strings and converted:
        raise NotUnderstood(f"{converted[0]} while character_set_connection isn't character_set_client")


def check_explicit(definition: Definition) -> None:
    """Raise NotUnderstood for a TIMESTAMP whose default the server chooses."""
    if definition.implicit_timestamp:
        raise NotUnderstood("a TIMESTAMP without NULL or DEFAULT while explicit_defaults_for_timestamp=OFF")


def check_added(column: Column, query: Query) -> None:
    """Check the column of an ADD. The binlog doesn't contain the values that its default gives to existing
    rows: the default must be a constant or the time of the statement. Raises NotUnderstood otherwise.
    """
    check_text(column, query)
    text = column.default
    if text is None:
        return
    default = Tokens(text, ANSI_QUOTES)  # constants have no double quotes
    negative = default.accept("-")
    value = default.take()
    moment = value.value in _NOW
    known = moment or value.kind == "string" or value.value in ("TRUE", "FALSE")
    known |= value.value in _DIGITS and default.next.kind == "string"
    known |= value.value.startswith(("0X", "0B"))
    known = value.kind == "number" or (known and not negative)
    if not known or (value.value == "TIME" and column.kind != "time"):
        raise NotUnderstood(f"DEFAULT {text}")
    if text == "''" and query.sql_mode & EMPTY_STRING_IS_NULL:
        raise NotUnderstood("DEFAULT '' while sql_mode=EMPTY_STRING_IS_NULL")
    if column.kind in ("time", "datetime", "timestamp"):
        if query.sql_mode & TIME_ROUND_FRACTIONAL:
            raise NotUnderstood(f"DEFAULT {text} while sql_mode=TIME_ROUND_FRACTIONAL")
        if column.kind == "timestamp" and not moment and not _has_known_clock(text, query):
            raise NotUnderstood(f"DEFAULT {text} in the time zone {query.time_zone}")
    needs_clock = moment and (column.kind != "timestamp" or value.value in _TODAY)
    if needs_clock and query.utc_offset_seconds is None:
        raise NotUnderstood(
            f"DEFAULT {text} by the server's own clock, of which it isn't known how far from UTC it was"
        )


def _has_known_clock(text: str, query: Query) -> bool:
    """Return True if the session's UTC offset was the same at the time in `text` and for the statement."""
    if _FIXED_OFFSET.fullmatch(query.time_zone) or not re.search("[1-9]", text):
        return True
    match = _MOMENT.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=ZoneInfo(query.time_zone))
    except (ZoneInfoNotFoundError, ValueError):
        return False
    now = timedelta(seconds=query.utc_offset_seconds or 0)
    return {local.utcoffset(), local.replace(fold=1).utcoffset()} == {now}


_MOMENT_CALL: Final = re.compile(
    r"(?:NOW|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)(?:\(([0-9]*)\))?", re.IGNORECASE
)


def is_moment(text: str | None) -> bool:
    """Return True for CURRENT_TIMESTAMP and its synonyms."""
    return _MOMENT_CALL.fullmatch(text or "") is not None


def same_definition(one: Column, other: Column) -> bool:
    """Return True if two columns differ at most in the spelling of CURRENT_TIMESTAMP, or in the collation of
    JSON."""
    return _plain(one) == _plain(other)


def _plain(column: Column) -> Column:
    if column.kind == "json":
        column = replace(column, collation=None)
    return replace(column, default=plain_default(column.default), on_update=plain_default(column.on_update))


def plain_default(text: str | None) -> str | None:
    """Return a default with CURRENT_TIMESTAMP in place of its synonyms."""
    match = _MOMENT_CALL.fullmatch(text or "")
    return text if match is None else f"CURRENT_TIMESTAMP({match[1] or ''})"
