"""Contents of the files of each format, in the layout "tables"."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tidemill.events import Column, compose_ts
from tidemill.testing.changes import (
    ORDERS,
    PAIRS,
    alter,
    at,
    batch,
    create,
    delete,
    insert,
    transaction,
    update,
)

from .places import DirectoryPlace

NOON, MIDNIGHT = compose_ts(1_700_000_000_000), compose_ts(1_700_006_400_000)
ITEMS = [
    create(NOON - 1, ORDERS),
    transaction(
        NOON, insert(ORDERS, 1, 'a"b'), update(ORDERS, (1, 'a"b'), (2, None)), insert(PAIRS, 1, "b", 2)
    ),
    transaction(MIDNIGHT, delete(ORDERS, 2, None)),
]


def written(tmp_path, items=ITEMS, **options):
    place = DirectoryPlace(tmp_path / "copy", flush_seconds=60.0, **options)
    sink = place.sink()
    sink.open()
    for item in items:
        sink.write(batch(item))
    sink.flush()
    sink.close()
    return place.objects()


def name(table, date, first, last, number, suffix):
    return f"table={table}/date={date}/{first:020}-{last:020}-0000000001-{number}.{suffix}"


@pytest.mark.parametrize(
    ("form", "suffix"),
    [
        ("parquet", "parquet"),
        ("ndjson", "ndjson"),
        ("csv", "csv"),
        ("canal-json", "json"),
        ("debezium", "json"),
        ("maxwell", "json"),
        ("simple", "json"),
    ],
)
def test_a_file_has_a_table_and_a_day_and_says_which_changes(tmp_path, form, suffix):
    statements = "parquet" if form == "parquet" else "ndjson"
    assert list(written(tmp_path, format=form)) == [
        name("ddl", "2023-11-14", NOON - 1, NOON - 1, 0, statements),
        name("shop.orders", "2023-11-14", NOON, NOON, 1, suffix),
        name("shop.orders", "2023-11-15", MIDNIGHT, MIDNIGHT, 3, suffix),
        name("shop.pairs", "2023-11-14", NOON, NOON, 2, suffix),
    ]
    assert (tmp_path / "copy" / "_tidemill" / "metadata").read_text() == f'{{"checkpoint-ts":{MIDNIGHT}}}'


def test_a_transaction_of_maxwell_is_numbered_across_files_and_commits_once(tmp_path):
    found = written(tmp_path, format="maxwell")
    orders = found[name("shop.orders", "2023-11-14", NOON, NOON, 1, "json")]
    pairs = found[name("shop.pairs", "2023-11-14", NOON, NOON, 2, "json")]
    lines = [json.loads(line) for line in (orders + pairs).splitlines()]
    assert [(line.get("xoffset"), line.get("commit")) for line in lines] == [
        (0, None),
        (1, None),
        (None, True),
    ]


def test_files_of_simple_have_each_version_of_their_table(tmp_path):
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("more", "int")))
    items = [*ITEMS[:2], transaction(MIDNIGHT, insert(wider, 3, "c", 4))]
    found = written(tmp_path, items, format="simple")
    lines = [
        json.loads(line)
        for name, content in found.items()
        if "orders" in name
        for line in content.splitlines()
    ]
    assert [line["type"] for line in lines] == ["BOOTSTRAP", "INSERT", "UPDATE", "BOOTSTRAP", "INSERT"]
    assert [len(line["tableSchema"]["columns"]) for line in lines if "tableSchema" in line] == [2, 3]


def test_rows_of_csv_have_the_key_before_the_columns(tmp_path):
    found = written(tmp_path, format="csv")
    assert found[name("shop.orders", "2023-11-14", NOON, NOON, 1, "csv")].decode() == (
        "source,ts,n,ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,id,note\r\n"
        f'"src",{NOON},0,"I","orders","shop",1,"a""b"\r\n'
        f'"src",{NOON},1,"U","orders","shop",2,\\N\r\n'
    )
    assert found[name("shop.pairs", "2023-11-14", NOON, NOON, 2, "csv")].decode().endswith(
        f'"src",{NOON},2,"I","pairs","shop",1,"b",2\r\n'
    )  # fmt: skip


def test_rows_of_parquet_have_the_source_before_their_columns(tmp_path):
    found = written(tmp_path, format="parquet")
    table = pq.read_table(io.BytesIO(found[name("shop.orders", "2023-11-14", NOON, NOON, 1, "parquet")]))
    head = {"source": "src", "commit_ts": NOON, "start_ts": 0, "snapshot": False}
    assert table.to_pylist() == [
        {**head, "sequence": 0, "op": "insert", "before": None, "after": {"id": 1, "note": 'a"b'}},
        {
            **head,
            "sequence": 1,
            "op": "update",
            "before": {"id": 1, "note": 'a"b'},
            "after": {"id": 2, "note": None},
        },
    ]
    assert json.loads(table.schema.metadata[b"tidemill.table"])["name"] == "orders"


def test_schema_changes_are_lines_of_json_beside_csv(tmp_path):
    found = written(tmp_path, format="csv")
    [line] = found[name("ddl", "2023-11-14", NOON - 1, NOON - 1, 0, "ndjson")].splitlines()
    assert json.loads(line)["op"] == "create"
    assert json.loads(line)["source"] == "src"


def test_rows_of_before_and_after_a_schema_change_are_in_different_files(tmp_path):
    changed = replace(ORDERS, columns=ORDERS.columns[:1])
    items = [
        transaction(1, insert(ORDERS, 1, "a")),
        alter(2, ORDERS, "ALTER TABLE orders DROP note"),
        transaction(3, insert(changed, 2)),
    ]
    found = written(tmp_path, items, format="csv")
    headers = [content.splitlines()[0] for path, content in found.items() if path.endswith(".csv")]
    assert [header.endswith(b",note") for header in headers] == [True, False]


def test_sources_have_files_of_their_own(tmp_path):
    items = [transaction(1, insert(ORDERS, 1, "a")), transaction(2, insert(ORDERS, 2, "b"))]
    items[1] = replace(items[1], source="other")
    found = written(tmp_path, items, format="parquet")
    assert [pq.read_table(io.BytesIO(one))["source"].to_pylist() for one in found.values()] == [
        ["src"],
        ["other"],
    ]


def test_a_transaction_larger_than_a_file_becomes_visible_as_a_whole(tmp_path):
    place = DirectoryPlace(tmp_path / "copy", file_bytes=300)
    sink = place.sink()
    sink.open()
    for number in range(6):
        sink.write(batch(transaction(5, *[insert(ORDERS, number, "x" * 200)] * 2, last=number == 5)))
        assert place.objects() == {}
        if number < 5:
            assert sink.progress() is None
    assert sink.progress() == at(5)
    sink.close()
    assert len(place.objects()) == 6
    assert [change["n"] for change in place.changes("table=shop.orders")] == list(range(12))


def test_files_appear_after_some_time_or_rows(tmp_path):
    place = DirectoryPlace(tmp_path / "copy", flush_seconds=60.0, commit_rows=3)
    sink = place.sink()
    sink.open()
    now = 0.0
    sink._now = lambda: now
    sink.write(batch(transaction(1, insert(ORDERS, 1, ""))))
    now = 59.0
    assert sink.progress() is None
    now = 60.0
    assert sink.progress() == at(1)
    sink.write(batch(transaction(2, *[insert(ORDERS, 2, "")] * 3)))
    assert sink.progress() == at(2)
    sink.write(batch(transaction(3)))
    assert sink.progress() == at(2)
    now = 120.0
    assert sink.progress() == at(3)
    sink.close()
    assert len(place.objects()) == 2


def test_a_table_whose_name_is_too_long_for_a_folder_has_one_that_ends_in_a_digest(tmp_path):
    table = replace(ORDERS, name="録" * 50)
    [found] = written(tmp_path, [transaction(NOON, insert(table, 1, "a"))], format="ndjson")
    folder = found.partition("/")[0]
    assert folder.startswith("table=shop.%E9%8C%B2")
    assert len(folder) == 200
