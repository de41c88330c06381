"""A stream with typed columns that evolves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as t

from tidemill.errors import ConfigError, SourceError
from tidemill.events import ChangeColumn, Column, Ddl, Table
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.read.pick import Pick
from tidemill.spark.read.schema import table_type
from tidemill.spark.read.superset import with_columns_of
from tidemill.spark.read.typed import TypedEncoder
from tidemill.spark.read.widening import widened
from tidemill.testing.changes import insert, transaction

from .test_schema_changes import ROW, Bed, Query, bed

__all__ = ["bed"]


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind, name != "op") for name, kind in fields.items()])


class Evolving(Query):
    """A query with the given columns, or those of the table now."""

    def __init__(self, bed: Bed, schema: t.StructType | None = None) -> None:
        frame = TidemillSource(
            {**bed.options, "schemaChanges": "evolve", "operations": "insert,update,delete"}
        )
        self.schema = frame.schema() if schema is None else schema
        self.reader = frame.streamReader(self.schema)


def test_rows_that_lack_a_column_have_null_and_an_added_one_is_never_lost(bed: Bed) -> None:
    with Evolving(bed) as query:
        narrow = query.schema
        first = query.reader.initialOffset()
        bed.insert(ROW)
        bed.alter("drop column note")
        bed.insert({"id": 2})
        middle = query.end(first)
        assert query.rows(first, middle) == [ROW, {"id": 2, "note": None}]
        bed.alter("add column tag varchar(9)")
        bed.insert({"id": 3, "tag": "new"})
        last = query.end(middle)
        with pytest.raises(SourceError, match=r"don't hold: column tag was added; .* wider schema"):
            query.rows(middle, last)
    with (
        Evolving(bed, narrow) as query,
        pytest.raises(ConfigError, match=r"changed after load\(\).*: column tag was added; load"),
    ):
        query.rows(middle, last)
    with Evolving(bed) as query:
        wide = widened(narrow, query.schema)
    with Evolving(bed, wide) as query:
        assert query.rows(middle, last) == [{"id": 3, "tag": "new", "note": None}]
        assert query.rows(first, middle)[0] == {"id": 1, "tag": None, "note": ROW["note"]}


def test_wider_types_hold_the_rows_of_before_and_after(bed: Bed) -> None:
    with Evolving(bed) as query:
        narrow = query.schema
        first = query.reader.initialOffset()
        bed.insert(ROW)
        bed.alter("modify column id bigint")
        bed.insert({"id": 1 << 40, "note": "b"})
        last = query.end(first)
        with pytest.raises(SourceError, match="don't hold: column id was int and is bigint"):
            query.rows(first, last)
    with Evolving(bed) as query:
        assert widened(narrow, query.schema).simpleString() == query.schema.simpleString()
        assert query.rows(first, last) == [ROW, {"id": 1 << 40, "note": "b"}]


def test_a_schema_may_have_columns_that_are_yet_to_come(bed: Bed) -> None:
    row = struct(id=t.LongType(), note=t.StringType(), price=t.DecimalType(9, 2))
    with Evolving(bed, struct(op=t.StringType(), after=row)) as query:
        first = query.reader.initialOffset()
        bed.insert(ROW)
        bed.alter("add column price decimal(6,2)")
        bed.insert({"id": 2, "note": "b", "price": "1.50"})
        last = query.end(first)
        assert query.rows(first, last) == [
            {**ROW, "price": None},
            {"id": 2, "note": "b", "price": Decimal("1.50")},
        ]


ITEM = Table("shop", "item", (Column("id", "int"), Column("note", "text")))


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        ({"before": struct(id=t.IntegerType()), "after": struct(id=t.LongType())}, "are the same struct"),
        ({"after": t.StringType()}, "before and after are the same struct"),
        (
            {"after": struct(id=t.ArrayType(t.LongType()))},
            "column id is array<bigint>, which no column of a source has",
        ),
    ],
)
def test_a_schema_that_no_table_has_is_refused(images: dict[str, t.DataType], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        with_columns_of(ITEM, struct(**images))


def test_a_schema_without_images_changes_nothing() -> None:
    assert with_columns_of(ITEM, struct(op=t.StringType())) == ITEM


def schema(*columns: Column) -> t.StructType:
    return table_type(Table("shop", "item", columns))


def test_a_widened_schema_has_the_columns_of_both() -> None:
    older = schema(Column("id", "int"), Column("gone", "date"), Column("part", "float"))
    newer = schema(Column("new", "text"), Column("part", "double"), Column("id", "bigint"))
    found = widened(older, newer)
    wanted = schema(
        Column("new", "text"), Column("part", "double"), Column("id", "bigint"), Column("gone", "date")
    )
    fields = [[(one.name, one.dataType, one.nullable) for one in kind] for kind in (found, wanted)]
    assert fields[0] == fields[1]
    with pytest.raises(ConfigError, match="column id: no type holds both int and string"):
        widened(older, schema(Column("id", "text")))


@pytest.mark.parametrize(
    "own", [Column("v", "text"), Column("v", "decimal", length=40, scale=2)], ids=["text", "decimal"]
)
def test_decimals_that_spark_has_as_text_keep_their_digits(own: Column) -> None:
    encoder = TypedEncoder(Table("shop", "item", (own,)), Pick(), widens=True)
    other = Table("shop", "item", (Column("v", "decimal", length=45, scale=6),))
    text = Table("shop", "item", (Column("v", "varchar", length=9),))
    items = [
        transaction(2, insert(other, Decimal("1.123456")), insert(other, None)),
        transaction(3, insert(text, "abc")),
    ]
    found = encoder.encode(items).column("after").to_pylist()
    assert [row["v"] for row in found] == ["1.123456", None, "abc"]


def change(column: Column, name: str = "id") -> Any:
    actions = (ChangeColumn(name, column),)
    return Ddl(3, 3, "src", "shop", "item", "ALTER …", actions, "log:3")


def test_a_widened_number_changes_no_row_and_others_may() -> None:
    wide = Table("shop", "item", (Column("id", "bigint"), Column("note", "text")))
    encoder = TypedEncoder(wide, Pick(), widens=True)
    items = [transaction(2, insert(ITEM, 1, "a")), change(Column("id", "bigint"))]
    assert encoder.encode(items).column("after").to_pylist() == [{"id": 1, "note": "a"}]
    for other in (
        change(Column("id", "int")),
        change(Column("other", "bigint")),
        change(Column("note", "text"), "note"),
    ):
        with pytest.raises(SourceError, match="changed in a way that its rows don't tell"):
            encoder.encode([other])
