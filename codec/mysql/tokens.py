"""The words of a statement in the source's dialect, and a reader over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

REAL_AS_FLOAT: Final = 1
ANSI_QUOTES: Final = 4
ORACLE: Final = 1 << 9
MAXDB: Final = 1 << 12
NO_BACKSLASH_ESCAPES: Final = 1 << 20
STRICT: Final = 3 << 21
EMPTY_STRING_IS_NULL: Final = 1 << 32
TIME_ROUND_FRACTIONAL: Final = 1 << 34
"""Bits of sql_mode, as the binlog has them."""

_PATTERN: Final = r"""
    (?P<space> \s+ | \#[^\n]* | --(?=\s|$)[^\n]* | /\*(?!M?!).*?\*/ )
  | (?P<executed> /\*M?!\d* | \*/ )            # what stands in /*! */ is part of the statement
  | (?P<single> '(?:[^'\\]|\\.|'')*' )
  | (?P<double> "(?:[^"\\]|\\.|"")*" )
  | (?P<name> `(?:[^`]|``)*` )
  | (?P<number> (?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w$]) )
  | (?P<word> [\w$@]+ )
  | (?P<mark> [^'"`] )
"""
_TOKEN: Final = re.compile(_PATTERN, re.DOTALL | re.VERBOSE)
_TOKEN_WITHOUT_ESCAPES: Final = re.compile(
    _PATTERN.replace(r"[^'\\]|\\.|", "[^']|").replace(r'[^"\\]|\\.|', '[^"]|'), re.DOTALL | re.VERBOSE
)
_READING: Final = {"SQL_MODE", "CHARACTER_SET_CONNECTION", "COLLATION_CONNECTION"}
"""Settings that say how a statement is read."""
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class NotUnderstood(Exception):
    """The statement isn't one that is read here; the message says what of it isn't."""


class Token(NamedTuple):
    kind: str
    """word, name (in quotes), string, number or mark; "end" after the last one."""
    value: str
    """Without quotes; of a word, in capitals."""
    start: int
    end: int
    text: str
    """As it stands in the statement."""


class Tokens:
    """Reads a statement word by word. Comments are skipped, save those that the server executes."""

    def __init__(self, statement: str, sql_mode: int = 0) -> None:
        """Of a session with that sql_mode. Raises NotUnderstood where a quote isn't closed."""
        self.sql_mode = sql_mode
        self.was_read_otherwise = False
        """It ran with settings of its own that the server didn't have yet when it read the text."""
        self._statement = statement
        self._tokens = list(_tokens(statement, sql_mode))
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, *values: str) -> bool:
        """Step over these words and marks if all of them come next."""
        ahead = self._tokens[self._at : self._at + len(values)]
        if [token.value for token in ahead if token.kind in ("word", "mark")] != list(values):
            return False
        self._at += len(values)
        return True

    def accept_any(self, *values: str) -> str:
        """Step over one of these words and return it; empty if none comes next."""
        return next((value for value in values if self.accept(value)), "")

    def expect(self, value: str) -> None:
        if not self.accept(value):
            raise self.unexpected()

    def name(self) -> str:
        """An identifier, in quotes or not."""
        token = self.take()
        if token.kind == "name":
            return token.value
        if token.kind in ("word", "number"):
            return token.text
        raise NotUnderstood("a name is missing" + (f" before {token.text}" if token.text else ""))

    def qualified_name(self, schema: str) -> tuple[str, str]:
        """A table's schema and name; `schema` where it isn't given."""
        name = self.name()
        return (name, self.name()) if self.accept(".") else (schema, name)

    def number(self) -> int:
        token = self.take()
        if token.kind != "number" or not token.value.isdecimal():
            raise NotUnderstood(f"a number is missing before {token.text}")
        return int(token.value)

    def string(self) -> str:
        token = self.take()
        if token.kind != "string":
            raise NotUnderstood(f"a string is missing before {token.text}")
        return token.value

    def text_since(self, start: Token) -> str:
        """The statement from `start` up to the last token taken."""
        return self._statement[start.start : self._tokens[self._at - 1].end]

    def step_back_to(self, token: Token) -> None:
        """Have this one, which was next before, come next again."""
        self._at = self._tokens.index(token)

    def skip_to_closing(self) -> None:
        """Step over the rest of a stretch in parentheses whose "(" was taken."""
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                raise self.unexpected()
            if token.kind == "mark":
                depth += (token.value == "(") - (token.value == ")")

    def skip_settings(self) -> Token:
        """Step over SET STATEMENT ... FOR if it comes next. The token that comes next then.

        Raises NotUnderstood where the FOR is missing.
        """
        while self.accept("SET", "STATEMENT"):
            while not self.accept("FOR"):
                if self.next.kind == "end":
                    raise self.unexpected()
                self.was_read_otherwise |= self.next.kind != "string" and self.next.value.upper() in _READING
                if self.accept("("):  # in which FOR is a part of SUBSTRING(x FROM 1 FOR 2), for one
                    self.skip_to_closing()
                else:
                    self.take()
        return self.next

    def unexpected(self) -> NotUnderstood:
        token = self.next
        return NotUnderstood(token.text if token.kind != "end" else "it ends too early")


def literal(value: str) -> str:
    """As a string that a session without special sql_mode reads."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def _tokens(statement: str, sql_mode: int) -> Iterator[Token]:
    escapes = not sql_mode & NO_BACKSLASH_ESCAPES
    next_token = (_TOKEN if escapes else _TOKEN_WITHOUT_ESCAPES).match
    at = 0
    while at < len(statement):
        match = next_token(statement, at)
        if match is None:
            raise NotUnderstood("a quote isn't closed")
        at = match.end()
        kind, text = match.lastgroup or "", match[0]
        if kind in ("space", "executed"):
            continue
        if kind == "double":
            kind = "name" if sql_mode & ANSI_QUOTES else "string"
        elif kind == "single":
            kind = "string"
        value = text
        if kind == "string":
            value = text[1:-1].replace(text[0] * 2, text[0])
            if escapes:
                value = _ESCAPE.sub(_unescaped, value)
        elif kind == "name":
            value = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "word":
            value = text.upper()
        yield Token(kind, value, match.start(), at, text)
    yield Token("end", "", at, at, "")


def _unescaped(match: re.Match[str]) -> str:
    # \% and \_ keep the backslash; before any other character it goes.
    return _ESCAPED.get(match[1]) or (match[0] if match[1] in "%_" else match[1])
