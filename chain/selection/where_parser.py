"""The grammar of conditions on rows: a part of SQL's in which every operation is exact.

    condition:  AND, OR and NOT of predicates, with parentheses
    predicate:  operand COMPARATOR operand | column [NOT] IN (constant, …) | column [NOT] LIKE string
                | operand [NOT] BETWEEN operand AND operand | column IS [NOT] NULL
    operand:    column [COLLATE name] | constant
    constant:   -12.5 | 'text' | X'0aff' | TRUE | FALSE

Words and escapes are MariaDB's and MySQL's. There are no functions, and no arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final, NamedTuple, cast

from ...errors import ConfigError
from .where_tree import (
    And,
    Comparator,
    Compare,
    Condition,
    Constant,
    In,
    IsNull,
    Like,
    Name,
    Not,
    Operand,
    Or,
)

_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
        | (?P<string>'(?:[^'\\]++|''|\\.)*+')
        | (?P<number>-?\d+(?:\.\d+)?)(?![\w.])
        | (?P<quoted>`(?:[^`]++|``)++`)
        | (?P<word>[^\W\d][\w$]*)
        | (?P<sign><=|>=|<>|!=|[=<>(),])
        | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = frozenset(
    {"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "COLLATE"}
)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_MAX_DEPTH: Final = 50


class _Token(NamedTuple):
    kind: str
    text: str
    """Words of the grammar in upper case."""


def parse(text: str, where: str) -> Condition:
    """Return the tree of a condition. Raises ConfigError, naming the option `where`."""
    return _Parser(text, where).whole()


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._text = text
        self._tokens = list(self._read(text))
        self._next = 0
        self._depth = 0

    def _read(self, text: str) -> Iterator[_Token]:
        position = 0
        while True:
            token = _TOKEN.match(text, position)
            if token is None:
                raise self._error(f"not understood from {text[position:].strip()[:20]!r} on")
            kind = str(token.lastgroup)
            value = token[kind]
            if kind == "word" and value.upper() in _WORDS:
                kind, value = "sign", value.upper()
            yield _Token(kind, value)
            if kind == "end":
                return
            position = token.end()

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"{self._where} = {self._text!r}: {what}")

    def _unexpected(self, wanted: str) -> ConfigError:
        token = self._tokens[self._next]
        return self._error(
            f"expected {wanted} in place of {token.text!r}" if token.text else f"lacks {wanted}"
        )

    def _take(self, *signs: str) -> str:
        """Return the next token's text and go past it, if it is one of these; else an empty string."""
        kind, text = self._tokens[self._next]
        if kind != "sign" or text not in signs:
            return ""
        self._next += 1
        return text

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected(sign)

    def whole(self) -> Condition:
        tree = self._either()
        if self._tokens[self._next].kind != "end":
            raise self._unexpected("AND, OR or the end")
        return tree

    def _either(self) -> Condition:
        parts = self._separated(self._both, "OR")
        return parts[0] if len(parts) == 1 else Or(parts)

    def _both(self) -> Condition:
        parts = self._separated(self._negated, "AND")
        return parts[0] if len(parts) == 1 else And(parts)

    def _separated(self, part: Callable[[], Condition], sign: str) -> tuple[Condition, ...]:
        parts = [part()]
        while self._take(sign):
            parts.append(part())
        return tuple(parts)

    def _negated(self) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(f"nested more than {_MAX_DEPTH} times")
        condition = Not(self._negated()) if self._take("NOT") else self._predicate()
        self._depth -= 1
        return condition

    def _predicate(self) -> Condition:
        if self._take("("):
            condition = self._either()
            self._need(")")
            return condition
        left = self._operand()
        if comparator := self._take("=", "<>", "!=", "<", "<=", ">", ">="):
            sign = cast("Comparator", comparator.replace("!=", "<>"))
            return self._compared(left, sign, self._operand())
        if self._take("IS"):
            is_negated = self._take("NOT")
            self._need("NULL")
            return self._signed(IsNull(self._column(left)), is_negated)
        is_negated = self._take("NOT")
        match self._take("IN", "LIKE", "BETWEEN"):
            case "IN":
                return self._signed(In(self._column(left), self._constants()), is_negated)
            case "LIKE":
                return self._signed(Like(self._column(left), self._constant("a string")), is_negated)
            case "BETWEEN":
                low = self._operand()
                self._need("AND")
                high = self._operand()
                both = self._compared(left, ">=", low), self._compared(left, "<=", high)
                return self._signed(And(both), is_negated)
        raise self._unexpected("a comparison, IN, LIKE, BETWEEN or IS NULL")

    def _signed(self, condition: Condition, is_negated: str) -> Condition:
        return Not(condition) if is_negated else condition

    def _compared(self, left: Operand, comparator: Comparator, right: Operand) -> Compare:
        if isinstance(left, Constant) and isinstance(right, Constant):
            raise self._error(f"{left.text} {comparator} {right.text} names no column")
        return Compare(left, comparator, right)

    def _column(self, operand: Operand) -> Name:
        if isinstance(operand, Constant):
            raise self._error(f"expected a column in place of {operand.text}")
        return operand

    def _constants(self) -> tuple[Constant, ...]:
        self._need("(")
        constants = [self._constant("a constant")]
        while self._take(","):
            constants.append(self._constant("a constant"))
        self._need(")")
        return tuple(constants)

    def _constant(self, wanted: str) -> Constant:
        start = self._next
        operand = self._operand()
        if isinstance(operand, Name):
            self._next = start
            raise self._unexpected(wanted)
        return operand

    def _operand(self) -> Operand:
        kind, text = self._tokens[self._next]
        self._next += 1
        match kind, text:
            case "number", _:
                return Constant(Decimal(text) if "." in text else int(text), text)
            case "string", _:
                return Constant(_unescaped(text[1:-1]), text)
            case "bytes", _:
                return Constant(bytes.fromhex(text[2:-1]), text)
            case "sign", "TRUE" | "FALSE":
                return Constant(int(text == "TRUE"), text)
            case "quoted", _:
                return self._collated(text[1:-1].replace("``", "`"))
            case "word", _:
                if self._tokens[self._next].text == "(":
                    raise self._error(f"{text}: functions can't be used")
                return self._collated(text)
            case "sign", "NULL":
                raise self._error("nothing is equal to NULL: write IS NULL or IS NOT NULL")
        self._next -= 1
        raise self._unexpected("a column or constant")

    def _collated(self, column: str) -> Name:
        if not self._take("COLLATE"):
            return Name(column)
        kind, collation = self._tokens[self._next]
        if kind != "word":
            raise self._unexpected("a collation")
        self._next += 1
        return Name(column, collation.lower())


def _unescaped(text: str) -> str:
    """Return the value of a string's inside; the escapes of LIKE stay as they are."""
    return re.sub(
        r"''|\\(.)",
        lambda match: "'" if match[1] is None else _ESCAPED.get(match[1], match[1]),
        text,
        flags=re.DOTALL,
    )
