"""The history of a table's rows in a source and in a copy of it, noted by triggers.

The history of a copy begins with each row as a snapshot found it, at any moment; after that it has each
change of the row once and in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

TABLES: Final = {
    "item": "(id INT PRIMARY KEY, n BIGINT NOT NULL, body VARCHAR(2000))",
    "loose": "(id INT, n BIGINT NOT NULL, body VARCHAR(2000))",  # without a key
}
"""Definitions of the tables, for every database."""
COLUMNS: Final = "id, n, body"
Row = tuple[int, int, str]


class Change(NamedTuple):
    table: str
    op: str
    id: int
    n: int
    """Version of the row: after an insert or update, before a delete. No two changes of a row have the same
    op and version."""


def assert_applied_once(made: Sequence[Change], applied: Sequence[Change]) -> None:
    """Compare the history of a copy with that of its source."""
    repeated = [change for change, times in Counter(applied).items() if times > 1]
    assert not repeated, f"applied twice: {repeated[:5]}"
    source, target = by_row(made), by_row(applied)
    assert target.keys() <= source.keys()
    for row, changes in source.items():
        assert is_tail(changes, target.get(row, [])), (row, changes, target.get(row))


def is_tail(made: Sequence[Change], applied: Sequence[Change]) -> bool:
    """Return True if a copy of the row may have begun at any moment, and followed it since then."""
    if not applied:
        return made[-1].op == "delete"
    first, *rest = applied
    begins = [number for number, change in enumerate(made) if change.op != "delete" and change.n == first.n]
    return first.op == "insert" and any(rest == list(made[number + 1 :]) for number in begins)


def by_row(changes: Sequence[Change]) -> dict[tuple[str, int], list[Change]]:
    rows = defaultdict(list)
    for change in changes:
        rows[change.table, change.id].append(change)
    return rows


def create_tables(cursor: Any, schema: str) -> None:
    for table, definition in TABLES.items():
        cursor.execute(f"CREATE TABLE {schema}.{table} {definition}")
    create_audit(cursor, schema)


def create_audit(cursor: Any, schema: str) -> None:
    """Note each change of the tables in the schema `{schema}_audit`, in the same transaction."""
    cursor.execute(f"CREATE DATABASE {schema}_audit")
    cursor.execute(
        f"CREATE TABLE {schema}_audit.made (seq BIGINT AUTO_INCREMENT PRIMARY KEY, "
        "tbl VARCHAR(9), op VARCHAR(9), id INT, n BIGINT)"
    )
    for table in TABLES:
        for op, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
            cursor.execute(
                f"CREATE TRIGGER {schema}.{table}_{op} AFTER {op} ON {schema}.{table} FOR EACH ROW "
                f"INSERT INTO {schema}_audit.made (tbl, op, id, n) VALUES "
                f"('{table}', '{op}', {row}.id, {row}.n)"
            )


def read_audit(cursor: Any, schema: str) -> list[Change]:
    cursor.execute(f"SELECT tbl, op, id, n FROM {schema}_audit.made ORDER BY seq")
    return [Change(*row) for row in cursor.fetchall()]


def read_rows(cursor: Any, schema: str, table: str) -> Counter[Row]:
    cursor.execute(f"SELECT {COLUMNS} FROM {schema}.{table}")
    return Counter(cursor.fetchall())
