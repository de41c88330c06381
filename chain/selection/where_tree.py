"""Conditions on rows as a tree, as the parser makes them of text."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

from msgspec import Struct

Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


class Name(Struct, frozen=True):
    """A column, compared by its own collation or another one of its character set."""

    column: str
    collation: str = ""


class Constant(Struct, frozen=True):
    """A number, a string, or bytes."""

    value: int | Decimal | str | bytes
    text: str
    """As it is written."""


Operand: TypeAlias = Name | Constant


class Compare(Struct, frozen=True):
    left: Operand
    comparator: Comparator
    right: Operand


class In(Struct, frozen=True):
    name: Name
    values: tuple[Constant, ...]


class Like(Struct, frozen=True):
    name: Name
    pattern: Constant


class IsNull(Struct, frozen=True):
    name: Name


class Not(Struct, frozen=True):
    inner: Condition


class And(Struct, frozen=True):
    parts: tuple[Condition, ...]


class Or(Struct, frozen=True):
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compare | In | Like | IsNull | Not | And | Or


def names_in(condition: Condition) -> frozenset[str]:
    """Return the names of the columns in a condition, in lower case."""
    match condition:
        case Compare(left, _, right):
            operands = [left, right]
        case In(name) | Like(name) | IsNull(name):
            operands = [name]
        case Not(inner):
            return names_in(inner)
        case And(parts) | Or(parts):
            return frozenset().union(*map(names_in, parts))
    return frozenset(one.column.lower() for one in operands if isinstance(one, Name))
