"""Statements that the server logged in place of the rows that they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ...codec.mysql.effect import read_effect
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...errors import SourceError
from .query import LoggedStatement

_BEFORE_NAME: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO")
_NO_NAMES: Final = frozenset(
    {"FROM", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN"}
    | {"ON", "USING", "AS", "AND", "OR", "PARTITION"}
)
_ENDS: Final = {"UPDATE": frozenset({"SET"}), "DELETE": frozenset({"WHERE", "ORDER", "LIMIT", "RETURNING"})}
"""Words that end the tables of a statement."""


def changes_definitions(
    logged: LoggedStatement, of_mysql: bool, follows: Callable[[str, str], bool], after: object
) -> bool:
    """Return True if a statement may change definitions, or isn't understood: then the mounter refuses it.

    Raises SourceError if it may change rows of followed tables that aren't logged; `after` is its position.
    """
    tokens = logged.tokens(of_mysql=of_mysql)
    try:
        effect = read_effect(tokens)
    except NotUnderstood:
        return True
    if effect == "rows":
        _reject_followed(logged, tokens, follows, after)
    return effect == "definitions"


def _reject_followed(
    logged: LoggedStatement, tokens: Tokens, follows: Callable[[str, str], bool], after: object
) -> None:
    try:
        tables = changed_tables(tokens)
    except NotUnderstood:
        tables = None
    named = {(schema or logged.schema, name): None for schema, name in tables or ()}
    followed = [f"{schema}.{name}" for schema, name in named if _follows(follows, schema, name)]
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


def _follows(follows: Callable[[str, str], bool], schema: str, name: str) -> bool:
    # A server that stores names in lower case finds a table by any other, too.
    return follows(schema, name) or follows(schema.lower(), name.lower())


def changed_tables(tokens: Tokens) -> list[tuple[str, str]] | None:
    """Return (schema or "", name) of the tables that a statement may change whose verb comes next; None if
    unclear.

    For a join, the list contains everything that could be the name of a table. Raises NotUnderstood.
    """
    if tokens.accept("WITH"):
        while not (tokens.next.kind == "word" and tokens.next.value in _ENDS):
            if _skip(tokens) == "end":
                return None
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
            return list(_names(tokens, _ENDS[verb])) or None
    return None


def _names(tokens: Tokens, ends: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield what may be the names of tables, up to one of the words `ends` that isn't in parentheses."""
    depth = 0
    while (token := tokens.next).kind != "end":
        if token.kind == "word" and token.value in ends and not depth:
            return
        if tokens.accept("USING"):
            if tokens.accept("("):  # names of columns
                tokens.skip_to_closing()
        elif token.kind == "name" or (token.kind == "word" and token.value not in _NO_NAMES):
            first = tokens.name()
            dot = tokens.next
            if tokens.accept(".") and tokens.next.kind in ("name", "word"):
                yield first, tokens.name()
            else:
                if tokens.next is not dot:
                    tokens.step_back_to(dot)
                yield "", first
        else:
            depth += (token.text == "(") - (token.text == ")")
            tokens.take()


def _skip(tokens: Tokens) -> str:
    """Skip a token, or what is in parentheses; return the kind of the token."""
    token = tokens.take()
    if token.kind == "mark" and token.value == "(":
        tokens.skip_to_closing()
    return token.kind
