"""Tables of TiDB in the vocabulary of events."""

from __future__ import annotations

from msgspec.structs import replace

from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.table import to_table
from tidemill.codec.tidb.table_info import IndexColumn, IndexInfo
from tidemill.events import Column

from .row_vectors import load
from .tables import TEXT, clustered, column, table


def columns(info) -> dict[str, Column]:
    return {column.name: column for column in to_table("s", info).columns}


def test_every_kind_of_a_real_table():
    infos = {vector.info.name: vector.info for vector in load("rows")}
    assert columns(infos["t_uint_f2"])["e"] == Column("e", "bigint", unsigned=True)
    assert columns(infos["t_decimal_f2"])["a"] == Column("a", "decimal", length=65, scale=30)
    assert columns(infos["t_bit_f2"])["b33"] == Column("b33", "bit", length=33)
    assert columns(infos["t_date_f2"])["h"] == Column("h", "datetime", scale=6)
    assert columns(infos["t_year_f2"])["a"] == Column("a", "year")
    assert columns(infos["t_binary_f2"])["a"] == Column("a", "binary", length=8)
    assert columns(infos["t_binary_f2"])["f"] == Column("f", "blob", length=4)
    text = columns(infos["t_gbk_f2"])["c"]
    assert (text.kind, text.length, text.charset) == ("text", 2, "gbk")
    kinds = columns(infos["t_enum_f2"])["a"]
    assert (kinds.kind, kinds.members, kinds.nullable) == ("enum", ("a", "b", "c"), True)


def test_defaults_are_sql():
    infos = {vector.info.name: vector.info for vector in load("rows")}
    found = columns(infos["t_defaults_f2"])
    assert {name: found[name].default for name in "abcdefghikl"} == {
        "a": "5",
        "b": "'dflt'",
        "c": "1.5",
        "d": "'2020-01-01 00:00:00'",
        "e": "CURRENT_TIMESTAMP",
        "f": "'y'",
        "g": "'p,q'",
        "h": "b'10101'",
        "i": "'-01:00:00'",
        "k": "-1.25",
        "l": "x'61620000'",
    }
    assert (found["m"].default, found["m"].on_update) == ("CURRENT_TIMESTAMP(3)", "CURRENT_TIMESTAMP(3)")


def test_the_key_is_the_handle_the_clustered_key_or_the_primary_index():
    assert to_table("s", table(column(2, Type.LONG))).key == (0,)
    first, second = column(1, Type.LONG), column(2, Type.VARCHAR, **TEXT)
    info = clustered(first, second, key=(1, 0))
    assert to_table("s", info).key == (1, 0)
    assert to_table("s", replace(info, is_common_handle=False)).key == (1, 0)
    assert to_table("s", replace(info, is_common_handle=False, indexes=())).key == ()


def test_virtual_and_hidden_columns_are_left_out_and_the_key_still_fits():
    virtual = column(2, Type.LONG, generated="`id` + 1")
    stored = column(3, Type.LONG, generated="`id` + 1", stored=True)
    hidden = column(4, Type.LONG, generated="`id`", hidden=True)
    last = column(5, Type.LONG, ColumnFlag.NOT_NULL)
    index = IndexInfo(id=1, name="PRIMARY", columns=(IndexColumn("c5", 4),), primary=True)
    info = table(virtual, stored, hidden, last, pk_is_handle=False, indexes=(index,))
    made = to_table("s", info)
    assert [column.name for column in made.columns] == ["id", "c3", "c5"]
    assert made.key == (2,)
    assert not made.columns[2].nullable


def test_an_expression_and_a_quote_in_defaults():
    info = table(
        column(2, Type.VARCHAR, default="uuid()", default_is_expression=True, **TEXT),
        column(3, Type.VARCHAR, default="it's \\ so", **TEXT),
    )
    assert [column.default for column in to_table("s", info).columns[1:]] == ["(uuid())", "'it''s \\\\ so'"]
