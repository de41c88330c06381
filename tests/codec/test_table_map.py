"""Table_map events: names, metadata and what of them isn't supported."""

from __future__ import annotations

from threading import Thread

import pytest

from tidemill.codec.mysql.collation import collation
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.table_map import names_of, parse_table_map
from tidemill.errors import SourceError
from tidemill.events import Column, Table
from tidemill.testing.binlog_events import INT, VARCHAR, ColumnSpec, table_map

from .vectors import load


def test_names_are_read_without_the_rest() -> None:
    assert names_of(table_map(INT)) == ("shop", "t")
    assert names_of("\x06größ".encode() + b"\0\x03" + "日".encode() + b"\0") == ("größ", "日")


def test_a_table_has_its_columns_and_its_key() -> None:
    """Recorded: CREATE TABLE t (a VARCHAR(100), b INT UNSIGNED NOT NULL, y YEAR, c SMALLINT, d DECIMAL(5,2)
    UNSIGNED, e ENUM('x','é') CHARACTER SET latin1, s SET('q','ü'), f BINARY(3), PRIMARY KEY (c, a(10)))."""
    recorded = (
        "0473686f7000017400080f030d02f6fefefe0a90010502f701f801fe03f40101d003022d3f0410016101620179"
        "016301640165017301660b02082d050602017102c3bc060502017801e909040300000a"
    )
    text = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
    assert parse_table_map(bytes.fromhex(recorded)).table == Table(
        "shop",
        "t",
        (
            Column("a", "varchar", length=100, nullable=False, **text),
            Column("b", "int", unsigned=True, nullable=False),
            Column("y", "year"),
            Column("c", "smallint", nullable=False),
            Column("d", "decimal", unsigned=True, length=5, scale=2),
            Column("e", "enum", members=("x", "é"), charset="latin1", collation="latin1_swedish_ci"),
            Column("s", "set", members=("q", "ü"), **text),
            Column("f", "binary", length=3),
        ),
        key=(3, 0),
    )


def test_without_full_metadata_the_error_names_table_and_setting() -> None:
    with pytest.raises(SourceError, match=r"table shop\.t: .*binlog_row_metadata=FULL"):
        parse_table_map(table_map(INT, full=False))


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (ColumnSpec(0), "DECIMAL in the format before MySQL 5.0"),
        (ColumnSpec(200), "type 200"),
        (VARCHAR._replace(collation=2000), "collation 2000"),
    ],
)
def test_what_is_not_supported_is_named_with_its_column(column: ColumnSpec, what: str) -> None:
    with pytest.raises(SourceError) as raised:
        parse_table_map(table_map(INT, column))
    assert str(raised.value) == f"column c1 of table shop.t: {what} isn't supported; leave the table out"


def test_members_that_a_conversion_left_in_another_charset_are_named() -> None:
    """Recorded from MariaDB 10.11: a SET of latin1 after CONVERT TO CHARACTER SET ucs2."""
    recorded = (
        "0673686f705f310002743200050d030df6fe040c03f801090101a0040f0263340269640263350263320263300a01"
        "23050703016101620163080101"
    )
    what = "column c0 of table shop_1.t2: set with members that aren't ucs2 isn't supported"
    with pytest.raises(SourceError, match=what):
        parse_table_map(bytes.fromhex(recorded))


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (8, ("latin1", "latin1_swedish_ci")),
        (63, ("binary", "binary")),
        (224, ("utf8mb4", "utf8mb4_unicode_ci")),
        (255, ("utf8mb4", None)),
        (309, ("utf8mb4", "utf8mb4_0900_bin")),
        (610, ("utf8mb4", "utf8mb4_thai_520_w2")),
        (1070, ("utf8mb4", "utf8mb4_nopad_bin")),
        (2304, ("utf8mb4", "utf8mb4_uca1400_ai_ci")),
        (2503, ("utf8mb4", "utf8mb4_uca1400_croatian_nopad_as_cs")),
    ],
)
def test_collations_have_the_servers_numbers(number: int, names: tuple[str, str | None]) -> None:
    assert collation(number) == names


def test_more_than_250_columns() -> None:
    table = parse_table_map(table_map(*[INT] * 300)).table
    assert [column.name for column in table.columns] == [f"c{i}" for i in range(300)]


def test_a_layout_has_one_number_however_often_it_comes() -> None:
    layouts = Layouts()
    payloads = [vector.table_map for vector in load()]
    numbers: list[list[int]] = []

    def register() -> None:
        numbers.append([layouts.number_of(payload) for payload in payloads])

    threads = [Thread(target=register) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == numbers[0] for one in numbers)
    assert sorted(set(numbers[0])) == list(range(1, len(set(payloads)) + 1))


def test_a_layout_of_snapshot_rows_is_its_table() -> None:
    layouts = Layouts()
    table = Table("shop", "t", (Column("a", "int"),))
    number = layouts.add_table(table)
    assert layouts.add_table(Table("shop", "t", (Column("a", "int"),))) == number
    assert layouts.layout(number).table is table
    assert layouts.number_of(table_map(INT)) != number


def test_character_sets_beside_a_geometry_of_mysql() -> None:
    """In MySQL's metadata a geometry has no character set, as it has in MariaDB's."""
    recorded = (
        "01780001620005fffefc0ffc0704fe03022400021f03060809fcff0009070101040a017301620163016401650c01f8"
    )
    columns = parse_table_map(bytes.fromhex(recorded)).table.columns
    assert [column.charset for column in columns] == [None, "latin1", "latin2", "utf8mb4", "latin2"]
