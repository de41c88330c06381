"""Numbers of rows, as the optimizer expects them."""

from __future__ import annotations

from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import Session, is_mariadb, query
from ...dialects.mysql.key_range import above, is_key_of, up_to
from ...events import OrderedKey, Table
from .tables import SourceTable


def expected_rows(session: Session, table: Table, condition: str) -> int:
    """Return the number of rows that the optimizer expects to read by the primary key.

    Raises pymysql's errors: use it inside translated().
    """
    # Not FORCE INDEX, with which MySQL doesn't look into the index.
    sql = f"SELECT 1 FROM {quoted(table.schema, table.name)} USE INDEX (PRIMARY) WHERE {condition}"
    (plan,) = query(session, f"EXPLAIN FORMAT=TRADITIONAL {sql}")
    return int(plan[-2 if is_mariadb(session) else -3] or 0)


def rows_up_to(session: Session, source: SourceTable, key: OrderedKey) -> int:
    """Return about the number of a table's rows up to a key; 0 if the table has another key by now.

    Raises pymysql's errors: use it inside translated().
    """
    table = source.table
    if not is_key_of(table, key):
        return 0
    before, after = [
        expected_rows(session, table, condition) for condition in (up_to(table, key), above(table, key))
    ]
    # A server takes every range that is larger than half of the table for that half.
    return before if before <= after else max(before, source.rows_estimated - after)
