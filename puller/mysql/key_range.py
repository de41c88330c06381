"""SELECTs of the rows of a table in a range of its primary key."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from ...codec.mysql.text_rows import TextRowsDecoder, select_expression
from ...events import Column, KeyPart, OrderedKey, Table, float_of, key_order, text_of, unscaled
from .tables import quoted

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})


def has_integer_key(table: Table) -> bool:
    return bool(table.key) and all(table.columns[i].kind in _INTEGERS for i in table.key)


def last_key(table: Table, row: bytes) -> OrderedKey:
    """Return the key of a row as it is received."""
    order = key_order(table)
    assert order is not None
    (change,) = TextRowsDecoder(table).decode(row, 0, 0)
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


def above(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows after a key."""
    return _beside(table, key, ">", ">")


def up_to(table: Table, key: OrderedKey) -> str:
    """Return the condition of the rows up to and including a key."""
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
    number = int(part)
    first, last = (number + 1, len(column.members)) if ">" in sign else (0, number - (sign == "<"))
    numbers = ", ".join(map(str, range(first, last + 1)))
    return f"{name} IN ({numbers})" if numbers else "FALSE"


def _key(table: Table) -> list[str]:
    return [quoted(table.columns[i].name) for i in table.key]


def literal(column: Column, part: KeyPart) -> str:
    """Return a part of a key as SQL of the column's type."""
    match column.kind:
        case "decimal":
            number = unscaled(str(part))
            whole, fraction = divmod(abs(number), 10**column.scale)
            sign = "-" if number < 0 else ""
            return f"{sign}{whole}.{fraction:0{max(1, column.scale)}}"
        case "float" | "double":
            digits = repr(float_of(int(part)))
            return digits if "e" in digits else f"{digits}e0"  # else it would be a DECIMAL
        case "inet4" | "inet6":
            return f"'{ip_address(bytes.fromhex(str(part)))}'"
        case "date" | "datetime" | "timestamp":
            return f"'{part}'"
        case "time":
            seconds, micros = divmod(abs(int(part)), 1_000_000)
            sign = "-" if int(part) < 0 else ""
            return f"'{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}'"
        case "binary" | "varbinary":
            return f"x'{part}'"
        case "char" | "varchar":
            collation = column.collation or ""
            return f"_{column.charset} x'{text_of(collation, str(part)).hex()}' COLLATE {collation}"
        case _:
            return str(part)
