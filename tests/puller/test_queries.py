"""The SELECTs of a snapshot."""

from __future__ import annotations

from tidemill.dialects.mysql.key_range import chunk_query
from tidemill.events import Column, KeyRange, Table

COLUMNS = (
    Column("a", "int"),
    Column("b`c", "bigint", unsigned=True),
    Column("d", "smallint"),
    Column("f", "float"),
    Column("name", "varchar", length=10),
)
ALL = "SELECT `a`, `b``c`, `d`, `f`, `name` FROM `shop`.`t`"


def test_a_table_is_read_whole_or_behind_a_key() -> None:
    table = Table("shop", "t", COLUMNS, key=(0,))
    forced = f"{ALL} FORCE INDEX (PRIMARY)"
    assert chunk_query(table) == ALL
    assert chunk_query(table, KeyRange(), 10) == f"{forced} ORDER BY `a` LIMIT 10"
    assert chunk_query(table, KeyRange((-5,)), 10) == f"{forced} WHERE `a` > -5 ORDER BY `a` LIMIT 10"


def test_behind_a_key_of_several_columns() -> None:
    table = Table("shop", "t", COLUMNS, key=(1, 0, 2))
    assert chunk_query(table, KeyRange((2**64 - 1, 2, 3)), 10) == (
        f"{ALL} FORCE INDEX (PRIMARY) WHERE `b``c` > 18446744073709551615 OR (`b``c` = 18446744073709551615"
        " AND (`a` > 2 OR (`a` = 2 AND (`d` > 3)))) ORDER BY `b``c`, `a`, `d` LIMIT 10"
    )
