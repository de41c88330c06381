"""Statements that the server logged in place of the rows that they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from shlex import quote
from typing import Final

from ...codec.mysql.effect import read_effect
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...errors import SourceError
from .query import LoggedStatement

_BEFORE_NAME: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO")
_NO_ALIAS: Final = frozenset(
    {"FROM", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN"}
    | {"ON", "USING", "USE", "FORCE", "IGNORE", "FOR"}
    | {"SET", "WHERE", "ORDER", "LIMIT", "RETURNING", "BEFORE"}
)
_SUBQUERY: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_ENDS: Final = {"UPDATE": frozenset({"SET"}), "DELETE": frozenset({"WHERE", "ORDER", "LIMIT", "RETURNING"})}
"""Words that end the tables of a statement."""


def changes_definitions(
    logged: LoggedStatement, of_mysql: bool, needs: Callable[[str, str], bool], after: object
) -> bool:
    """Return True if a statement may change definitions, or isn't understood: then the mounter refuses it.

    Raises SourceError if it may change rows of tables that some target needs; `after` is its position.
    """
    tokens = logged.tokens(of_mysql=of_mysql)
    try:
        effect = read_effect(tokens)
    except NotUnderstood:
        return True
    if effect == "rows":
        _reject_needed(logged, tokens, needs, after)
    return effect == "definitions"


def _reject_needed(
    logged: LoggedStatement, tokens: Tokens, needs: Callable[[str, str], bool], after: object
) -> None:
    try:
        tables = changed_tables(tokens)
    except NotUnderstood:
        tables = None
    needed = []
    for name in dict.fromkeys((schema or logged.schema, name) for schema, name in tables or ()):
        # A server that stores names in lower case finds a table by any other, too.
        spellings = (name, (name[0].lower(), name[1].lower()))
        needed += [".".join(one) for one in spellings if needs(*one)][:1]
    if tables is None or needed:
        of = ", ".join(needed) or f"tables that it doesn't name (schema {logged.schema})"
        again = " ".join(f"--resnapshot {quote(name)}" for name in needed) or "--resnapshot '*'"
        which = "all tables" if not needed else "the table" if len(needed) == 1 else "the tables"
        raise SourceError(
            f"after {after} the binlog has a statement instead of the rows of {of}, {logged.text[:200]!r}: "
            f"set binlog_format = ROW, also in open sessions, and load {which} again "
            f"(tidemill resume FEED {again}), or begin with empty targets"
        )


def changed_tables(tokens: Tokens) -> list[tuple[str, str]] | None:
    """Return (schema or "", name) of the tables that a statement may change whose verb comes next; None if
    unclear.

    For a join, the list contains every table in it. Raises NotUnderstood.
    """
    names_of_with: set[str] = set()
    if tokens.accept("WITH"):
        names_of_with = set(_names_of_with(tokens))
    elif tokens.accept("ANALYZE") and tokens.accept("FORMAT"):
        tokens.expect("=")
        tokens.take()
    verb = tokens.take().value
    while tokens.accept_any(*_BEFORE_NAME):
        pass
    match verb:
        case "INSERT" | "REPLACE":
            return [tokens.qualified_name("")]
        case "LOAD":
            while not tokens.accept("INTO", "TABLE"):
                if tokens.take().kind == "end":
                    return None
            return [tokens.qualified_name("")]
        case "UPDATE" | "DELETE":
            if not tokens.accept("HISTORY", "FROM"):
                tokens.accept("FROM")
            tables = _tables(tokens, _ENDS[verb])
            return [one for one in tables if one[0] or one[1].casefold() not in names_of_with] or None
    return None


def _names_of_with(tokens: Tokens) -> Iterator[str]:
    """Yield the names that a WITH defines, in lower case."""
    tokens.accept("RECURSIVE")
    while True:
        yield tokens.name().casefold()
        if tokens.accept("("):
            tokens.skip_to_closing()
        tokens.expect("AS")
        tokens.expect("(")
        tokens.skip_to_closing()
        if not tokens.accept(","):
            return


def _tables(tokens: Tokens, ends: frozenset[str]) -> list[tuple[str, str]]:
    """Return the tables up to one of the words `ends`: those of a join, and before it those that a DELETE
    names by their aliases or names."""
    targets: list[tuple[str, str]] = []
    tables: list[tuple[str, str]] = []
    aliases: set[str] = set()
    is_name_next = True
    while (token := tokens.next).kind != "end" and not (token.kind == "word" and token.value in ends):
        if is_name_next:
            if tokens.accept("("):
                if tokens.next.value in _SUBQUERY and tokens.next.kind == "word":
                    tokens.skip_to_closing()
                    is_name_next = False
                continue
            name = _table(tokens)
            if tokens.accept("("):  # a function such as JSON_TABLE, or LATERAL
                tokens.skip_to_closing()
            else:
                tables.append(name)
                aliases.update(_alias(tokens))
            is_name_next = False
        elif tokens.accept("(") or tokens.accept("USING", "("):
            tokens.skip_to_closing()
        elif tokens.accept_any("FROM", "USING"):
            targets += tables
            tables = []
            is_name_next = True
        elif tokens.accept_any(",", "JOIN", "STRAIGHT_JOIN"):
            is_name_next = True
        elif token.kind == "word" and token.value == "FOR":
            raise NotUnderstood("FOR")
        else:
            tokens.take()
    return [one for one in targets if one[0] or one[1].casefold() not in aliases] + tables


def _table(tokens: Tokens) -> tuple[str, str]:
    """Consume a table's name, which a DELETE may write with .* after it."""
    schema, name = "", tokens.name()
    if tokens.accept(".") and not tokens.accept("*"):
        schema, name = name, tokens.name()
        tokens.accept(".", "*")
    return schema, name


def _alias(tokens: Tokens) -> Iterator[str]:
    """Consume and yield a table's alias, in lower case, if one comes next."""
    if tokens.accept("PARTITION"):
        tokens.expect("(")
        tokens.skip_to_closing()
    token = tokens.next
    if tokens.accept("AS") or token.kind == "name" or (token.kind == "word" and token.value not in _NO_ALIAS):
        yield tokens.name().casefold()
