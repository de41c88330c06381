"""The journal: rows that are acknowledged before they are in files, in every store, layout and format."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tidemill.events import AddColumn, Column, compose_ts
from tidemill.sink.files import storage
from tidemill.testing.changes import ORDERS, alter, at, batch, create, insert, transaction

from .places import BucketPlace, DirectoryPlace

DAY = compose_ts(1_700_000_000_000)
JOURNAL = {"flush_seconds": 60.0, "journal_seconds": 0.0}
PAID = Column("paid", "int", nullable=False, default="7")
ORDERS_2 = replace(ORDERS, columns=(*ORDERS.columns, PAID))


@pytest.fixture(params=["directory", "bucket"])
def shared(request, tmp_path, s3_server, bucket):
    if request.param == "directory":
        return DirectoryPlace(tmp_path / "copy", **JOURNAL)
    return BucketPlace(s3_server, f"{bucket}/copy", **JOURNAL)


def one(ts):
    return batch(transaction(ts, insert(ORDERS, ts, "")))


def ids(place):
    return [change["after"]["id"] for change in place.changes("table=shop.orders")]


def opened(place, **options):
    sink = place.sink(**options)
    return sink, sink.open()


def test_rows_are_acknowledged_and_their_files_come_at_the_end(shared):
    sink, _ = opened(shared)
    sink.write(one(1))
    assert sink.progress() == at(1)
    sink.write(one(2))
    assert sink.progress() == at(2)
    assert shared.objects() == {}
    sink.close()
    assert ids(shared) == [1, 2]


def test_a_process_that_ends_without_its_files_is_continued_by_the_next(shared):
    sink, _ = opened(shared)
    for ts in (1, 2):
        sink.write(one(ts))
        sink.progress()
    again, reached = opened(shared)
    assert reached == at(2)
    again.write(one(3))
    assert again.progress() == at(3)
    again.close()
    assert ids(shared) == [1, 2, 3]
    assert len(shared.objects()) == 1


@pytest.mark.parametrize("form", ["parquet", "ndjson", "csv", "canal-json", "debezium", "maxwell", "simple"])
def test_every_format_comes_back_from_the_journal(tmp_path, form):
    contents = []
    for name, options in (("journal", JOURNAL), ("none", {"flush_seconds": 60.0})):
        place = DirectoryPlace(tmp_path / name, format=form, **options)
        sink, _ = opened(place)
        items = [create(DAY, ORDERS), transaction(DAY + 1, insert(ORDERS, 1, "a"), insert(ORDERS, 2, None))]
        for item in items:
            sink.write(batch(item))
        sink.flush()
        if name == "journal":
            assert place.objects() == {}
            sink, _ = opened(place)
        sink.close()
        contents.append([shown(name, content) for name, content in place.objects().items()])
    assert contents[0] == contents[1]
    assert len(contents[0]) == 2


def shown(name, content):
    """Return what a file has, without the times of encoding."""
    match name.rpartition(".")[2]:
        case "parquet":
            return pq.read_table(io.BytesIO(content)).to_pylist()
        case "csv":
            return content
    return [without_times(json.loads(line)) for line in content.splitlines()]


def without_times(value):
    if not isinstance(value, dict):
        return value
    return {key: without_times(one) for key, one in value.items() if key not in ("ts", "ts_ms", "buildTs")}


def test_nothing_is_said_to_be_visible_that_waits_in_the_journal(tmp_path):
    place = DirectoryPlace(tmp_path / "copy", **JOURNAL)
    sink, _ = opened(place)
    sink.write(one(1))
    sink.flush()
    assert not (tmp_path / "copy" / "_tidemill" / "metadata").exists()
    sink.close()
    assert (tmp_path / "copy" / "_tidemill" / "metadata").read_text() == '{"checkpoint-ts":1}'


def test_a_long_journal_is_replaced_by_one_object(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_MOST_ENTRIES", 3)
    place = DirectoryPlace(tmp_path / "copy", **JOURNAL)
    sink, _ = opened(place)
    lengths = []
    for ts in range(1, 8):
        sink.write(one(ts))
        sink.progress()
        lengths.append(len(list((tmp_path / "copy").glob("_tidemill/staged/*/journal"))))
    assert lengths == [1, 2, 3, 1, 2, 3, 1]
    again, _ = opened(place)
    again.close()
    assert ids(place) == list(range(1, 8))


def test_without_a_journal_rows_are_acknowledged_with_their_files(tmp_path):
    place = DirectoryPlace(tmp_path / "copy", flush_seconds=60.0, journal_seconds=60.0)
    sink, _ = opened(place)
    sink.write(one(1))
    assert sink.progress() is None
    assert sink.flush() == at(1)
    assert ids(place) == [1]
    sink.close()


def test_a_schema_change_of_ticdc_s_layout_takes_the_journal_s_rows_to_their_files(tmp_path):
    options = {"format": "csv", "layout": "ticdc", "date_separator": "none", "file_index_width": 6}
    place = DirectoryPlace(tmp_path / "copy", **JOURNAL, **options)
    sink, _ = opened(place)
    sink.write(batch(transaction(2, insert(ORDERS, 1, ""))))
    assert sink.progress() == at(2)
    sink.close()
    sink, _ = opened(place)
    sink.write(batch(transaction(3, insert(ORDERS, 2, ""))))
    assert sink.progress() == at(3)
    assert len([name for name in place.objects() if name.endswith(".csv")]) == 1
    sink.write(batch(alter(4, ORDERS, "ALTER TABLE orders ADD paid INT NOT NULL DEFAULT 7", AddColumn(PAID))))
    sink.write(batch(transaction(5, insert(ORDERS_2, 3, "", 7))))
    assert sink.progress() == at(5)
    files = {name: content for name, content in place.objects().items() if name.endswith(".csv")}
    assert list(files) == [
        "shop/orders/2/CDC000001.csv",
        "shop/orders/2/CDC000002.csv",
        "shop/orders/4/CDC000001.csv",
    ]
    assert [content.count(b"\n") for content in files.values()] == [1, 1, 1]
    sink.close()


def test_files_of_the_layout_by_tables_expire_and_schema_changes_stay(tmp_path):
    place = DirectoryPlace(tmp_path / "copy", flush_seconds=60.0, file_expiration_days=2)
    days = [compose_ts(1_700_000_000_000 + day * 86_400_000) for day in range(4)]
    sink, _ = opened(place)
    for number, ts in enumerate(days):
        items = [create(ts, ORDERS)] if not number else []
        for item in [*items, transaction(ts + 1, insert(ORDERS, number, ""))]:
            sink.write(batch(item))
        sink.flush()
    sink.close()
    dates = sorted({name.rpartition("/")[0] for name in place.objects()})
    assert dates == [
        "table=ddl/date=2023-11-14",
        *[f"table=shop.orders/date=2023-11-{day}" for day in (15, 16, 17)],
    ]
