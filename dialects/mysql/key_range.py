"""SELECTs of the rows of a table in a range of its primary key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from math import isfinite
from typing import Final, assert_never

from ...codec.mysql.result_rows import select_expression
from ...codec.mysql.tokens import qualified as quoted
from ...events import (
    Column,
    KeyPart,
    KeyRange,
    OrderedKey,
    Table,
    float_of,
    key_order,
    text_of,
    unscaled,
)

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
_BYTES: Final = re.compile(r"(?:[0-9a-f]{2})*")
_FORMS: Final = {
    "decimal": re.compile(r"[01]\d{65}"),
    "inet4": re.compile(r"[0-9a-f]{8}"),
    "inet6": re.compile(r"[0-9a-f]{32}"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "datetime": _MOMENT,
    "timestamp": _MOMENT,
    "binary": _BYTES,
    "varbinary": _BYTES,
    "char": re.compile(".*", re.DOTALL),
    "varchar": re.compile(".*", re.DOTALL),
}
"""Forms of those parts of a key that are texts; the others are integers."""
_LAST_BYTES: Final = {"ascii": 0x7F, "utf8mb3": 0xEF, "utf8": 0xEF}
"""The highest byte that a text may have, by character set, where it isn't any."""
_MAX_TIME: Final = (839 * 3600 - 1) * 1_000_000 + 999_999


def has_ranges(table: Table) -> bool:
    """Return True if the rows above or below any key can be selected, by the order of the index."""
    return all(_has_ranges(table.columns[i]) for i in table.key)


def _has_ranges(column: Column) -> bool:
    match column.kind:
        case "char":
            # MariaDB compares it as if spaces followed in an index, and without them in a condition: "a"
            # comes after "a\t", and isn't above it.
            return "_nopad_" not in (column.collation or "")
        case "enum" | "set":
            # Servers print "?" for a character beyond the 16-bit plane: the member isn't known.
            return not any("?" in member for member in column.members)
        case _:
            return True


def is_ordered(table: Table) -> bool:
    """Return True if chunks of a table can be read by its key."""
    return key_order(table) is not None and has_ranges(table)


def select(table: Table) -> str:
    """Return the SELECT of all columns of all rows, in any order."""
    expressions = ", ".join(select_expression(column) for column in table.columns)
    return f"SELECT {expressions} FROM {quoted(table.schema, table.name)}"


def chunk_query(table: Table, within: KeyRange | None = None, limit: int | None = None) -> str:
    """Return the SELECT of a table's rows: of the first ones in a range of its key, in order; without a range
    of all rows, in any order."""
    sql = select(table)
    if within is None:
        return sql
    where = where_clause(conditions(table, within))
    most = "" if limit is None else f" LIMIT {limit}"
    return f"{sql} FORCE INDEX (PRIMARY){where}{order_by(table)}{most}"


def conditions(table: Table, within: KeyRange) -> list[str]:
    """Return the conditions of the rows in a range. Raises ValueError if a bound can't be one of the
    table's."""
    texts = []
    if within.after:
        texts.append(above(table, within.after))
    if within.up_to:
        texts.append(up_to(table, within.up_to))
    return texts


def where_clause(conditions: Sequence[str]) -> str:
    """Return the WHERE of all of these conditions; empty without any."""
    if len(conditions) == 1:
        return f" WHERE {conditions[0]}"
    return f" WHERE {' AND '.join(f'({one})' for one in conditions)}" if conditions else ""


def is_key_of(table: Table, key: OrderedKey) -> bool:
    """Return True if a key can be one of the table's, and not only of a definition that it had before."""
    if len(key) != len(table.key):
        return False
    try:
        above(table, key)
    except ValueError:
        return False
    return True


def above(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows after a key, or after all keys that begin with these parts.

    Raises ValueError if they can't be parts of the table's key.
    """
    return _beside(table, key, ">", ">")


def up_to(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows up to and including a key. Raises as `above` does."""
    return _beside(table, key, "<", "<=")


def _beside(table: Table, key: OrderedKey, sign: str, last_sign: str) -> str:
    columns = [table.columns[i] for i in table.key[: len(key)]]
    parts = [
        (partial(_compared, column, part), f"{quoted(column.name)} = {literal(column, part)}")
        for column, part in zip(columns, key, strict=True)
    ]
    return beside(parts, sign, last_sign)


def beside(parts: Sequence[tuple[Callable[[str], str], str]], sign: str, last_sign: str) -> str:
    """Return the condition that a key is above or below another one, `last_sign` comparing its last part.

    For each part there are the function from a sign to its comparison, and the condition that it is equal.
    """
    # Not (a, b) > (1, 2): the optimizer would read the index from its start.
    *firsts, (last, _) = parts
    condition = last(last_sign)
    for compared, same in reversed(firsts):
        condition = f"{compared(sign)} OR ({same} AND ({condition}))"
    return condition


def _compared(column: Column, part: KeyPart, sign: str) -> str:
    name = quoted(column.name)
    if column.kind != "enum":
        return f"{name} {sign} {literal(column, part)}"
    # By numbers, of which servers read a list from the index, but no range.
    _check_form(column, part)
    number = int(part)
    if number > len(column.members):
        raise ValueError
    first, last = (number + 1, len(column.members)) if ">" in sign else (0, number - (sign == "<"))
    numbers = ", ".join(map(str, range(first, last + 1)))
    return f"{name} IN ({numbers})" if numbers else "FALSE"


def order_by(table: Table, direction: str = "") -> str:
    """Return the ORDER BY of a table's key."""
    return f" ORDER BY {', '.join(f'{quoted(table.columns[i].name)}{direction}' for i in table.key)}"


def literal(column: Column, part: KeyPart) -> str:
    """Return a part of a key as SQL of the column's type. Raises ValueError if it isn't of that type."""
    _check_form(column, part)
    match column.kind:
        case "decimal":
            number = unscaled(str(part))
            whole, fraction = divmod(abs(number), 10**column.scale)
            sign = "-" if number < 0 else ""
            return f"{sign}{whole}.{fraction:0{max(1, column.scale)}}"
        case "float" | "double":
            if abs(int(part)) >> 63 or not isfinite(value := float_of(int(part))):
                raise ValueError
            digits = repr(value)
            return digits if "e" in digits else f"{digits}e0"  # else it would be a DECIMAL
        case "inet4" | "inet6":
            return f"'{ip_address(bytes.fromhex(str(part)))}'"
        case "date" | "datetime" | "timestamp":
            return f"'{part}'"
        case "time":
            if abs(int(part)) > _MAX_TIME:
                raise ValueError
            seconds, micros = divmod(abs(int(part)), 1_000_000)
            sign = "-" if int(part) < 0 else ""
            return f"'{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}'"
        case "binary" | "varbinary":
            return f"x'{part}'"
        case "char" | "varchar":
            collation = column.collation or ""
            text = text_of(collation, str(part))
            if max(text, default=0) > _LAST_BYTES.get(column.charset or "", 0xFF):
                raise ValueError
            return f"_{column.charset} x'{text.hex()}' COLLATE {collation}"
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "text" | "blob" | "year"
            | "enum" | "set" | "json" | "uuid" | "geometry" | "vector"
        ):  # fmt: skip
            return str(part)
        case _:
            assert_never(column.kind)


def _check_form(column: Column, part: KeyPart) -> None:
    form = _FORMS.get(column.kind)
    is_fit = isinstance(part, int) if form is None else isinstance(part, str) and form.fullmatch(part)
    if not is_fit:
        raise ValueError(f"{part!r} is no key of the column {column.name}, a {column.kind}")
