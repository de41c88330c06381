"""Tables of lakes: the contract of sinks, each commit once whatever ends the process, the tables' columns.

Each test takes every kind of lake.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tidemill.errors import ConfigError, SinkError
from tidemill.events import AddColumn, ChangeColumn, Chunk, Column, DropColumn, Table
from tidemill.sink import open_sink
from tidemill.sink.files.kinds import storage_sink
from tidemill.sink.files.lakes.layout import DataFile
from tidemill.sink.kind import SinkContext
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    MemoryStore,
    alter,
    create,
    delete,
    insert,
    transaction,
)
from tidemill.testing.s3 import LOGIN, S3Process
from tidemill.testing.sink_conformance import HISTORY, SinkConformance, expected, feed, found

from .lakes import LAKES, DeltaBucket, IcebergBucket, Lake
from .test_interruptions import Killed, MortalStore
from .test_parquet import shown

TABLES = {table.full_name: table for table in (ORDERS, PAIRS, LOOSE)}
LOADED = transaction(1, chunk=Chunk(""))
WRITER = "tidemill/test/copy"
ONE_PAIR = [create(1, PAIRS), LOADED, transaction(2, insert(PAIRS, 1, "a", 1))]


@pytest.fixture(params=LAKES)
def lake(request, tmp_path):
    return LAKES[request.param](tmp_path / "copy")


MODES = {
    "at once": {},
    "with a journal": {"flush_seconds": 60.0, "journal_seconds": 0.0},
    "by size": {"flush_seconds": 60.0, "journal_seconds": 60.0, "file_bytes": 200},
}


class TestLake(SinkConformance):
    @pytest.fixture(params=[f"delta {mode}" for mode in MODES] + ["iceberg by size"])
    def place(self, request, tmp_path):
        kind, _, mode = request.param.partition(" ")
        return LAKES[kind](tmp_path / "copy", **MODES[mode])


@pytest.fixture(scope="module")
def s3():
    os.environ.update(LOGIN)
    with S3Process() as server:
        yield server


@pytest.fixture(params=LAKES)
def in_bucket(request, s3, tmp_path):
    s3.bucket(request.param)
    options = {"format": "parquet", "file_bytes": 1000, "flush_seconds": 60.0}
    if request.param == "delta":
        return DeltaBucket(s3, "delta/copy", **options)
    return IcebergBucket(s3, "iceberg/copy", tmp_path, **options)


def test_tables_in_a_bucket_end_with_the_rows_of_the_source(in_bucket):
    feed(in_bucket.sink(), HISTORY[:9])
    feed(in_bucket.sink(), HISTORY)
    assert found(in_bucket) == expected(HISTORY)


@pytest.mark.parametrize("kind", LAKES)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_a_process_that_dies_at_any_call_of_the_store_adds_each_commit_once(tmp_path, when, kind, step):
    context = SinkContext(name="copy", feed="test", store=MemoryStore())
    options = {"flush_seconds": 60.0, "journal_seconds": 60.0, "file_bytes": 700, "parallel": 1}
    history = HISTORY[:9] if kind == "delta" else HISTORY[:3]  # a commit to Iceberg has more calls
    for calls in count(1 + (when == "after"), step):
        place = LAKES[kind](tmp_path / str(calls))
        store = MortalStore(place.path, calls, when)
        with suppress(Killed):
            feed(storage_sink(place.target(store, **options), context), history)
        feed(place.sink(), history)
        assert {name: Counter(place.rows(TABLES[name])) for name in expected(history)} == expected(history)
        if store.left > 0:
            break
    assert calls > 25


WIDE = Table(
    "shop",
    "wide",
    (
        Column("id", "int", nullable=False),
        Column("small", "tinyint", unsigned=True),
        Column("large", "bigint", unsigned=True),
        Column("price", "decimal", length=10, scale=2),
        Column("ratio", "float"),
    ),
    key=(0,),
)


def test_columns_have_types_that_a_wider_column_does_not_change(lake):
    wider = replace(
        WIDE,
        columns=(
            Column("id", "bigint", nullable=False),
            Column("small", "smallint"),
            Column("large", "bigint", unsigned=True),
            Column("price", "decimal", length=20, scale=2),
            Column("ratio", "double"),
            Column("note", "text", default="'none'"),
        ),
    )
    changed = [ChangeColumn(a.name, b) for a, b in zip(WIDE.columns, wider.columns, strict=False)]
    last = (2**62, -300, 2**64 - 1, Decimal("123456789012345678.90"), 0.1, "new")
    feed(
        lake.sink(),
        [
            create(1, WIDE),
            LOADED,
            transaction(2, insert(WIDE, 1, 255, 2**64 - 1, Decimal("1.50"), 0.5)),
            alter(3, WIDE, "ALTER", *changed, AddColumn(wider.columns[-1])),
            transaction(4, insert(wider, *last)),
        ],
    )
    rows = [row["after"] for row in lake.list("shop.wide")]
    names = [column.name for column in wider.columns]
    assert rows == [
        {"id": 1, "small": 255, "large": 2**64 - 1, "price": Decimal("1.50"), "ratio": 0.5, "note": None},
        dict(zip(names, last, strict=True)),
    ]


def test_every_value_of_every_type_is_read_back_exactly(lake):
    rows = [*kinds.ROWS, kinds.NULLS]
    changes = [insert(kinds.KEYED, *row) for row in rows] + [delete(kinds.KEYED, *row) for row in rows]
    feed(lake.sink(), [create(1, kinds.KEYED), transaction(2, *changes, chunk=Chunk(""))])
    found = lake.list(kinds.KEYED.full_name)
    wanted = [
        {column.name: shown(column, value) for column, value in zip(kinds.KEYED.columns, row, strict=True)}
        for row in rows
    ]
    assert [row["after"] for row in found[: len(rows)]] == wanted
    assert [row["before"] for row in found[len(rows) :]] == wanted


def test_versions_say_which_state_of_each_table_belongs_to_a_ts(lake):
    feed(lake.sink(), HISTORY)
    told: dict[str, int] = {}
    for row in lake.list("versions"):
        assert row["version"] != told.get(row["table"], 0)
        told[row["table"]] = row["version"]
        ts = row["commit_ts"]
        at_ts = lake.arrow(row["table"], row["version"])
        changes = lake.list(row["table"])
        assert at_ts.num_rows == sum(one["commit_ts"] <= ts for one in changes)
    assert {*told} == {"shop.orders", "shop.pairs", "shop.loose"}


def test_a_statement_that_gives_a_column_another_type_stops_the_sink_before_it(lake):
    feed(lake.sink(), ONE_PAIR)
    word = Column("n", "varchar", length=9)
    with pytest.raises(
        SinkError,
        match=r"shop\.pairs: 'ALTER' makes n, which is int64 in the lake, large_string: add a column of "
        "another name in its place, or give the feed another prefix, where it loads all tables",
    ):
        feed(lake.sink(), [*ONE_PAIR, alter(3, PAIRS, "ALTER", ChangeColumn("n", word, PAIRS.columns[2]))])
    assert [row["op"] for row in lake.list("ddl")] == ["create"]


def test_a_column_that_comes_back_with_another_type_stops_the_sink(lake):
    other = replace(PAIRS, columns=(*PAIRS.columns[:2], Column("n", "varchar", length=9)))
    feed(lake.sink(), ONE_PAIR)
    with pytest.raises(
        SinkError,
        match=r"shop\.pairs\.before\.n has the type int64, and is string in its new rows, which one "
        f"{lake.kind} column can't hold: give the feed another prefix, where it loads all tables",
    ):
        feed(
            lake.sink(),
            [
                *ONE_PAIR,
                alter(3, PAIRS, "ALTER", DropColumn("n")),
                alter(4, PAIRS, "ALTER", AddColumn(other.columns[2])),
                transaction(5, insert(other, 2, "b", "x")),
            ],
        )
    assert len(lake.list("shop.pairs")) == 1


def test_columns_that_differ_in_the_case_of_letters_are_refused(lake):
    other = replace(PAIRS, columns=(*PAIRS.columns, Column("N", "bigint")))
    with pytest.raises(
        SinkError, match=rf"readers of {lake.kind} don't tell the columns n and N apart: give the feed"
    ):
        feed(
            lake.sink(),
            [
                *ONE_PAIR,
                alter(3, PAIRS, "ALTER", ChangeColumn("n", other.columns[3])),
                transaction(4, insert(other, 2, "b", 3, 4)),
            ],
        )


def test_a_table_of_another_program_is_left_alone(lake):
    feed(lake.sink(), ONE_PAIR[:2])
    lake.make("shop.pairs", pa.table({"n": [1]}))
    before = lake.version("shop.pairs")
    with pytest.raises(SinkError, match=rf"shop.pairs is an? {lake.kind} table that another program"):
        feed(lake.sink(), ONE_PAIR)
    assert lake.version("shop.pairs") == before


def test_a_commit_of_an_older_copy_of_the_feed_changes_nothing(lake):
    feed(lake.sink(), HISTORY)
    before, names = lake.version("shop.orders"), lake.names("shop.orders")
    assert lake.another("shop.orders").add(WRITER, 1, 0, list) == before
    assert lake.names("shop.orders") == names


def copied(lake: Lake, name: str, number: int) -> DataFile:
    """Return a new file with the rows of one of a table's files."""
    source = lake.path / lake.names(name)[0]
    copy = source.with_name(f"{number}.parquet")
    copy.write_bytes(source.read_bytes())
    path = str(copy.relative_to(lake.path / name))
    return DataFile(
        path, source.parent.name.removeprefix("date="), copy.stat().st_size, pq.read_metadata(copy)
    )


def test_of_two_copies_of_the_feed_that_commit_at_once_one_stops(lake):
    feed(lake.sink(), ONE_PAIR)
    before = lake.names("shop.pairs")
    late, first = copied(lake, "shop.pairs", 1), copied(lake, "shop.pairs", 2)

    def files() -> list[DataFile]:
        lake.another("shop.pairs").add(WRITER, 100, 0, lambda: [first])
        return [late]

    with pytest.raises(SinkError, match=r"shop.pairs: another copy of the feed writes to it: stop one"):
        lake.another("shop.pairs").add(WRITER, 100, 0, files)
    assert Counter(lake.names("shop.pairs")) == Counter([*before, f"shop.pairs/{first.path}"])


def test_of_two_copies_of_the_feed_that_make_a_table_at_once_one_stops(lake):
    feed(lake.sink(), ONE_PAIR)
    source = copied(lake, "shop.pairs", 1)

    def files() -> list[DataFile]:
        lake.another("shop.new").add(WRITER, 100, 0, lambda: [source])
        return [source]

    with pytest.raises(SinkError, match=r"shop.new: "):
        lake.another("shop.new").add(WRITER, 100, 0, files)
    assert lake.names("shop.new") == [f"shop.new/{source.path}"]


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("delta:///", {}, "names no directory; for instance delta:///var/lake"),
        ("delta+gs://bucket/x", {}, r"no driver 'gs' for delta; accepted: delta, delta\+s3"),
        ("delta:///x", {"format": "ndjson"}, "format = 'ndjson'"),
        ("directory:///x", {"layout": "delta", "format": "csv"}, 'layout = "delta" has files of Parquet'),
        ("delta:///x", {"file_expiration_days": 3}, "rows of a lake's tables are removed by DELETE"),
        ("delta+s3:///x", {}, "the URL names no bucket"),
        ("directory:///x", {"layout": "iceberg"}, 'layout = "iceberg" needs a catalog: give a URL such as'),
        ("iceberg:///x", {}, r"names no kind of catalog; accepted: iceberg\+sql:///var/lake, iceberg\+rest:"),
        ("iceberg+glue:///x", {}, r"accepted: iceberg, iceberg\+sql, iceberg\+rest, iceberg\+rests"),
        ("iceberg+sql:///", {}, r"names no directory; for instance iceberg\+sql:///var/lake"),
        ("iceberg+sql://host/x", {}, r"names no directory; for instance iceberg\+sql:///var/lake"),
        ("iceberg+sql:///x?token=secret", {}, "token"),
        ("iceberg+sql:///x", {"token": "secret"}, r"token goes with iceberg\+rest: leave it out"),
        ("iceberg+sql:///x", {"catalog": "nonsense"}, "catalog: SQLAlchemy can't open the database"),
        ("iceberg+sql:///x", {"location": "gs://b/x"}, "location = 'gs://b/x': a directory, or s3://bucket"),
        ("iceberg+sql:///x", {"location": "s3://b?region=x"}, "a directory, or s3://bucket/prefix"),
        ("iceberg+sql:///x", {"keep_snapshots": 0}, "keep_snapshots"),
        ("iceberg+rest://host:1", {}, "location is missing, the place of the tables; for instance iceberg"),
        ("iceberg+rest:///x", {"location": "/x"}, r"names no host; for instance iceberg\+rest://host:8181"),
        ("iceberg+rest://me:secret@host", {"location": "/x"}, "the URL has a user: give token or credential"),
        ("iceberg+rest://host", {"location": "/x", "catalog_ca": "/ca"}, r"goes with iceberg\+rests"),
        (
            "iceberg+rest://host",
            {"location": "/x", "catalog": "sqlite://"},
            r"catalog goes with iceberg\+sql",
        ),
        ("iceberg+rest://host", {"location": "/x", "scope": "all"}, "scope and oauth_url go with credential"),
        (
            "iceberg+rest://host",
            {"location": "/x", "token": "a", "credential": "b"},
            "token and credential: give one of them",
        ),
    ],
)
def test_what_a_lake_can_not_be_is_said(url, options, message):
    with pytest.raises(ConfigError, match=message):
        open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
