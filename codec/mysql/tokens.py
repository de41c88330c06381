"""The words of a statement in the source's dialect, and a reader over them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
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

# Possessive quantifiers keep the time linear and the memory constant, whatever the text.
_PATTERN: Final = r"""
    (?P<space> [\t-\r ]++ | \#[^\n]*+ | --(?=[\x00-\x20\x7f]|\Z)[^\n]*+ | /\*(?!EXECUTED).*?\*/ )
  | (?P<opening> /\*EXECUTED(?:VERSION)? )      # the content of /*! */ is part of the statement
  | (?P<closing> \*/ )
  | (?P<single> '(?:[^'ESCAPE]++|ESCAPED|'')*+' )
  | (?P<double> "(?:[^"ESCAPE]++|ESCAPED|"")*+" )
  | (?P<name> `(?:[^`]++|``)*+` )
  | (?P<number> (?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![WORD]) )
  | (?P<word> [WORD@]++ )
  | (?P<unclosed> ['"`] | /\* | \xa0 )
  | (?P<mark> . )
"""
_WORD: Final = r"0-9A-Za-z_$\x80-\x9f\xa1-\U0010ffff"
"""Characters of names without quotes: outside ASCII all but the no-break space, which is a space in some
character sets."""
_MAX_DIGITS: Final = 100
_READING: Final = {"SQL_MODE", "CHARACTER_SET_CONNECTION", "COLLATION_CONNECTION"}
"""Settings that change how a statement is parsed."""
_UNCLOSED: Final = {"/*": "a comment isn't closed", "\xa0": "a no-break space outside quotes"}
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
    executed: bool = False
    """True inside a comment that the server executes."""


class Tokens:
    """Reads a statement token by token, and only as far as needed. Comments are skipped, except those that
    the server executes."""

    def __init__(
        self, statement: str, sql_mode: int = 0, *, folds_names: bool = False, of_mysql: bool = False
    ) -> None:
        """Read a statement of a session with that sql_mode. `folds_names` is True if the server's
        lower_case_table_names is 1, and `of_mysql` if it is a MySQL, for which the content of /*M! */ is a
        comment. The methods raise NotUnderstood for a quote or comment that isn't closed."""
        self.sql_mode = sql_mode
        self.of_mysql = of_mysql
        self._folds_names = folds_names
        self.was_read_otherwise = False
        """True if it ran with settings of its own that weren't in effect when the server parsed it."""
        self._statement = statement
        self._match = _scanner(not sql_mode & NO_BACKSLASH_ESCAPES, of_mysql)
        self._at = 0
        """End of the last token consumed."""
        self._executed = False
        self._next: Token | None = None
        """The token after `_at`; None until it is asked for."""

    @property
    def next(self) -> Token:
        token = self._next
        if token is None:
            token = self._next = self._scan(self._at, self._executed)
        return token

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self._at, self._executed, self._next = token.end, token.executed, None
        return token

    def accept(self, *values: str) -> bool:
        """Consume these words and marks if all of them come next."""
        first = self.next
        if first.value != values[0] or first.kind not in ("word", "mark"):  # nearly always
            return False
        self.take()
        for value in values[1:]:
            if self.next.value != value or self.next.kind not in ("word", "mark"):
                self.step_back_to(first)
                return False
            self.take()
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
        if token.kind != "number" or not token.value.isdecimal() or len(token.value) > _MAX_DIGITS:
            raise NotUnderstood(f"a number is missing before {token.text}")
        return int(token.value)

    def string(self) -> str:
        token = self.take()
        if token.kind != "string":
            raise NotUnderstood(f"a string is missing before {token.text}")
        return token.value

    def text_since(self, start: Token) -> str:
        """Return the statement from `start` up to the last token consumed."""
        return self._statement[start.start : self._at]

    def since(self, start: Token) -> Iterator[Token]:
        """Yield the tokens from `start` up to the last one consumed."""
        token, end = start, self._at
        while token.start < end:
            yield token
            token = self._scan(token.end, token.executed)

    def step_back_to(self, token: Token) -> None:
        """Go back to a token, which comes next again."""
        self._at, self._executed, self._next = token.start, token.executed, token

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
            token = self.take()
            if token.value == "(" and token.kind == "mark":
                self.skip_to_closing()

    def skip_setting(self) -> bool:
        """Skip "name = value" if it comes next."""
        name = self.next
        if name.kind not in ("word", "name"):
            return False
        self.take()
        if self.next.value != "=":
            self.step_back_to(name)
            return False
        self.take()
        self.take()
        return True

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

    def _scan(self, offset: int, executed: bool) -> Token:
        """Return the token at or after `offset`."""
        statement = self._statement
        while offset < len(statement):
            match = self._match(statement, offset)
            assert match is not None  # a mark is any character
            start, offset, kind, text = offset, match.end(), match.lastgroup or "", match[0]
            if kind == "closing" and not executed:
                kind, text, offset = "mark", "*", start + 1
            if kind in ("opening", "closing"):
                executed = kind == "opening"
            elif kind == "unclosed":
                raise NotUnderstood(_UNCLOSED.get(text, "a quote isn't closed"))
            elif kind != "space":
                return self._token(kind, text, start, offset, executed)
        return Token("end", "", offset, offset, "", executed)

    def _token(self, kind: str, text: str, start: int, end: int, executed: bool) -> Token:
        value = text
        if kind == "double":
            kind = "name" if self.sql_mode & ANSI_QUOTES else "string"
        elif kind == "single":
            kind = "string"
        if kind == "string":
            value = text[1:-1].replace(text[0] * 2, text[0])
            if not self.sql_mode & NO_BACKSLASH_ESCAPES:
                value = _ESCAPE.sub(_unescaped, value)
        elif kind == "name":
            value = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "word":
            value = text.upper()
        return Token(kind, value, start, end, text, executed)


def quoted(name: str) -> str:
    """Return a name quoted for SQL, such as `order`."""
    return "`" + name.replace("`", "``") + "`"


def qualified(*names: str) -> str:
    """Return names quoted for SQL, such as `shop`.`order`."""
    return ".".join(map(quoted, names))


def quoted_account(user: str) -> str:
    """Return an account, as CURRENT_USER() has it, quoted for GRANT: 'cdc'@'%'."""
    name, _, host = user.rpartition("@")
    return f"{literal(name)}@{literal(host)}"


def literal(value: str) -> str:
    """Return a string literal that a session without special sql_mode reads as `value`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


@cache
def _scanner(escapes: bool, of_mysql: bool) -> Callable[[str, int], re.Match[str] | None]:
    """Return the matcher of one token, space or mark of a comment, for whether \\ escapes in strings."""
    pattern = _PATTERN
    for name, part in (
        ("ESCAPED", r"\\." if escapes else r"(?!)"),
        ("ESCAPE", r"\\" if escapes else ""),
        ("EXECUTED", "!" if of_mysql else "M?!"),
        ("VERSION", r"[0-9]{5}(?:[0-9](?=[\t-\r ]))?" if of_mysql else "[0-9]{5,6}"),
        ("WORD", _WORD),
    ):
        pattern = pattern.replace(name, part)
    return re.compile(pattern, re.DOTALL | re.VERBOSE).match


def _unescaped(match: re.Match[str]) -> str:
    # \% and \_ keep the backslash; before any other character it is dropped.
    return _ESCAPED.get(match[1]) or (match[0] if match[1] in "%_" else match[1])
