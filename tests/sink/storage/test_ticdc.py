"""The layout "ticdc": folders, schema files, index files and metadata."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace

from tidemill.errors import Retryable, SinkError
from tidemill.events import (
    AddColumn,
    Batch,
    Column,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
    compose_ts,
)
from tidemill.sink.files.ticdc_schema import columns_of, schema_checksum, schema_name, schema_text
from tidemill.sink.registry import given_sink
from tidemill.testing.changes import ORDERS, PAIRS, alter, at, batch, create, insert, transaction
from tidemill.testing.s3 import Broken

from .places import BucketPlace, DirectoryPlace

DAY = compose_ts(1_700_000_000_000)
"""A ts on 2023-11-14."""
PAID = Column("paid", "int", nullable=False, default="7")
ORDERS_2 = replace(ORDERS, columns=(*ORDERS.columns, PAID))


def place_at(tmp_path, **options):
    return DirectoryPlace(tmp_path / "copy", format="csv", layout="ticdc", **options)


def written(place, *items):
    """Write items, commit them, and return the names of what there is."""
    sink = place.sink()
    sink.open()
    for item in items:
        sink.write(batch(item))
        sink.progress()
    sink.flush()
    sink.close()
    return list(place.objects())


def schemas(place):
    """Return the schema files: folder, version, statement, TiDB's number and columns."""
    found = []
    for name, content in place.objects().items():
        if "/meta/schema_" in name:
            file = json.loads(content)
            columns = [column["ColumnName"] for column in file["TableColumns"]]
            folder = name.partition("/meta/")[0]
            found.append((folder, file["TableVersion"], file["Query"], file["Type"], columns))
    return found


def test_the_folders_are_those_of_ticdc(tmp_path):
    place = place_at(tmp_path)
    rows = [transaction(DAY + ts, insert(ORDERS, ts, "a"), insert(PAIRS, ts, "b", 1)) for ts in (1, 2)]
    found = written(place, create(DAY, ORDERS), *rows)
    checksum = schema_checksum("shop", "pairs", columns_of(PAIRS))
    assert found == [
        "metadata",
        f"shop/orders/{DAY}/2023-11-14/CDC00000000000000000001.csv",
        f"shop/orders/{DAY}/2023-11-14/CDC00000000000000000002.csv",
        f"shop/orders/{DAY}/2023-11-14/meta/CDC.index",
        f"shop/orders/meta/schema_{DAY}_3055358148.json",
        f"shop/pairs/{DAY + 1}/2023-11-14/CDC00000000000000000001.csv",
        f"shop/pairs/{DAY + 1}/2023-11-14/CDC00000000000000000002.csv",
        f"shop/pairs/{DAY + 1}/2023-11-14/meta/CDC.index",
        f"shop/pairs/meta/schema_{DAY + 1}_{checksum:010}.json",
    ]
    objects = place.objects()
    assert json.loads(objects["metadata"]) == {"checkpoint-ts": DAY + 2}
    assert objects[found[3]] == b"CDC00000000000000000002.csv\n"
    assert objects[found[1]] == b'"I","orders","shop",1,"a"\r\n'


@pytest.mark.parametrize(
    ("separator", "folder"),
    [("none", ""), ("year", "2023/"), ("month", "2023-11/"), ("day", "2023-11-14/")],
)
def test_folders_by_date_are_those_of_the_commit_ts(tmp_path, separator, folder):
    place = place_at(tmp_path, date_separator=separator, file_index_width=6)
    assert f"shop/orders/{DAY}/{folder}CDC000001.csv" in written(
        place, transaction(DAY, insert(ORDERS, 1, ""))
    )


def test_each_day_begins_with_the_first_number(tmp_path):
    place, later = place_at(tmp_path), compose_ts(1_700_086_400_000)
    found = written(place, *[transaction(ts, insert(ORDERS, 1, "")) for ts in (DAY, DAY + 1, later)])
    assert [name for name in found if name.endswith("1.csv")] == [
        f"shop/orders/{DAY}/2023-11-14/CDC00000000000000000001.csv",
        f"shop/orders/{DAY}/2023-11-15/CDC00000000000000000001.csv",
    ]


def test_numbers_and_versions_continue_after_a_restart_and_files_that_a_reader_removed(tmp_path):
    place = place_at(tmp_path, date_separator="none", file_index_width=6)
    written(place, create(1, ORDERS), transaction(2, insert(ORDERS, 1, "")))
    again = Table(**{name: getattr(ORDERS, name) for name in ORDERS.__struct_fields__})
    found = written(place, transaction(3, insert(again, 2, "")))
    assert [name for name in found if name.endswith(".csv")] == [
        "shop/orders/1/CDC000001.csv",
        "shop/orders/1/CDC000002.csv",
    ]
    for name in found:
        if name.endswith(".csv"):
            (place.path / name).unlink()
    found = written(place, transaction(4, insert(ORDERS, 3, "")))
    assert [name for name in found if name.endswith(".csv")] == ["shop/orders/1/CDC000003.csv"]


@pytest.mark.parametrize("commits", ["restarts", "many", "one"])
def test_each_schema_change_has_a_file(tmp_path, commits):
    seconds = 60.0 if commits == "one" else 0.0
    place = place_at(tmp_path, date_separator="none", file_index_width=6, flush_seconds=seconds)
    renames = RenameTables((((("shop", "orders")), ("shop", "bills")),))
    bills = replace(ORDERS_2, name="bills")
    items = [
        create(1, ORDERS),
        transaction(2, insert(ORDERS, 1, "")),
        alter(3, ORDERS, "ALTER TABLE orders ADD paid INT NOT NULL DEFAULT 7", AddColumn(PAID)),
        transaction(4, insert(ORDERS_2, 2, "", 7)),
        alter(5, ORDERS, "RENAME TABLE orders TO bills", renames),
        transaction(6, insert(bills, 3, "", 7)),
        alter(7, bills, "TRUNCATE TABLE bills", TruncateTable()),
        alter(8, bills, "ALTER TABLE bills DROP paid", DropColumn("paid")),
        transaction(9, insert(replace(ORDERS, name="bills"), 4, "")),
        alter(10, bills, "DROP TABLE bills", DropTable()),
    ]
    for part in [[item] for item in items] if commits == "restarts" else [items]:
        found = written(place, *part)
    assert schemas(place) == [
        ("shop/bills", 10, "DROP TABLE bills", 4, ["id", "note"]),
        ("shop/bills", 5, "RENAME TABLE orders TO bills", 14, ["id", "note", "paid"]),
        ("shop/bills", 7, "TRUNCATE TABLE bills", 11, ["id", "note", "paid"]),
        ("shop/bills", 8, "ALTER TABLE bills DROP paid", 6, ["id", "note"]),
        ("shop/orders", 1, "", 0, ["id", "note"]),
        ("shop/orders", 3, "ALTER TABLE orders ADD paid INT NOT NULL DEFAULT 7", 5, ["id", "note", "paid"]),
    ]
    assert [name for name in found if name.endswith(".csv")] == [
        "shop/bills/5/CDC000001.csv",
        "shop/bills/8/CDC000001.csv",
        "shop/orders/1/CDC000001.csv",
        "shop/orders/3/CDC000001.csv",
    ]


def test_a_process_that_dies_before_a_commit_leaves_no_version(tmp_path):
    place = place_at(tmp_path, date_separator="none", file_index_width=6)
    sink = place.sink()
    sink.open()
    sink.write(batch(create(1, ORDERS)))
    sink.write(batch(transaction(2, insert(ORDERS, 1, ""))))
    sink._stage()  # a crash: its files stay hidden
    found = written(place, create(1, ORDERS), transaction(2, insert(ORDERS, 1, "")))
    assert [name for name in found if name.endswith(".csv")] == ["shop/orders/1/CDC000001.csv"]


def test_canal_json_ends_lines_as_ticdc_does(tmp_path):
    place = place_at(tmp_path, date_separator="none", file_index_width=6)
    place.options["format"] = "canal-json"
    written(place, transaction(1, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b")))
    lines = place.objects()["shop/orders/1/CDC000001.json"].split(b"\r\n")
    assert [json.loads(line)["data"] for line in lines[:-1]] == [
        [{"id": "1", "note": "a"}],
        [{"id": "2", "note": "b"}],
    ]
    assert lines[-1] == b""


def days(place):
    """Return the days of which there are files, and the tables with schema files."""
    names = place.objects()
    found = sorted({tuple(name.split("/")[1:4:2]) for name in names if "/CDC" in name})
    return found, sorted({name.split("/")[1] for name in names if "/meta/schema_" in name})


NEXT_DAY = 86_400_000 << 18


def test_files_are_removed_a_number_of_days_before_the_checkpoint(tmp_path):
    place = place_at(tmp_path, file_expiration_days=2)
    every = [transaction(DAY + NEXT_DAY * day, insert(ORDERS, day, "")) for day in range(3)]
    written(place, transaction(DAY - 1, insert(PAIRS, 1, "b", 1)), *every)
    three = [("orders", f"2023-11-{day}") for day in (14, 15, 16)]
    assert days(place) == ([*three, ("pairs", "2023-11-14")], ["orders", "pairs"])
    written(place, transaction(DAY + NEXT_DAY * 3, insert(ORDERS, 3, "")))
    assert days(place) == ([*three[1:], ("orders", "2023-11-17")], ["orders", "pairs"])
    assert not (place.path / "shop" / "orders" / str(DAY) / "2023-11-14").exists()
    written(place, transaction(DAY + NEXT_DAY * 300, insert(ORDERS, 4, "")))
    assert days(place) == ([("orders", "2024-09-09")], ["orders", "pairs"])
    assert json.loads(place.objects()["metadata"]) == {"checkpoint-ts": DAY + NEXT_DAY * 300}


def test_nothing_else_than_dated_files_is_removed(tmp_path):
    place = place_at(tmp_path, file_expiration_days=1)
    old = replace(ORDERS, schema="2001-01-01", name="2001-01-02")
    written(place, create(DAY, old), transaction(DAY, insert(old, 1, "")))
    kept = [
        "shop/orders/5/2001-01-01/mine.csv",
        "shop/orders/x/2001-01-01/CDC000001.csv",
        "a/2001-01-01/CDC1",
    ]
    for name in kept:
        (place.path / name).parent.mkdir(parents=True)
        (place.path / name).write_text("")
    written(place, transaction(DAY + 1, insert(old, 2, "")))
    found = list(place.objects())
    assert set(kept) <= set(found)
    assert [name for name in found if name.endswith("2.csv")] == [
        f"2001-01-01/2001-01-02/{DAY}/2023-11-14/CDC00000000000000000002.csv"
    ]


def test_expired_files_of_a_bucket_are_removed_once_a_day_and_after_a_failure(s3_server, bucket):
    options = {"format": "csv", "layout": "ticdc", "file_expiration_days": 1}
    place = BucketPlace(s3_server, f"{bucket}/copy", **options)
    sink = place.sink()
    sink.open()

    def write(day, number=0):
        sink.write(batch(transaction(DAY + NEXT_DAY * day + number, insert(ORDERS, day, ""))))
        return sink.flush()

    write(0)
    write(1)
    broken = []

    def fault(environ, handle):
        if re.search(r"prefix=copy%2Fshop%2F(&|$)", environ["QUERY_STRING"]):
            broken.append(environ["QUERY_STRING"])
            raise Broken

    s3_server.fault = fault
    try:
        with pytest.raises(Retryable):
            write(2)
        s3_server.fault = None
        assert broken
        assert days(place)[0] == [("orders", f"2023-11-{day}") for day in (14, 15, 16)]
        write(2)  # it comes again, and is skipped
        before = s3_server.requests
        write(2, 1)
        assert days(place)[0] == [("orders", f"2023-11-{day}") for day in (15, 16)]
        usual = s3_server.requests - before
        before = s3_server.requests
        write(2, 2)
        assert s3_server.requests - before < usual
    finally:
        s3_server.fault = None
        sink.close()
    names = [name for name in place.objects() if name.endswith(".csv") and "2023-11-16" in name]
    assert [name[-5:] for name in names] == ["1.csv", "2.csv", "3.csv"]


def row_keys(place):
    """Return the key of each row of canal-json, and the row."""
    found = []
    for name, content in place.objects().items():
        if name.endswith(".json") and "/meta/" not in name:
            for line in content.splitlines():
                document = json.loads(line)
                extension = document["_tidb"]
                key = extension["source"], extension["commitTs"], extension["row"]
                found.append((key, document["data"][0]))
    return found


@pytest.mark.parametrize("layout", ["ticdc", "tables"])
def test_rows_of_canal_json_can_have_a_key_that_is_unique_and_in_order(tmp_path, layout):
    options = {"format": "canal-json", "layout": layout, "row_key": True}
    place = DirectoryPlace(tmp_path / "copy", encoding={"enable_tidb_extension": True}, **options)
    rows = [stamped(7, insert(ORDERS, number, "a")) for number in range(4)]
    pair = stamped(7, insert(PAIRS, 1, "b", 2))
    items = [
        transaction(7, rows[0], rows[0], last=False),
        transaction(7, pair, rows[1]),
        transaction(8, stamped(8, insert(ORDERS, 1, "<"))),
    ]
    sink = place.sink(flush_seconds=60.0)
    sink.open()
    for item in items:
        sink.write(Batch([item], at(item.commit_ts) if item.last else None))
    sink.flush()
    sink.close()
    found = sorted(row_keys(place), key=lambda pair: pair[0])
    assert [key for key, _ in found] == [
        ("src", 7, 0),
        ("src", 7, 1),
        ("src", 7, 2),
        ("src", 7, 3),
        ("src", 8, 0),
    ]
    assert [row.get("id") for _, row in found] == ["0", "0", None, "1", "1"]


def stamped(ts, change):
    return replace(change, commit_ts=ts)


def test_rows_of_csv_can_have_a_key_in_columns_that_the_schema_file_names(tmp_path):
    place = place_at(tmp_path, date_separator="none", file_index_width=6, row_key=True)
    items = [create(1, ORDERS), transaction(2, insert(ORDERS, 1, 'a"'), insert(PAIRS, 1, "b", 2))]
    written(place, *items, transaction(3, insert(ORDERS, 2, None)))
    objects = place.objects()
    assert objects["shop/orders/1/CDC000001.csv"] == b'"I","orders","shop",1,"a""","src",2,0\r\n'
    assert objects["shop/orders/1/CDC000002.csv"] == b'"I","orders","shop",2,\\N,"src",3,0\r\n'
    assert objects["shop/pairs/2/CDC000001.csv"] == b'"I","pairs","shop",1,"b",2,"src",2,1\r\n'
    key = ["_tidemill_source", "_tidemill_ts", "_tidemill_n"]
    assert schemas(place) == [
        ("shop/orders", 1, "", 0, ["id", "note", *key]),
        ("shop/pairs", 2, "", 0, ["a", "b", "n", *key]),
    ]
    for name, content in objects.items():
        if "/meta/schema_" in name:
            file = json.loads(content)
            checksum = schema_checksum(file["Schema"], file["Table"], file["TableColumns"])
            assert name.endswith(schema_name(file["TableVersion"], checksum))
            assert len(file["TableColumns"]) == file["TableColumnsTotal"]


def test_a_prefix_of_csv_keeps_its_columns(tmp_path):
    written(place_at(tmp_path), transaction(1, insert(ORDERS, 1, "")))
    with pytest.raises(SinkError, match=r"has files of format 'csv' .*give these options, or another prefix"):
        place_at(tmp_path, row_key=True).sink().open()


def test_while_tables_are_loaded_metadata_is_not_written(tmp_path):
    place = place_at(tmp_path)
    sink = place.sink()
    sink.open()
    sink.write(Batch([transaction(1, insert(ORDERS, 1, "a"))], at(1, loading={})))
    sink.progress()
    sink.close()
    assert "metadata" not in place.objects()


@pytest.mark.parametrize("name", ["a/b", "..", "a\nb", pytest.param("録" * 81, id="too long")])
def test_names_that_are_no_folders_are_refused(tmp_path, name):
    table = replace(ORDERS, name=name)
    with pytest.raises(
        SinkError, match="can't have a folder of this name: leave the table out, or give layout"
    ):
        written(place_at(tmp_path), transaction(1, insert(table, 1, "")))


# --- schema files, against those that TiCDC's own tests expect


VARCHAR = {"kind": "varchar", "nullable": False, "charset": "utf8mb4"}
TABLE_1 = Table(
    "schema1",
    "table1",
    (
        Column("Id", "int", nullable=False),
        Column("LastName", length=128, **VARCHAR),
        Column("FirstName", **{**VARCHAR, "length": 64, "nullable": True}),
        Column("Birthday", "datetime"),
    ),
    key=(0,),
)


def test_checksums_are_those_of_ticdc():
    columns = columns_of(TABLE_1)
    assert schema_name(100, schema_checksum("schema1", "table1", columns)) == "schema_100_0785427252.json"
    assert schema_name(100, schema_checksum("schema1", "", [])) == "schema_100_3233644819.json"
    assert schema_checksum("schema1", "table1", columns[::-1]) == 785427252


def test_a_schema_file_is_indented_and_escaped_as_go_does():
    text = schema_text(replace(TABLE_1, columns=TABLE_1.columns[:1]), 5, columns_of(TABLE_1)[:1], "<é&>", 3)
    assert text == (
        "{\n"
        '    "Table": "table1",\n'
        '    "Schema": "schema1",\n'
        '    "Version": 1,\n'
        '    "TableVersion": 5,\n'
        '    "Query": "\\u003cé\\u0026\\u003e",\n'
        '    "Type": 3,\n'
        '    "TableColumns": [\n'
        "        {\n"
        '            "ColumnName": "Id",\n'
        '            "ColumnType": "INT",\n'
        '            "ColumnPrecision": "11",\n'
        '            "ColumnNullable": "false",\n'
        '            "ColumnIsPk": "true"\n'
        "        }\n"
        "    ],\n"
        '    "TableColumnsTotal": 1\n'
        "}"
    )


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"kind": "tinyint"}, "TINYINT 4"),
        ({"kind": "int", "unsigned": True}, "INT UNSIGNED 10"),
        ({"kind": "bigint", "unsigned": True}, "BIGINT UNSIGNED 20"),
        ({"kind": "decimal", "length": 10, "scale": 2}, "DECIMAL 10,2"),
        ({"kind": "decimal", "length": 10}, "DECIMAL 10,0"),
        ({"kind": "float"}, "FLOAT 12"),
        ({"kind": "double"}, "DOUBLE 22"),
        ({"kind": "bit", "length": 9}, "BIT 9"),
        ({"kind": "year"}, "YEAR 4"),
        ({"kind": "varbinary", "length": 9}, "VARBINARY 9"),
        ({"kind": "text", "length": 1}, "TINYTEXT 255"),
        ({"kind": "blob", "length": 4}, "LONGBLOB 4294967295"),
        ({"kind": "timestamp", "scale": 3}, "TIMESTAMP ,3"),
        ({"kind": "time"}, "TIME"),
        ({"kind": "date"}, "DATE"),
        ({"kind": "enum", "members": ("a",)}, "ENUM"),
        ({"kind": "json"}, "JSON"),
    ],
)  # fmt: skip
def test_types_are_named_as_ticdc_does(column, expected):
    [found] = columns_of(Table("s", "t", (Column("c", **column),)))
    size = ",".join(filter(None, (found.get("ColumnPrecision"), found.get("ColumnScale"))))
    size = f",{size}" if "ColumnScale" in found and "ColumnPrecision" not in found else size
    assert f"{found['ColumnType']} {size}".strip() == expected


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("directory:///x?layout=ticdc", {}),
        ("directory:///x", {"layout": "ticdc"}),
        ("s3://x?layout=ticdc", {}),
        ("s3://x", {"layout": "ticdc"}),
    ],
)
def test_definitions_are_followed_wherever_the_layout_is_chosen(url, options):
    given = given_sink("copy", url, options)
    assert given.kind.has_definitions(given.target, given.options)
    tables = given_sink("copy", url.partition("?")[0], {})
    assert not tables.kind.has_definitions(tables.target, tables.options)
