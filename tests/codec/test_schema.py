"""Tables from rows of information_schema, as MariaDB 10.11 gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.codec.mysql.schema import table_from_information_schema
from tidemill.dialects.mysql.text import type_text
from tidemill.errors import SourceError
from tidemill.events import Column, Table

UTF8 = ("utf8mb4", "utf8mb4_general_ci")
PLAIN = (None, None, "YES", "NULL", "")


def test_a_table_with_its_key_and_its_defaults() -> None:
    rows: list[tuple[Any, ...]] = [
        ("id", "bigint(20) unsigned", None, None, "NO", None, "auto_increment"),
        ("name", "varchar(20)", *UTF8, "NO", "'it''s'", ""),
        ("state", "enum('a','it''s')", "latin1", "latin1_bin", "YES", "NULL", ""),
        ("doc", "longtext", "utf8mb4", "utf8mb4_bin", "YES", "NULL", ""),
        ("price", "decimal(12,2)", *PLAIN),
        ("at", "timestamp(3)", None, None, "NO", "current_timestamp(3)", "on update current_timestamp(3)"),
        ("raw", "binary(16)", *PLAIN),
        ("old", "time /* mariadb-5.3 */", *PLAIN),
    ]
    table = table_from_information_schema(
        "shop", "t", rows, ["name", "id"], {"json_valid(`doc`)"}, "utf8mb4_general_ci"
    )
    assert table == Table(
        "shop",
        "t",
        (
            Column("id", "bigint", unsigned=True, nullable=False),
            Column(
                "name",
                "varchar",
                length=20,
                charset="utf8mb4",
                collation="utf8mb4_general_ci",
                nullable=False,
                default="'it''s'",
            ),
            Column("state", "enum", members=("a", "it's"), charset="latin1", collation="latin1_bin"),
            Column("doc", "json", charset="utf8mb4", collation="utf8mb4_bin"),
            Column("price", "decimal", length=12, scale=2),
            Column(
                "at",
                "timestamp",
                scale=3,
                nullable=False,
                default="current_timestamp(3)",
                on_update="CURRENT_TIMESTAMP(3)",
            ),
            Column("raw", "binary", length=16),
            Column("old", "time"),
        ),
        key=(1, 0),
        charset="utf8mb4",
        collation="utf8mb4_general_ci",
    )


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (
            ("c", "uuid", *PLAIN),
            "type uuid looks like others in a binlog and needs the local engine; without, it",
        ),
        (("c", "xmltype", *PLAIN), "type xmltype"),
        (
            ("c", "datetime(3) /* mariadb-5.3 */", *PLAIN),
            "a fraction in the format of mysql56_temporal_format=OFF",
        ),
        (
            ("c", "char(5)", "klingon", "klingon_bin", "YES", "NULL", ""),
            "character set klingon",
        ),
    ],
)
def test_what_is_not_supported_is_named_with_what_is(row: tuple[Any, ...], what: str) -> None:
    with pytest.raises(SourceError) as raised:
        table_from_information_schema("shop", "t", [row])
    assert str(raised.value).startswith(f"column c of table shop.t is {row[1]}: {what} isn't supported; ")
    assert str(raised.value).endswith("uuid, inet4, inet6, geometry, vector")


@pytest.mark.parametrize("kind", ["enum", "set"])
def test_binary_members_are_not_supported_though_mysql_names_no_character_set(kind: str) -> None:
    row = ("c", f"{kind}('a')", None, None, "YES", None, "")
    with pytest.raises(SourceError, match=f"{kind} with CHARACTER SET binary isn't supported"):
        table_from_information_schema("shop", "t", [row], is_mariadb=False)


def test_json_of_mysql_is_a_type_and_no_text() -> None:
    row = ("doc", "json", None, None, "YES", None, "")
    (column,) = table_from_information_schema("shop", "t", [row], is_mariadb=False).columns
    assert column == Column("doc", "json")


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        ("tinyint(1)", Column("c", "tinyint", width=1)),
        ("tinyint(4)", Column("c", "tinyint")),
        ("int(10) unsigned", Column("c", "int", unsigned=True)),
        ("int(8) unsigned zerofill", Column("c", "int", unsigned=True, width=8, zerofill=True)),
        ("decimal(7,3) unsigned zerofill", Column("c", "decimal", True, 7, 3, zerofill=True)),
        ("float(7,4)", Column("c", "float", length=7, scale=4)),
        ("double(9,3) unsigned", Column("c", "double", True, 9, 3)),
        ("geomcollection", Column("c", "geometry", subtype="geometrycollection")),
        ("point", Column("c", "geometry", subtype="point")),
        ("geometry", Column("c", "geometry")),
    ],
)
def test_widths_digits_and_types_of_geometries(type_: str, column: Column) -> None:
    table = table_from_information_schema("shop", "t", [("c", type_, *PLAIN)])
    assert table.columns == (column,)
    assert type_text(column) == {"tinyint(4)": "tinyint", "int(10) unsigned": "int unsigned"}.get(
        type_, type_.replace("geomcollection", "geometrycollection")
    )
