"""Delta tables: the contract of sinks, each commit once whatever ends the process, the tables' columns."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from msgspec.structs import replace

from tidemill.errors import ConfigError, SinkError
from tidemill.events import AddColumn, ChangeColumn, Chunk, Column, DropColumn, Table
from tidemill.sink import open_sink
from tidemill.sink.files.kinds import storage_sink
from tidemill.sink.files.lakes.delta_table import Delta
from tidemill.sink.files.options import DeltaOptions
from tidemill.sink.files.target import files_target
from tidemill.sink.kind import SinkContext
from tidemill.testing.changes import ORDERS, PAIRS, MemoryStore, alter, create, insert, transaction
from tidemill.testing.s3 import LOGIN, S3Process

from ..conformance import HISTORY, Conformance, expected, feed, found
from .places import BucketPlace, DirectoryPlace, Place
from .test_interruptions import Killed, MortalStore

DOCUMENT = Path(__file__).parents[3] / "docs/lakes.md"
SHORT = HISTORY[:9]
LOADED = transaction(1, chunk=Chunk(""))


class InTables(Place):
    """Reads the files that are in the tables' logs: each has the columns of its time."""

    def table(self, name: str) -> DeltaTable | None:
        raise NotImplementedError

    def changes(self, folder):
        name = folder.removeprefix("table=")
        table = self.table(name)
        objects = self.objects()
        changes = []
        for uri in [] if table is None else table.file_uris():
            content = objects[unquote(uri[uri.index(f"/{name}/") + 1 :])]
            changes += pq.read_table(io.BytesIO(content)).to_pylist()
        keys = [(one["source"], one["commit_ts"], one["start_ts"], one["sequence"]) for one in changes]
        assert len(set(keys)) == len(keys)
        return [change for _, change in sorted(zip(keys, changes, strict=True), key=lambda pair: pair[0])]


class DeltaPlace(InTables, DirectoryPlace):
    def __init__(self, path, **options):
        super().__init__(path, **{"format": "parquet", **options})

    def url(self):
        return f"delta://{self.path}"

    def table(self, name):
        path = self.path / name
        return DeltaTable(path) if path.exists() else None


class DeltaBucketPlace(InTables, BucketPlace):
    def url(self):
        return f"delta+{super().url()}"

    def table(self, name):
        storage = {
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        url = f"s3://{self.path}/{name}"
        return DeltaTable(url, storage_options=storage) if DeltaTable.is_deltatable(url, storage) else None


class TestDelta(Conformance):
    @pytest.fixture(params=["at once", "with a journal", "by size"])
    def place(self, request, tmp_path):
        options = {
            "at once": {},
            "with a journal": {"flush_seconds": 60.0, "journal_seconds": 0.0},
            "by size": {"flush_seconds": 60.0, "journal_seconds": 60.0, "file_bytes": 200},
        }
        return DeltaPlace(tmp_path / "copy", **options[request.param])


@pytest.fixture(scope="module")
def s3():
    os.environ.update(LOGIN)
    with S3Process() as server:
        server.bucket("lake")
        yield server


def test_tables_in_a_bucket_end_with_the_rows_of_the_source(s3):
    place = DeltaBucketPlace(s3, "lake/copy", format="parquet", file_bytes=1000, flush_seconds=60.0)
    feed(place.sink(), HISTORY[:9])
    feed(place.sink(), HISTORY)
    assert found(place) == expected(HISTORY)


def check(place: Place) -> None:
    for table in (ORDERS, PAIRS):
        assert Counter(place.rows(table)) == expected(SHORT)[table.full_name]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_any_call_of_the_store_adds_each_commit_once(tmp_path, when):
    context = SinkContext(name="copy", feed="test", store=MemoryStore())
    options = DeltaOptions(flush_seconds=60.0, journal_seconds=60.0, file_bytes=700, parallel=1)
    for calls in count(1):
        place = DeltaPlace(tmp_path / str(calls))
        store = MortalStore(place.path, calls, when)
        with suppress(Killed):
            feed(storage_sink(files_target(store, options), context), SHORT)
        feed(place.sink(), SHORT)
        check(place)
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


def rows_of(place: DeltaPlace, name: str) -> list[dict[str, object]]:
    table = place.table(name)
    assert table is not None
    return sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: (row["commit_ts"], row["sequence"]))


def test_columns_have_types_that_a_wider_column_does_not_change(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
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
        place.sink(),
        [
            create(1, WIDE),
            LOADED,
            transaction(2, insert(WIDE, 1, 255, 2**64 - 1, Decimal("1.50"), 0.5)),
            alter(3, WIDE, "ALTER", *changed, AddColumn(wider.columns[-1])),
            transaction(4, insert(wider, *last)),
        ],
    )
    rows = [row["after"] for row in rows_of(place, "shop.wide")]
    names = [column.name for column in wider.columns]
    assert rows == [
        {"id": 1, "small": 255, "large": 2**64 - 1, "price": Decimal("1.50"), "ratio": 0.5, "note": None},
        dict(zip(names, last, strict=True)),
    ]


def test_the_documented_statement_has_the_present_rows(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    feed(place.sink(), HISTORY)
    sql = re.findall(r"```sql\n(WITH .*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    with duckdb.connect() as database:
        database.register("orders", DeltaTable(place.path / "shop.orders").to_pyarrow_dataset())
        database.register("ddl", DeltaTable(place.path / "ddl").to_pyarrow_dataset())
        rows = database.sql(sql).project("id").fetchall()
    assert Counter(rows) == Counter((row[0],) for row in expected(HISTORY)["shop.orders"].elements())


def test_versions_say_which_state_of_each_table_belongs_to_a_ts(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    feed(place.sink(), HISTORY)
    told: dict[str, int] = {}
    for row in rows_of(place, "versions"):
        assert row["version"] > told.get(row["table"], 0)
        told[row["table"]] = row["version"]
        ts = row["commit_ts"]
        at_ts = DeltaTable(place.path / row["table"], version=row["version"]).to_pyarrow_table()
        changes = rows_of(place, row["table"])
        assert at_ts.num_rows == sum(one["commit_ts"] <= ts for one in changes)
    assert {*told} == {"shop.orders", "shop.pairs", "shop.loose"}


def test_a_statement_that_gives_a_column_another_type_stops_the_sink_before_it(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    items = [create(1, PAIRS), LOADED, transaction(2, insert(PAIRS, 1, "a", 1))]
    feed(place.sink(), items)
    word = Column("n", "varchar", length=9)
    with pytest.raises(
        SinkError,
        match=r"shop\.pairs: 'ALTER' makes n, which is int64 in its Delta table, large_string: add a column "
        "of another name in its place, or give the feed another prefix, where it loads all tables",
    ):
        feed(place.sink(), [*items, alter(3, PAIRS, "ALTER", ChangeColumn("n", word, PAIRS.columns[2]))])
    assert [row["op"] for row in rows_of(place, "ddl")] == ["create"]


def test_a_column_that_comes_back_with_another_type_stops_the_sink(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    other = replace(PAIRS, columns=(*PAIRS.columns[:2], Column("n", "varchar", length=9)))
    items = [create(1, PAIRS), LOADED, transaction(2, insert(PAIRS, 1, "a", 1))]
    feed(place.sink(), items)
    with pytest.raises(
        SinkError,
        match=r"shop\.pairs\.before\.n has the type int64, and is string in its new rows, which one Delta "
        "column can't hold: give the feed another prefix, where it loads all tables",
    ):
        feed(
            place.sink(),
            [
                *items,
                alter(3, PAIRS, "ALTER", DropColumn("n")),
                alter(4, PAIRS, "ALTER", AddColumn(other.columns[2])),
                transaction(5, insert(other, 2, "b", "x")),
            ],
        )
    assert len(rows_of(place, "shop.pairs")) == 1


def test_columns_that_differ_in_the_case_of_letters_are_refused(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    other = replace(PAIRS, columns=(*PAIRS.columns, Column("N", "bigint")))
    with pytest.raises(
        SinkError, match=r"Delta doesn't tell the columns n and N apart: give the feed another"
    ):
        feed(
            place.sink(),
            [
                create(1, PAIRS),
                LOADED,
                transaction(2, insert(PAIRS, 1, "a", 1)),
                alter(3, PAIRS, "ALTER", ChangeColumn("n", other.columns[3])),
                transaction(4, insert(other, 2, "b", 3, 4)),
            ],
        )


def test_a_table_of_another_program_is_left_alone(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    feed(place.sink(), [create(1, PAIRS), LOADED])
    write_deltalake(place.path / "shop.pairs", pa.table({"n": [1]}))
    with pytest.raises(SinkError, match=r"shop.pairs is a Delta table that another program made: remove it"):
        feed(place.sink(), [create(1, PAIRS), LOADED, transaction(2, insert(PAIRS, 1, "a", 1))])
    assert DeltaTable(place.path / "shop.pairs").version() == 0


def test_a_commit_of_an_older_copy_of_the_feed_changes_nothing(tmp_path):
    place = DeltaPlace(tmp_path / "copy")
    feed(place.sink(), HISTORY)
    table = place.table("shop.orders")
    assert table is not None
    before, files = table.version(), table.file_uris()
    stale = Delta("shop.orders", str(place.path / "shop.orders"), {}, is_remote=False)
    assert stale.add("tidemill/test/copy", 1, 0, list) == before
    assert place.table("shop.orders").file_uris() == files


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("delta:///", {}, "names no directory; for instance delta:///var/lake"),
        ("delta+gs://bucket/x", {}, r"no driver 'gs' for delta; accepted: delta, delta\+s3"),
        ("delta:///x", {"format": "ndjson"}, "format = 'ndjson'"),
        ("directory:///x", {"layout": "delta", "format": "csv"}, 'layout = "delta" has files of Parquet'),
        ("delta:///x", {"file_expiration_days": 3}, "rows of Delta tables are removed by DELETE and VACUUM"),
        ("delta+s3:///x", {}, "the URL names no bucket"),
    ],
)
def test_what_a_lake_can_not_be_is_said(url, options, message):
    with pytest.raises(ConfigError, match=message):
        open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
