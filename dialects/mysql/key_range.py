"""SELECTs of the rows of a table in a range of its primary key."""

from __future__ import annotations

import re
from ipaddress import ip_address
from math import isfinite
from typing import Final, assert_never

from ...codec.mysql.result_rows import ResultRowsDecoder, select_expression
from ...codec.mysql.tokens import qualified as quoted
from ...events import (
    INTEGERS,
    Column,
    KeyPart,
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


def has_integer_key(table: Table) -> bool:
    return bool(table.key) and all(table.columns[i].kind in INTEGERS for i in table.key)


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


def last_key(table: Table, row: bytes) -> OrderedKey:
    """Return the key of a row as it is received."""
    order = key_order(table)
    assert order is not None
    (change,) = ResultRowsDecoder(table).decode(row, 0, 0)
    assert change.after is not None
    return order(change.after)


def chunk_query(table: Table, after: OrderedKey | None, limit: int | None) -> str:
    """Return the SELECT of a table's rows; with `limit`, ordered by its key."""
    columns = ", ".join(select_expression(column) for column in table.columns)
    sql = f"SELECT {columns} FROM {quoted(table.schema, table.name)}"
    if limit is None:
        return sql
    sql += " FORCE INDEX (PRIMARY)"
    if after is not None:
        sql += f" WHERE {above(table, after)}"
    return f"{sql} ORDER BY {', '.join(_key(table))} LIMIT {limit}"


def is_key_of(table: Table, key: OrderedKey) -> bool:
    """Return True if a key can be one of the table's, and not only of a definition that it had before."""
    try:
        above(table, key)
    except ValueError:
        return False
    return True


def above(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows after a key. Raises ValueError if it can't be one of the table's."""
    return _beside(table, key, ">", ">")


def up_to(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows up to and including a key. Raises as `above` does."""
    return _beside(table, key, "<", "<=")


def _beside(table: Table, key: OrderedKey, sign: str, last_sign: str) -> str:
    # Not (a, b) > (1, 2): the optimizer would read the index from its start.
    *firsts, (last, last_part) = zip([table.columns[i] for i in table.key], key, strict=True)
    condition = _compared(last, last_sign, last_part)
    for column, part in reversed(firsts):
        same = f"{quoted(column.name)} = {literal(column, part)}"
        condition = f"{_compared(column, sign, part)} OR ({same} AND ({condition}))"
    return condition


def _compared(column: Column, sign: str, part: KeyPart) -> str:
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


def _key(table: Table) -> list[str]:
    return [quoted(table.columns[i].name) for i in table.key]


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
