"""A SELECT of one table, as replicas and loads of tables send them: a small part of SQL, evaluated in memory.

    SELECT a, b FROM t [FORCE INDEX (..)] [WHERE ..] [ORDER BY ..] [LIMIT n [OFFSET m]]
    SELECT MIN(a), MAX(a) FROM t,  SELECT COUNT(*) FROM t WHERE ..

Conditions are comparisons of columns with literals, IN, IS [NOT] NULL, AND, OR, parentheses, TRUE and FALSE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import AS_INT, Column, Row, Table
from .order import server_order

Condition: TypeAlias = Callable[[Row], bool]
Find: TypeAlias = Callable[[str, str], "Relation"]
"""Returns a relation by its schema and name. Raises Refused if there is none."""

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": eq, "<>": ne, ">": gt, ">=": ge, "<": lt, "<=": le,
}  # fmt: skip


class Relation(Struct, frozen=True):
    """Rows with named columns. Without a `table`, the values are numbers and texts that compare as such."""

    names: tuple[str, ...]
    rows: Sequence[Row]
    table: Table | None = None

    def place(self, name: str) -> int:
        for place, one in enumerate(self.names):
            if one.lower() == name.lower():
                return place
        raise NotUnderstood(f"the column {name}")

    def column(self, place: int) -> Column | None:
        return None if self.table is None else self.table.columns[place]


class Selected(Struct, frozen=True):
    names: tuple[str, ...]
    rows: list[Row]
    table: Table | None = None
    """The table of the selected columns, if they are columns of a table of a user."""


def select(tokens: Tokens, find: Find) -> Selected:
    """Run a SELECT whose first word comes next. Raises NotUnderstood for other SQL."""
    tokens.expect("SELECT")
    start = tokens.next
    while not tokens.accept("FROM"):
        if tokens.take().kind == "end":
            raise NotUnderstood("a SELECT without FROM")
    relation = find(*tokens.qualified_name(""))
    end = tokens.next
    tokens.step_back_to(start)
    items = _items(tokens, relation)
    tokens.step_back_to(end)
    if tokens.accept_any("FORCE", "USE"):
        tokens.expect("INDEX")
        tokens.expect("(")
        tokens.skip_to_closing()
    rows = list(relation.rows)
    if tokens.accept("WHERE"):
        rows = [*filter(_or(tokens, relation), rows)]
    if tokens.accept("ORDER"):
        tokens.expect("BY")
        rows = _sorted(tokens, relation, rows)
    if tokens.accept("LIMIT"):
        limit = tokens.number()
        offset = tokens.number() if tokens.accept("OFFSET") else 0
        rows = rows[offset : offset + limit]
    return _chosen(relation, items, rows)


Item: TypeAlias = tuple[str, int | None]
"""A function, empty for a column's value, and the place of its column; None for COUNT(*), and for a 1."""


def _items(tokens: Tokens, relation: Relation) -> list[Item]:
    items: list[Item] = []
    while True:
        if function := tokens.accept_any("COUNT", "MIN", "MAX"):
            tokens.expect("(")
            items.append((function, None if tokens.accept("*") else relation.place(tokens.name())))
            tokens.expect(")")
        elif tokens.next.text == "1":
            tokens.take()
            items.append(("1", None))
        else:
            items.append(("", relation.place(tokens.name())))
        if not tokens.accept(","):
            tokens.expect("FROM")
            return items


def _chosen(relation: Relation, items: Sequence[Item], rows: list[Row]) -> Selected:
    names = tuple([function or relation.names[place or 0] for function, place in items])
    if any(function in ("COUNT", "MIN", "MAX") for function, _ in items):
        return Selected(names, [tuple(_total(item, rows) for item in items)])
    places = [place for _, place in items]
    made = [tuple([1 if place is None else row[place] for place in places]) for row in rows]
    if relation.table is None or None in places:
        return Selected(names, made)
    columns = tuple([relation.table.columns[place] for place in places if place is not None])
    return Selected(names, made, Table(relation.table.schema, relation.table.name, columns))


def _total(item: Item, rows: Sequence[Row]) -> object:
    function, place = item
    values = [row if place is None else row[place] for row in rows]
    values = [value for value in values if value is not None]
    match function:
        case "COUNT":
            return len(values)
        case "MIN" | "MAX":
            return (min if function == "MIN" else max)(values, default=None)
    raise NotUnderstood("a column beside COUNT, MIN or MAX")


def _sorted(tokens: Tokens, relation: Relation, rows: list[Row]) -> list[Row]:
    keys: list[tuple[Callable[[Row], Any], bool]] = []
    while True:
        place = relation.place(tokens.name())
        if tokens.accept("<", ">"):
            keys.append((partial(_differs, place, tokens.string()), False))
        else:
            keys.append((partial(_formed, place, _form(relation, place)), tokens.accept("DESC")))
        if not tokens.accept(","):
            break
    for key, descending in reversed(keys):
        rows = sorted(rows, key=key, reverse=descending)
    return rows


def _differs(place: int, other: str, row: Row) -> bool:
    return bool(row[place] != other)


def _formed(place: int, form: Callable[[object], object], row: Row) -> object:
    return form(row[place])


def _form(relation: Relation, place: int) -> Callable[[object], object]:
    """Return the function from a column's values to what compares as the source does."""
    column = relation.column(place)
    if column is None:
        return lambda value: value
    order = server_order(Table("", "", (column,), (0,)))
    if order is None:
        raise NotUnderstood(f"the order of {column.name}")
    return lambda value: order((value,))[0]


# --- conditions ------------------------------------------------------------------------------------


def _or(tokens: Tokens, relation: Relation) -> Condition:
    conditions = [_and(tokens, relation)]
    while tokens.accept("OR"):
        conditions.append(_and(tokens, relation))
    return conditions[0] if len(conditions) == 1 else lambda row: any(one(row) for one in conditions)


def _and(tokens: Tokens, relation: Relation) -> Condition:
    conditions = [_single(tokens, relation)]
    while tokens.accept("AND"):
        conditions.append(_single(tokens, relation))
    return conditions[0] if len(conditions) == 1 else lambda row: all(one(row) for one in conditions)


def _single(tokens: Tokens, relation: Relation) -> Condition:
    if tokens.accept("("):
        condition = _or(tokens, relation)
        tokens.expect(")")
        return condition
    if constant := tokens.accept_any("TRUE", "FALSE"):
        return lambda _: constant == "TRUE"
    place = relation.place(tokens.name())
    column = relation.column(place)
    if tokens.accept("IS"):
        wanted = not tokens.accept("NOT")
        tokens.expect("NULL")
        return lambda row: (row[place] is None) == wanted
    form = _form(relation, place)
    if tokens.accept("IN"):
        tokens.expect("(")
        literals = {_literal(tokens, column)}
        while tokens.accept(","):
            literals.add(_literal(tokens, column))
        tokens.expect(")")
        return lambda row: row[place] is not None and form(row[place]) in literals
    sign = ""
    while tokens.next.value in ("=", "<", ">"):
        sign += tokens.take().value
    if sign not in _COMPARISONS:
        raise tokens.unexpected()
    compare, literal = _COMPARISONS[sign], _literal(tokens, column)
    return lambda row: row[place] is not None and compare(form(row[place]), literal)


def _literal(tokens: Tokens, column: Column | None) -> object:
    """Read a constant; return it in the form in which the column's values compare."""
    sign = -1 if tokens.accept("-") else 1
    token = tokens.take()
    if token.kind == "number":
        number = sign * Decimal(token.value)
        if column is None or column.kind in AS_INT or column.kind == "enum":
            return int(number)
        is_float = column.kind in ("float", "double")
        value: object = float(number) if is_float else Decimal(f"{number:.{column.scale}f}")
    elif token.kind == "string":
        value = token.value
    elif token.value == "X":
        value = bytes.fromhex(tokens.string())
    elif token.kind == "word" and token.value.startswith("_"):
        tokens.expect("X")
        value = bytes.fromhex(tokens.string()).decode("latin-1" if token.value == "_LATIN1" else "utf-8")
        tokens.expect("COLLATE")
        tokens.name()
    else:
        raise NotUnderstood(token.text)
    if column is None:
        return value
    if column.kind == "time" and isinstance(value, str):
        value = _duration(value)
    order = server_order(Table("", "", (column,), (0,)))
    assert order is not None
    return order((value,))[0]


def _duration(text: str) -> timedelta:
    hours, minutes, seconds = text.removeprefix("-").split(":")
    value = timedelta(hours=int(hours), minutes=int(minutes), seconds=0)
    whole, _, micros = seconds.partition(".")
    value += timedelta(seconds=int(whole), microseconds=int(micros or 0))
    return -value if text.startswith("-") else value
