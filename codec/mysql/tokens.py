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
NO_AUTO_VALUE_ON_ZERO: Final = 1 << 19
STRICT: Final = 3 << 21
EMPTY_STRING_IS_NULL: Final = 1 << 32
TIME_ROUND_FRACTIONAL: Final = 1 << 34
"""Bits of sql_mode, as in the binlog."""

_PATTERN: Final = r"""
    (?P<space> \s+ | \#[^\n]* | --(?=\s|$)[^\n]* | /\*(?!M?!).*?\*/ )
  | (?P<executed> /\*M?!\d* | \*/ )            # the content of /*! */ is part of the statement
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
"""Settings that change how a statement is parsed."""
_MARIADB_ONLY: Final = re.compile(r"/\*M!.*?\*/", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class NotUnderstood(Exception):
    """The statement can't be parsed; the message names the part."""


class Token(NamedTuple):
    kind: str
    """Kind: word, name (in quotes), string, number or mark; "end" after the last one."""
    value: str
    """The text without quotes; a word in capitals."""
    start: int
    end: int
    text: str
    """The text as written in the statement."""


class Tokens:
    """Reads a statement token by token. Comments are skipped, except those that the server executes."""

    def __init__(
        self, statement: str, sql_mode: int = 0, *, folds_names: bool = False, of_mysql: bool = False
    ) -> None:
        """Read a statement of a session with that sql_mode. `folds_names` is True if the server's
        lower_case_table_names is 1, and `of_mysql` if it is a MySQL, for which the content of /*M! */ is a
        comment. Raises NotUnderstood for an unterminated quote."""
        self.sql_mode = sql_mode
        self.of_mysql = of_mysql
        self._folds_names = folds_names
        self.was_read_otherwise = False
        """True if it ran with settings of its own that weren't in effect when the server parsed it."""
        self._statement = statement
        self._tokens = list(_tokens(statement, sql_mode, of_mysql))
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
        """Consume these words and marks if all of them come next."""
        first = self.next
        if first.value != values[0] or first.kind not in ("word", "mark"):  # nearly always
            return False
        ahead = self._tokens[self._at : self._at + len(values)]
        if [token.value for token in ahead if token.kind in ("word", "mark")] != list(values):
            return False
        self._at += len(values)
        return True

    def accept_any(self, *values: str) -> str:
        """Consume and return one of these words; empty if none comes next."""
        return next((value for value in values if self.accept(value)), "")

    def expect(self, value: str) -> None:
        if not self.accept(value):
            raise self.unexpected()

    def name(self) -> str:
        """Consume and return an identifier, in quotes or not."""
        token = self.take()
        if token.kind == "name":
            return token.value
        if token.kind in ("word", "number"):
            return token.text
        raise NotUnderstood("a name is missing" + (f" before {token.text}" if token.text else ""))

    def qualified_name(self, schema: str) -> tuple[str, str]:
        """Consume a table's name; return its schema (by default `schema`) and name."""
        name = self.stored_name()
        return (name, self.stored_name()) if self.accept(".") else (schema, name)

    def stored_name(self) -> str:
        """Consume the name of a database or table; return it as the server stores it."""
        name = self.name()
        return name.lower() if self._folds_names else name

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
        """Return the statement from `start` up to the last token consumed."""
        return self._statement[start.start : self._tokens[self._at - 1].end]

    def since(self, start: Token) -> list[Token]:
        """Return the tokens from `start` up to the last one consumed."""
        return self._tokens[self._tokens.index(start) : self._at]

    def step_back_to(self, token: Token) -> None:
        """Go back to a token, which comes next again."""
        while self.next is not token:
            self._at -= 1

    def skip_to_closing(self) -> None:
        """Skip to the end of parentheses whose "(" was consumed."""
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                raise self.unexpected()
            if token.kind == "mark":
                depth += (token.value == "(") - (token.value == ")")

    def skip_clause(self) -> None:
        """Skip to the comma or closing parenthesis that ends a clause of a list, or to the end."""
        while self.next.kind != "end" and not (self.next.kind == "mark" and self.next.value in ",)"):
            if self.take().value == "(" and self._tokens[self._at - 1].kind == "mark":
                self.skip_to_closing()

    def skip_setting(self) -> bool:
        """Skip "name = value" if it comes next."""
        ahead = self._tokens[self._at : self._at + 2]
        found = len(ahead) == 2 and ahead[0].kind in ("word", "name") and ahead[1].value == "="
        if found:
            self._at += 2
            self.take()
        return found

    def skip_settings(self) -> Token:
        """Skip SET STATEMENT ... FOR if it comes next; return the next token.

        Raises NotUnderstood if the FOR is missing.
        """
        while self.accept("SET", "STATEMENT"):
            while not self.accept("FOR"):
                if self.next.kind == "end":
                    raise self.unexpected()
                self.was_read_otherwise |= self.next.kind != "string" and self.next.value.upper() in _READING
                if self.accept("("):  # an inner FOR, as in SUBSTRING(x FROM 1 FOR 2)
                    self.skip_to_closing()
                else:
                    self.take()
        return self.next

    def unexpected(self) -> NotUnderstood:
        token = self.next
        return NotUnderstood(token.text if token.kind != "end" else "it ends too early")


def quoted(name: str) -> str:
    """Return a name quoted for SQL, such as `order`."""
    return "`" + name.replace("`", "``") + "`"


def qualified(*names: str) -> str:
    """Return names quoted for SQL, such as `shop`.`order`."""
    return ".".join(map(quoted, names))


def literal(value: str) -> str:
    """Return a string literal that a session without special sql_mode reads as `value`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def _tokens(statement: str, sql_mode: int, of_mysql: bool) -> Iterator[Token]:
    escapes = not sql_mode & NO_BACKSLASH_ESCAPES
    next_token = (_TOKEN if escapes else _TOKEN_WITHOUT_ESCAPES).match
    at = 0
    while at < len(statement):
        match = (of_mysql and _MARIADB_ONLY.match(statement, at)) or next_token(statement, at)
        if match is None:
            raise NotUnderstood("a quote isn't closed")
        at = match.end()
        kind, text = match.lastgroup, match[0]
        if kind is None or kind in ("space", "executed"):
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
    # \% and \_ keep the backslash; before any other character it is dropped.
    return _ESCAPED.get(match[1]) or (match[0] if match[1] in "%_" else match[1])
