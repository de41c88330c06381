"""Effects of logged statements on the followed tables.

Adding and dropping plain columns is followed. Any other change of a followed table's definition or of
all its rows is refused: the feed stops there with an error that quotes the statement. Statements that touch
no followed table are ignored. A statement whose table names can't be parsed is refused if tables of its
session's schema are followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from ...codec.mysql.definition import read_column
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import (
    ANSI_QUOTES,
    EMPTY_STRING_IS_NULL,
    MAXDB,
    ORACLE,
    TIME_ROUND_FRACTIONAL,
    NotUnderstood,
    Tokens,
)
from ...events import Action, AddColumn, Column, DropColumn

_QUOTED_CHARACTERS: Final = 1000
"""Maximum number of characters of a statement that an error quotes."""


class Tables(Protocol):
    """The set of tables that the feed follows."""

    def matches(self, schema: str, table: str) -> bool: ...

    def touches(self, schema: str) -> bool:
        """Return True if tables of this schema may be followed."""
        ...


class Change(Struct, frozen=True):
    """Effect of a statement on a followed table: actions, or a refusal that says why it can't be followed."""

    schema: str
    table: str
    """Empty if the statement isn't about one table, as in DROP DATABASE."""
    actions: tuple[Action, ...] = ()
    refusal: str = ""
    if_exists: bool = False
    """True if the refusal applies only to targets in which the table exists."""


_Name: TypeAlias = tuple[str, str]
"""Schema and table; an empty table means the whole schema."""


def read_change(query: Query, tables: Tables) -> Change | None:
    """Return the first change of a followed table; None if there is none."""
    try:
        tokens = Tokens(query.query, query.sql_mode)
        tokens.skip_settings()
        verb = tokens.accept_any("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE")
        if verb == "ALTER":
            return _read_alter(tokens, query, tables)
        what, touched, if_exists = _touched(verb, tokens, query.schema)
    except NotUnderstood as reason:
        return _refusal((query.schema, ""), str(reason), query) if tables.touches(query.schema) else None
    followed = [name for name in touched if _followed(name, tables)]
    if not followed:
        return None
    # IF EXISTS did nothing if the first table of a RENAME, or the only followed one of a DROP, doesn't exist.
    alone = (len(touched) == 2 and followed[0] == touched[0]) if verb == "RENAME" else len(followed) == 1
    return _refusal(followed[0], f"{verb} {what}", query, if_exists=if_exists and alone)


def _followed(name: _Name, tables: Tables) -> bool:
    schema, table = name
    return tables.matches(schema, table) if table else tables.touches(schema)


def _refusal(name: _Name, what: str, query: Query, *, if_exists: bool = False) -> Change:
    schema, table = name
    statement = " ".join(query.query.split())
    if len(statement) > _QUOTED_CHARACTERS:
        statement = statement[:_QUOTED_CHARACTERS] + " ..."
    where = f"table {schema}.{table}" if table else f"schema {schema}"
    reason = f"{where}: this can't be followed ({what}), only adding and dropping plain columns can"
    way_out = "to go on, give every sink of the feed an empty target, and a new snapshot is taken"
    return Change(schema, table, refusal=f"{reason}; {way_out}: {statement}", if_exists=if_exists)


def _touched(verb: str, tokens: Tokens, schema: str) -> tuple[str, list[_Name], bool]:
    """Read a statement other than ALTER: its object, its affected tables, and True if it has IF EXISTS.

    Affected tables are those that it creates, drops, renames or empties, or whose indexes it changes.
    """
    if verb == "TRUNCATE":
        tokens.accept("TABLE")
        return "TABLE", [tokens.qualified_name(schema)], False
    replaces = tokens.accept("OR", "REPLACE")
    tokens.accept_any("UNIQUE", "FULLTEXT", "SPATIAL")
    match tokens.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"):
        case "TABLE" | "TABLES":
            if_exists = _skip_condition(tokens) and verb != "CREATE"
            names = [tokens.qualified_name(schema)]
            if verb != "CREATE":
                _skip_wait(tokens)
                while tokens.accept_any(",", "TO"):
                    names.append(tokens.qualified_name(schema))
                    _skip_wait(tokens)
            return "TABLE", names, if_exists
        case "INDEX":
            while not tokens.accept("ON"):
                if tokens.take().kind == "end":
                    raise tokens.unexpected()
            return "INDEX", [tokens.qualified_name(schema)], False
        case "DATABASE" | "SCHEMA" if verb == "DROP" or replaces:
            _skip_condition(tokens)
            return "DATABASE", [(tokens.name(), "")], False
    return "", [], False


def _read_alter(tokens: Tokens, query: Query, tables: Tables) -> Change | None:
    while tokens.accept_any("ONLINE", "IGNORE"):
        pass
    if not tokens.accept("TABLE"):
        return None
    _skip_condition(tokens)
    name = tokens.qualified_name(query.schema)
    if not _followed(name, tables):
        for other in _other_tables(tokens, query.schema):
            if _followed(other, tables):
                return _refusal(other, "ALTER TABLE of another table", query)
        return None
    try:
        if tokens.was_read_otherwise:
            raise NotUnderstood("SET STATEMENT of sql_mode or a character set")
        return Change(*name, actions=tuple(_actions(tokens, query)))
    except NotUnderstood as what:
        return _refusal(name, str(what), query)


def _skip_condition(tokens: Tokens) -> bool:
    """Skip IF EXISTS or IF NOT EXISTS; return True if there was one."""
    return tokens.accept("IF", "NOT", "EXISTS") or tokens.accept("IF", "EXISTS")


def _skip_wait(tokens: Tokens) -> None:
    if tokens.accept("WAIT"):
        tokens.number()
    else:
        tokens.accept("NOWAIT")


def _other_tables(tokens: Tokens, schema: str) -> Iterator[_Name]:
    """Yield tables named in clauses of ALTER TABLE: the new name, and tables exchanged with a partition."""
    while tokens.next.kind != "end":
        if tokens.accept("RENAME"):
            if not tokens.accept_any("COLUMN", "INDEX", "KEY"):
                tokens.accept_any("TO", "AS", "=")
                yield tokens.qualified_name(schema)
        elif tokens.accept("TABLE"):
            yield tokens.qualified_name(schema)
        else:
            tokens.take()


def _actions(tokens: Tokens, query: Query) -> Iterator[Action]:
    _skip_wait(tokens)
    while True:
        yield from _clause(tokens, query)
        if not tokens.accept(","):
            break
    tokens.accept(";")
    if tokens.next.kind != "end":
        raise tokens.unexpected()


_TODAY: Final = frozenset({"CURRENT_DATE", "CURDATE"})
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"}) | _TODAY
_DIGITS: Final = {"X", "B", "DATE", "TIME", "TIMESTAMP"}
"""Prefixes of a string that form a constant."""
_MOMENT: Final = re.compile(
    r"(?:TIMESTAMP )?'(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.\d*)?)?)?'", re.IGNORECASE
)
_FIXED_OFFSET: Final = re.compile(r"[+-]\d+:\d+")


def _added(tokens: Tokens, query: Query) -> Column:
    """Read the column of an ADD.

    The binlog doesn't contain the values that its default gives to existing rows: the default must be a
    constant or the time of the statement. Raises NotUnderstood otherwise.
    """
    column = read_column(tokens, explicit_timestamps=query.explicit_timestamps)
    text = column.default
    if text is None:
        return column
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
    binary = column.kind in ("binary", "varbinary", "blob")
    if binary and not text.isascii():
        raise NotUnderstood(f"DEFAULT {text} of a {column.kind}")
    if query.converts_strings and value.kind == "string" and (binary or not text.isascii()):
        raise NotUnderstood(f"DEFAULT {text} while character_set_connection isn't character_set_client")
    if "\ufffd" in text + column.name:
        raise NotUnderstood("a character that the session's character set doesn't have")
    if text == "''" and tokens.sql_mode & EMPTY_STRING_IS_NULL:
        raise NotUnderstood("DEFAULT '' while sql_mode=EMPTY_STRING_IS_NULL")
    if column.kind in ("time", "datetime", "timestamp"):
        if tokens.sql_mode & TIME_ROUND_FRACTIONAL:
            raise NotUnderstood(f"DEFAULT {text} while sql_mode=TIME_ROUND_FRACTIONAL")
        if column.kind == "timestamp" and not moment and not _has_known_clock(text, query):
            raise NotUnderstood(f"DEFAULT {text} in the time zone {query.time_zone}")
    needs_clock = moment and (column.kind != "timestamp" or value.value in _TODAY)
    if needs_clock and query.utc_offset_seconds is None:
        raise NotUnderstood(
            f"DEFAULT {text} by the server's own clock, of which it isn't known how far from UTC it was"
        )
    return column


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


_NO_COLUMN: Final = frozenset({
    "INDEX", "KEY", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION",
})  # fmt: skip
"""Objects of ADD and DROP that aren't columns; all are reserved words."""


def _clause(tokens: Tokens, query: Query) -> Iterator[Action]:
    verb = tokens.accept_any("ADD", "DROP", "ALGORITHM", "LOCK")
    if verb in ("ALGORITHM", "LOCK"):  # only the method of the change
        tokens.accept("=")
        tokens.take()
        return
    if not verb:
        raise tokens.unexpected()
    ahead = tokens.next
    if ahead.kind == "word" and ahead.value in _NO_COLUMN:
        raise NotUnderstood(f"{verb} {ahead.value}")
    tokens.accept("COLUMN")
    conditional = _skip_condition(tokens)
    if verb == "DROP":
        yield DropColumn(tokens.name(), conditional)
        tokens.accept_any("RESTRICT", "CASCADE")
        return
    if tokens.sql_mode & (ORACLE | MAXDB):
        raise NotUnderstood("ADD while sql_mode=ORACLE or MAXDB, which have other types")
    if tokens.accept("("):
        yield AddColumn(_added(tokens, query), None, conditional)
        while tokens.accept(","):
            yield AddColumn(_added(tokens, query), None, conditional)
        tokens.expect(")")
    else:
        column = _added(tokens, query)
        after = None
        if tokens.accept("FIRST"):
            after = ""
        elif tokens.accept("AFTER"):
            after = tokens.name()
        yield AddColumn(column, after, conditional)
