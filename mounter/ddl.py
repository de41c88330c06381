"""What a logged statement does to the followed tables.

Adding and dropping plain columns is followed. Any other change of a followed table's definition or of
all its rows is refused: the feed stops there with a sentence that quotes the statement. What touches no
followed table is passed over, and so is what isn't about tables. A statement about tables of which not
even the name can be made out is refused where tables of its session's schema are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from ..codec.mysql.definition import read_column
from ..codec.mysql.entry import Query
from ..codec.mysql.tokens import NotUnderstood, Tokens
from ..events import Action, AddColumn, Column, DropColumn

_QUOTED_CHARACTERS: Final = 1000
"""A refusal quotes so much of a statement."""


class Tables(Protocol):
    """Which tables the feed follows."""

    def matches(self, schema: str, table: str) -> bool: ...

    def touches(self, schema: str) -> bool:
        """Whether tables of this schema may be followed."""
        ...


class Change(Struct, frozen=True):
    """What a statement does to a followed table: actions, or a refusal that says why they can't be."""

    schema: str
    table: str
    """Empty where it isn't about one table, as in DROP DATABASE."""
    actions: tuple[Action, ...] = ()
    refusal: str = ""


_Name: TypeAlias = tuple[str, str]
"""Schema and table; the table is empty for all of the schema."""


def read_change(query: Query, tables: Tables) -> Change | None:
    """The change of a followed table, the first one if there are several; None if there is none."""
    try:
        tokens = Tokens(query.query, ansi_quotes=query.ansi_quotes)
        tokens.skip_settings()
        verb = tokens.accept_any("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE")
        if verb == "ALTER":
            return _read_alter(tokens, query, tables)
        what, touched = _touched(verb, tokens, query.schema)
    except NotUnderstood as reason:
        return _refusal((query.schema, ""), str(reason), query) if tables.touches(query.schema) else None
    for name in touched:
        if _followed(name, tables):
            return _refusal(name, f"{verb} {what}", query)
    return None


def _followed(name: _Name, tables: Tables) -> bool:
    schema, table = name
    return tables.matches(schema, table) if table else tables.touches(schema)


def _refusal(name: _Name, what: str, query: Query) -> Change:
    schema, table = name
    statement = " ".join(query.query.split())
    if len(statement) > _QUOTED_CHARACTERS:
        statement = statement[:_QUOTED_CHARACTERS] + " ..."
    where = f"table {schema}.{table}" if table else f"schema {schema}"
    reason = f"{where}: this can't be followed ({what}), only adding and dropping plain columns can"
    return Change(schema, table, refusal=f"{reason}: {statement}")


def _touched(verb: str, tokens: Tokens, schema: str) -> tuple[str, list[_Name]]:
    """What a statement other than ALTER is about, and the tables that it creates, drops, renames or
    empties, or whose indexes it changes."""
    if verb == "TRUNCATE":
        tokens.accept("TABLE")
        return "TABLE", [tokens.qualified_name(schema)]
    replaces = tokens.accept("OR", "REPLACE")
    tokens.accept_any("UNIQUE", "FULLTEXT", "SPATIAL")
    match tokens.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"):
        case "TABLE" | "TABLES":
            _skip_condition(tokens)
            names = [tokens.qualified_name(schema)]
            if verb != "CREATE":
                _skip_wait(tokens)
                while tokens.accept_any(",", "TO"):
                    names.append(tokens.qualified_name(schema))
                    _skip_wait(tokens)
            return "TABLE", names
        case "INDEX":
            while not tokens.accept("ON"):
                if tokens.take().kind == "end":
                    raise tokens.unexpected()
            return "INDEX", [tokens.qualified_name(schema)]
        case "DATABASE" | "SCHEMA" if verb == "DROP" or replaces:
            _skip_condition(tokens)
            return "DATABASE", [(tokens.name(), "")]
    return "", []


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
        return Change(*name, actions=tuple(_actions(tokens)))
    except NotUnderstood as what:
        return _refusal(name, str(what), query)


def _skip_condition(tokens: Tokens) -> None:
    tokens.accept("IF", "NOT", "EXISTS") or tokens.accept("IF", "EXISTS")


def _skip_wait(tokens: Tokens) -> None:
    if tokens.accept("WAIT"):
        tokens.number()
    else:
        tokens.accept("NOWAIT")


def _other_tables(tokens: Tokens, schema: str) -> Iterator[_Name]:
    """Tables named in the clauses of ALTER TABLE: the new name, those that trade places with a partition."""
    while tokens.next.kind != "end":
        if tokens.accept("RENAME"):
            if not tokens.accept_any("COLUMN", "INDEX", "KEY"):
                tokens.accept_any("TO", "AS", "=")
                yield tokens.qualified_name(schema)
        elif tokens.accept("TABLE"):
            yield tokens.qualified_name(schema)
        else:
            tokens.take()


def _actions(tokens: Tokens) -> Iterator[Action]:
    _skip_wait(tokens)
    while True:
        yield from _clause(tokens)
        if not tokens.accept(","):
            break
    tokens.accept(";")
    if tokens.next.kind != "end":
        raise tokens.unexpected()


_NOW: Final = frozenset(
    {"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE"}
)


def _added(tokens: Tokens) -> Column:
    """The column of an ADD. The binlog doesn't hold what its default puts into the rows that are there,
    so that must be a constant or the time of the statement."""
    column = read_column(tokens)
    default = Tokens(column.default or "NULL")
    default.accept_any("+", "-")
    value = default.take()
    known = value.kind in ("number", "string") or default.next.kind == "string"
    known |= value.value.startswith(("0X", "0B")) or value.value in _NOW | {"NULL", "TRUE", "FALSE"}
    if not known:
        raise NotUnderstood(f"DEFAULT {column.default}")
    return column


_NO_COLUMN: Final = frozenset({
    "INDEX", "KEY", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION",
})  # fmt: skip
"""What else ADD and DROP may be about. All of them are reserved words."""


def _clause(tokens: Tokens) -> Iterator[Action]:
    verb = tokens.accept_any("ADD", "DROP", "ALGORITHM", "LOCK")
    if verb in ("ALGORITHM", "LOCK"):  # how to go about it
        tokens.accept("=")
        tokens.take()
        return
    if not verb:
        raise tokens.unexpected()
    ahead = tokens.next
    if ahead.kind == "word" and ahead.value in _NO_COLUMN:
        raise NotUnderstood(f"{verb} {ahead.value}")
    tokens.accept("COLUMN")
    _skip_condition(tokens)
    if verb == "DROP":
        yield DropColumn(tokens.name())
        tokens.accept_any("RESTRICT", "CASCADE")
    elif tokens.accept("("):
        yield AddColumn(_added(tokens))
        while tokens.accept(","):
            yield AddColumn(_added(tokens))
        tokens.expect(")")
    else:
        column = _added(tokens)
        after = None
        if tokens.accept("FIRST"):
            after = ""
        elif tokens.accept("AFTER"):
            after = tokens.name()
        yield AddColumn(column, after)
