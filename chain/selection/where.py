"""Conditions on rows, as a function from a row to what SQL would say of it: true, false, or unknown."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ...errors import SinkError
from ...events import Column, Row, Table, letters_of
from .where_parser import parse
from .where_tree import And, Compare, Condition, Constant, In, IsNull, Like, Name, Not, Operand, Or, names_in
from .where_values import Family, can_be_zero, converted, family_of

Truth: TypeAlias = bool | None
"""None: unknown, as SQL's NULL."""
Test: TypeAlias = Callable[[Row], Truth]

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_REVERSED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Where:
    """A condition on rows of any table that has its columns.

    Raises ConfigError, naming the option `where`, if the text isn't one.
    """

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        """Stored in the checkpoint: the rows of a target are chosen by it."""
        self._where = where
        self._condition = parse(text, where)
        self.columns = names_in(self._condition)
        """Names, in lower case, of the columns whose values decide."""

    def test(self, table: Table) -> Test:
        """Return the function from a row of the table to its truth.

        Raises SinkError if the table lacks a column, or a comparison can't be made as the source makes it.
        """
        return _Tests(table, f"{self._where} = {self.text!r}: table {table.origin_name}").of(self._condition)


class _Tests:
    """Makes the tests of one table's rows."""

    def __init__(self, table: Table, where: str) -> None:
        self._where = where
        self._columns = table.columns
        self._places = {column.name.lower(): place for place, column in enumerate(table.columns)}

    def of(self, condition: Condition) -> Test:
        match condition:
            case Compare(left, comparator, right):
                return self._compare(left, comparator, right)
            case In(name, values):
                return self._in(name, values)
            case Like(name, pattern):
                return self._like(name, pattern)
            case IsNull(name):
                return self._is_null(name)
            case Not(inner):
                return _not(self.of(inner))
            case And(parts):
                return _all([self.of(part) for part in parts])
            case Or(parts):
                return _any([self.of(part) for part in parts])

    def _place(self, name: Name) -> int:
        place = self._places.get(name.column.lower())
        if place is None:
            raise SinkError(
                f"{self._where} has no column {name.column}; it has: "
                f"{', '.join(column.name for column in self._columns)}"
            )
        return place

    def _family(self, name: Name) -> tuple[int, Column, Family]:
        place = self._place(name)
        column = self._columns[place]
        return place, column, family_of(column, name, self._where)

    def _compare(self, left: Operand, comparator: str, right: Operand) -> Test:
        if isinstance(left, Constant):
            left, comparator, right = right, _REVERSED[comparator], left
        assert isinstance(left, Name)
        place, column, family = self._family(left)
        if comparator not in ("=", "<>") and not family.is_ordered:
            raise SinkError(
                f"{self._where}: column {column.name} is {column.kind}: only = and <> can be used"
            )
        compare, form = _COMPARE[comparator], family.form
        if isinstance(right, Constant):
            wanted = converted(family, right, column, self._where)
            return lambda row: None if (own := row[place]) is None else compare(form(own), wanted)
        other_place, other_column, other = self._family(right)
        if family.name != other.name:
            raise SinkError(
                f"{self._where}: columns {column.name} and {other_column.name} can't be compared: one is "
                f"{family.name}, the other {other.name}"
            )
        return lambda row: (
            None
            if (own := row[place]) is None or (its := row[other_place]) is None
            else compare(form(own), form(its))
        )

    def _in(self, name: Name, values: Sequence[Constant]) -> Test:
        place, column, family = self._family(name)
        wanted = {converted(family, value, column, self._where) for value in values}
        form = family.form
        return lambda row: None if (own := row[place]) is None else form(own) in wanted

    def _like(self, name: Name, pattern: Constant) -> Test:
        place, column, family = self._family(name)
        kind, _, collation = family.name.partition(" ")
        letters = letters_of(collation)
        if kind != "text" or letters is None:
            raise SinkError(f"{self._where}: column {column.name} is {column.kind}, and LIKE is for strings")
        converted(family, pattern, column, self._where)
        assert isinstance(pattern.value, str)
        matches = re.compile(_expression(pattern.value, letters, self._where), re.DOTALL).fullmatch
        return lambda row: None if (own := row[place]) is None else matches(letters(own)) is not None

    def _is_null(self, name: Name) -> Test:
        place = self._place(name)
        if can_be_zero(self._columns[place]):
            raise SinkError(
                f"{self._where}: column {name.column} is NOT NULL: IS NULL would ask for dates of zero"
            )
        return lambda row: row[place] is None


def _expression(pattern: str, letters: Callable[[str], str], where: str) -> str:
    """Return LIKE's pattern as a regular expression on the letters of a text.

    A part between two "%" matches at its first place after the part before, or nowhere; none is tried twice.
    """
    parts, characters = [""], iter(pattern)
    for character in characters:
        if character == "%":
            parts.append("")
        elif character == "_":
            parts[-1] += "."
        else:
            if character == "\\" and (character := next(characters, "")) == "":
                raise SinkError(f"{where}: the pattern {pattern!r} ends with an escape")
            parts[-1] += re.escape(letters(character))
    first, *others = parts
    if not others:
        return first
    *middle, last = others
    return "".join([first, *(f"(?>.*?{part})" for part in middle if part), ".*", last])


def _not(test: Test) -> Test:
    return lambda row: None if (truth := test(row)) is None else not truth


def _all(tests: Sequence[Test]) -> Test:
    def test(row: Row) -> Truth:
        result: Truth = True
        for one in tests:
            truth = one(row)
            if truth is False:
                return False
            if truth is None:
                result = None
        return result

    return test


def _any(tests: Sequence[Test]) -> Test:
    def test(row: Row) -> Truth:
        result: Truth = False
        for one in tests:
            truth = one(row)
            if truth:
                return True
            if truth is None:
                result = None
        return result

    return test
