"""The words of a statement in the source's dialect, and a reader over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | \#[^\n]* | --(?=\s|$)[^\n]* | /\*(?!M?!).*?\*/ )
  | (?P<executed> /\*M?!\d* | \*/ )            # what stands in /*! */ is part of the statement
  | (?P<single> '(?:[^'\\]|\\.|'')*' )
  | (?P<double> "(?:[^"\\]|\\.|"")*" )
  | (?P<name> `(?:[^`]|``)*` )
  | (?P<number> (?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w$]) )
  | (?P<word> [\w$@]+ )
  | (?P<mark> [^'"`] )
    """,
    re.DOTALL | re.VERBOSE,
)
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

    def __init__(self, statement: str, *, ansi_quotes: bool = False) -> None:
        """Raises NotUnderstood where a quote isn't closed."""
        self._statement = statement
        self._tokens = list(_tokens(statement, "name" if ansi_quotes else "string"))
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
                if self.accept("("):  # in which FOR is a part of SUBSTRING(x FROM 1 FOR 2), for one
                    self.skip_to_closing()
                else:
                    self.take()
        return self.next

    def unexpected(self) -> NotUnderstood:
        token = self.next
        return NotUnderstood(token.text if token.kind != "end" else "it ends too early")


def _tokens(statement: str, double_quoted: str) -> Iterator[Token]:
    at = 0
    while at < len(statement):
        match = _TOKEN.match(statement, at)
        if match is None:
            raise NotUnderstood("a quote isn't closed")
        at = match.end()
        kind, text = match.lastgroup or "", match[0]
        if kind in ("space", "executed"):
            continue
        if kind == "double":
            kind = double_quoted
        elif kind == "single":
            kind = "string"
        value = text
        if kind == "string":
            value = _ESCAPE.sub(_unescaped, text[1:-1].replace(text[0] * 2, text[0]))
        elif kind == "name":
            value = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "word":
            value = text.upper()
        yield Token(kind, value, match.start(), at, text)
    yield Token("end", "", at, at, "")


def _unescaped(match: re.Match[str]) -> str:
    # \% and \_ keep the backslash; before any other character it goes.
    return _ESCAPED.get(match[1]) or (match[0] if match[1] in "%_" else match[1])
