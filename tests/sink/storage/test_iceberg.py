"""Iceberg tables: old snapshots, other programs that change a table, and catalogs that fail."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Barrier
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.table import Table
from pyiceberg.types import BooleanType
from requests import ConnectionError as NoConnection

from tidemill.errors import Retryable, SinkError
from tidemill.sink import Delivery
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes.iceberg_address import iceberg_of
from tidemill.sink.files.lakes.iceberg_catalog import create_namespace, open_catalog
from tidemill.sink.files.lakes.iceberg_options import IcebergOptions
from tidemill.sink.files.lakes.layout import DataFile
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
from tidemill.testing.changes import ORDERS, PAIRS, MemoryStore, create, insert, transaction
from tidemill.testing.disk import small_disk
from tidemill.testing.private_server import PASSWORD
from tidemill.testing.s3 import LOGIN, S3Store
from tidemill.testing.sink_conformance import HISTORY, expected, feed, found

from .lakes import IcebergBucket, IcebergLake
from .test_lakes import LOADED, ONE_PAIR, WRITER, copied


@pytest.fixture
def lake(tmp_path):
    return IcebergLake(tmp_path / "copy")


def pairs(count: int) -> list:
    """Return a history whose each commit adds a row to `shop.pairs`."""
    return [*ONE_PAIR, *[transaction(3 + n, insert(PAIRS, 2 + n, "b", n)) for n in range(count - 1)]]


def table(lake: IcebergLake, name: str) -> Table:
    with lake.catalog() as catalog:
        return catalog.load_table(lake.identifier(name))


def metadata_files(lake: IcebergLake, name: str) -> set[str]:
    return {path.name for path in (lake.path / name / "metadata").glob("*.avro")}


def reachable(one: Table) -> set[str]:
    """Return the names of the metadata's files that snapshots have."""
    lists = {snapshot.manifest_list for snapshot in one.snapshots()}
    manifests = {manifest.manifest_path for s in one.snapshots() for manifest in s.manifests(one.io)}
    return {Path(urlsplit(location).path).name for location in lists | manifests}


def rows_of_each(one: Table) -> list[int]:
    """Return the number of rows as of each snapshot."""
    ordered = sorted(one.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    return [one.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows for snapshot in ordered]


# --- old snapshots


def test_the_latest_snapshots_are_kept_and_no_file_of_the_others(lake):
    lake.options["keep_snapshots"] = 3
    feed(lake.sink(), HISTORY)
    assert found(lake) == expected(HISTORY)
    for name in ("shop.orders", "shop.loose", "versions", "ddl"):
        one = table(lake, name)
        assert len(one.snapshots()) == 3
        assert metadata_files(lake, name) == reachable(one)
        assert len(list((lake.path / name / "metadata").glob("*.json"))) <= 11


def test_manifests_that_were_merged_go_with_the_last_snapshot_that_has_them(lake):
    lake.options["keep_snapshots"] = 3
    feed(lake.sink(), pairs(1))
    table(lake, "shop.pairs").transaction().set_properties(
        {"commit.manifest.min-count-to-merge": "2"}
    ).commit_transaction()
    feed(lake.sink(), pairs(9))
    one = table(lake, "shop.pairs")
    assert rows_of_each(one) == [7, 8, 9]
    # pyiceberg leaves the manifest m0 of a commit that it merges with others into m1.
    assert {name for name in metadata_files(lake, "shop.pairs") if "-m0." not in name} == reachable(one)


def test_a_snapshot_with_a_tag_is_kept_and_can_be_read(lake):
    lake.options["keep_snapshots"] = 2
    feed(lake.sink(), pairs(2))
    one = table(lake, "shop.pairs")
    one.transaction().set_properties({"commit.manifest.min-count-to-merge": "2"}).commit_transaction()
    one.manage_snapshots().create_tag(lake.version("shop.pairs"), "monday").commit()
    feed(lake.sink(), pairs(7))
    assert rows_of_each(table(lake, "shop.pairs")) == [2, 6, 7]


def test_with_one_snapshot_the_table_has_its_rows(lake):
    lake.options["keep_snapshots"] = 1
    feed(lake.sink(), HISTORY)
    assert found(lake) == expected(HISTORY)
    assert len(table(lake, "shop.orders").snapshots()) == 1


def test_the_number_of_the_last_commit_outlives_its_snapshot(lake):
    feed(lake.sink(), pairs(3))
    table(lake, "shop.pairs").append(table(lake, "shop.pairs").scan().to_arrow()[:0])
    one = table(lake, "shop.pairs")
    current = lake.version("shop.pairs")
    old = [snapshot.snapshot_id for snapshot in one.snapshots() if snapshot.snapshot_id != current]
    one.maintenance.expire_snapshots().by_ids(old).commit()
    assert lake.another("shop.pairs").add(WRITER, 4, 0, list) == current
    feed(lake.sink(), pairs(5))
    assert Counter(lake.rows(PAIRS)) == Counter([(1, "a", 1), *[(2 + n, "b", n) for n in range(4)]])


# --- columns


def test_columns_of_files_have_the_ids_of_the_table(lake):
    feed(lake.sink(), HISTORY)
    for name in ("shop.orders", "shop.pairs", "ddl", "versions"):
        schema = table(lake, name).schema()
        for file in lake.names(name):
            columns = pyarrow_to_schema(pq.read_schema(lake.path / file))
            for column in columns.column_names:
                assert columns.find_field(column).field_id == schema.find_field(column).field_id


def test_a_column_of_another_program_and_then_one_of_the_source_are_both_there(lake):
    feed(lake.sink(), HISTORY[:14])
    with table(lake, "shop.orders").update_schema() as change:
        change.add_column("reviewed", BooleanType())
    feed(lake.sink(), HISTORY)
    assert found(lake) == expected(HISTORY)
    names = lake.arrow("shop.orders").schema.names
    assert names[-2:] == ["date", "reviewed"]


# --- other programs


def test_snapshots_before_a_rewriting_are_left_to_the_program_that_rewrote(lake):
    lake.options["keep_snapshots"] = 2
    feed(lake.sink(), pairs(2))
    one = table(lake, "shop.pairs")
    one.overwrite(one.scan().to_arrow())
    before = {snapshot.snapshot_id for snapshot in table(lake, "shop.pairs").snapshots()}
    feed(lake.sink(), pairs(8))
    after = table(lake, "shop.pairs")
    assert before - {one.current_snapshot().snapshot_id} <= {s.snapshot_id for s in after.snapshots()}
    assert rows_of_each(after)[-2:] == [7, 8]


def test_a_table_that_another_program_changes_at_this_moment_gets_the_files_afterwards(lake):
    feed(lake.sink(), pairs(3))
    one = lake.another("shop.pairs")
    file = copied(lake, "shop.pairs", 1)

    def files():
        table(lake, "shop.pairs").append(table(lake, "shop.pairs").scan().to_arrow()[:0])
        return [file]

    with pytest.raises(Retryable, match=r"shop.pairs: another program changed the table at this moment"):
        one.add(WRITER, 100, 0, files)
    assert len(lake.names("shop.pairs")) == 3
    assert one.add(WRITER, 100, 0, lambda: [file]) == lake.version("shop.pairs")
    assert len(lake.names("shop.pairs")) == 4


def test_the_table_of_another_feed_is_left_alone(lake, tmp_path):
    feed(lake.sink(), ONE_PAIR)
    other = IcebergLake(tmp_path / "other", catalog=f"sqlite:///{lake.path}/catalog.db", namespace="other")
    with pytest.raises(SinkError, match=r"is outside of .*/other/: the catalog's table is another"):
        feed(other.sink(feed="second"), ONE_PAIR)
    assert len(lake.list("shop.pairs")) == 1


def test_a_table_of_the_source_can_not_have_the_name_of_one_of_the_feed(lake):
    lake.options["namespace"] = "shop"
    ddl = PAIRS.__class__("shop", "ddl", PAIRS.columns, PAIRS.key)
    with pytest.raises(SinkError, match=r"shop.ddl is a table of the feed's own: give another `namespace`"):
        feed(lake.sink(), [create(1, ddl), LOADED, transaction(2, insert(ddl, 1, "a", 1))])


def test_a_table_in_a_format_that_is_newer_is_left_alone(lake):
    feed(lake.sink(), ONE_PAIR)
    path = Path(urlsplit(table(lake, "shop.pairs").metadata_location).path)
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "format-version": 9}))
    with pytest.raises(SinkError, match=r"shop.pairs: the table's metadata can't be read: .*format-version"):
        feed(lake.sink(), pairs(2))


def test_metadata_that_is_missing_is_named(lake):
    feed(lake.sink(), ONE_PAIR)
    path = Path(urlsplit(table(lake, "shop.pairs").metadata_location).path)
    path.unlink()
    with pytest.raises(SinkError, match=rf"{path.name} is missing: put back a copy of all that was here"):
        feed(lake.sink(), pairs(2))


# --- catalogs and stores that fail


@pytest.mark.parametrize("lands", ["at once", "late"])
def test_a_commit_without_an_answer_is_found_again(lake, monkeypatch, lands):
    feed(lake.sink(), pairs(2))
    one, file = lake.another("shop.pairs"), copied(lake, "shop.pairs", 1)
    real, late = SqlCatalog.commit_table, []

    def unanswered(*commit):
        if lands == "at once":
            real(*commit)
        else:
            late.append(commit)
        raise NoConnection("no answer")

    monkeypatch.setattr(SqlCatalog, "commit_table", unanswered)
    with pytest.raises(Retryable, match=r"shop.pairs: the catalog doesn't answer as it should: no answer"):
        one.add(WRITER, 100, 0, lambda: [file])
    monkeypatch.setattr(SqlCatalog, "commit_table", real)

    def files():
        assert late, "the commit was there"
        real(*late[0])  # it comes after the table was asked for it
        return [file]

    assert one.add(WRITER, 100, 0, files) == lake.version("shop.pairs")
    assert Counter(lake.names("shop.pairs"))[f"shop.pairs/{file.path}"] == 1
    assert len(lake.names("shop.pairs")) == 3


def test_an_earlier_commit_without_an_answer_is_not_taken_for_a_later_one(lake, monkeypatch):
    feed(lake.sink(), pairs(2))
    one, early, late = (
        lake.another("shop.pairs"),
        copied(lake, "shop.pairs", 1),
        copied(lake, "shop.pairs", 2),
    )
    real = SqlCatalog.commit_table

    def unanswered(*commit):
        real(*commit)
        raise NoConnection("no answer")

    monkeypatch.setattr(SqlCatalog, "commit_table", unanswered)
    with pytest.raises(Retryable):
        one.add(WRITER, 100, 0, lambda: [early])
    monkeypatch.setattr(SqlCatalog, "commit_table", real)
    one.add(WRITER, 100, 0, list)

    def files():
        table(lake, "shop.pairs").append(table(lake, "shop.pairs").scan().to_arrow()[:0])
        return [late]

    with pytest.raises(Retryable, match=r"another program changed the table at this moment"):
        one.add(WRITER, 101, 0, files)
    one.add(WRITER, 101, 0, lambda: [late])
    assert {f"shop.pairs/{early.path}", f"shop.pairs/{late.path}"} <= {*lake.names("shop.pairs")}


def test_a_table_that_is_removed_while_its_files_are_written_is_missed(lake):
    feed(lake.sink(), HISTORY)
    file = next(one for one in lake.names("shop.orders") if "paid" in str(pq.read_schema(lake.path / one)))
    with lake.catalog() as catalog:
        catalog.drop_table(("shop", "orders"))
    columns = pq.read_metadata(lake.path / file)
    wide = DataFile(file.removeprefix("shop.orders/"), "1970-01-01", 1, columns)
    with pytest.raises(SinkError, match=r"shop.orders was removed while the feed wrote its files: put it"):
        lake.another("shop.orders").add(WRITER, 100, 0, lambda: [wide])


def test_a_database_that_another_one_locks_is_waited_for(lake):
    feed(lake.sink(), ONE_PAIR)
    lake.options["catalog"] = f"sqlite:///{lake.path}/catalog.db?timeout=0"
    with closing(sqlite3.connect(lake.path / "catalog.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        sink = lake.sink()
        with pytest.raises(Retryable, match="the catalog's database doesn't answer: database is locked"):
            sink.open()
        other.rollback()
    sink.open()
    sink.close()


def test_a_catalog_in_postgresql_that_is_down_is_waited_for(lake, private_postgresql):
    server = private_postgresql.start()
    lake.options["catalog"] = server.url(scheme="postgresql+psycopg")
    sink = lake.sink()
    work = Delivery(sink, sink.open(), "src")
    for item in ONE_PAIR:
        work.accept([item])
        work.run(0)
    work.accept(pairs(2)[3:])
    server.kill()
    for _ in range(2):  # a connection is lost, and none is made
        with pytest.raises(Retryable, match="the catalog's database doesn't answer: ") as raised:
            work.run(0)
        assert PASSWORD not in str(raised.value)
    server.restart()
    work.run(0)
    sink.close()
    assert len(lake.list("shop.pairs")) == 2


def test_a_namespace_is_made_by_several_at_once(lake):
    feed(lake.sink(), ONE_PAIR)
    together = Barrier(4)

    def make(name: str) -> None:
        together.wait()
        create_namespace(catalog, name)

    with lake.catalog() as catalog, ThreadPoolExecutor(4) as threads:
        for number in range(30):
            list(threads.map(make, [f"n{number}"] * 4))
        assert len(catalog.list_namespaces()) == 32


def test_a_catalog_is_made_by_several_at_once(tmp_path):
    together = Barrier(4)

    def make(path: Path) -> None:
        address = iceberg_of(f"iceberg+sql://{path}", IcebergOptions())
        together.wait()
        open_catalog(address.catalog, Directory(path)).close()

    with ThreadPoolExecutor(4) as threads:
        for number in range(10):
            list(threads.map(make, [tmp_path / f"{number}"] * 4))


def test_a_database_that_can_not_be_opened_is_named(lake):
    lake.options["catalog"] = "sqlite:////nowhere/catalog.db"
    with pytest.raises(SinkError, match="the catalog's database can't be used: unable to open database file"):
        feed(lake.sink(), ONE_PAIR)


def test_a_full_disk_stops_the_sink_and_nothing_is_lost(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        lake = IcebergLake(disk / "copy")
        feed(lake.sink(), ONE_PAIR)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        with pytest.raises(SinkError, match=r"No space left on device|database or disk is full"):
            feed(lake.sink(), pairs(5))
        filler.unlink()
        feed(lake.sink(), pairs(5))
        assert len(lake.list("shop.pairs")) == 5


def test_a_bucket_that_denies_access_to_metadata_stops_the_sink(tmp_path):
    os.environ.update(LOGIN)
    with S3Store() as server:
        server.bucket("iceberg")
        lake = IcebergBucket(server, "iceberg/copy", tmp_path, format="parquet")
        feed(lake.sink(), ONE_PAIR)

        def fault(environ, _):
            server.denies = "/shop.pairs/metadata/" in environ["PATH_INFO"]

        server.fault = fault
        with pytest.raises(SinkError, match="access is denied: correct the credentials, or grant the right"):
            feed(lake.sink(), pairs(3))
        server.fault, server.denies = None, False
        feed(lake.sink(), pairs(3))
        assert len(lake.list("shop.pairs")) == 3


def test_the_check_says_whether_the_catalog_answers(lake):
    def said() -> list[str]:
        given = given_sink("copy", lake.url(), lake.options)
        context = SinkContext(name="copy", feed="test", store=MemoryStore())
        return [finding.text for finding in survey_sink(given, context)]

    database = lake.path / "catalog.db"
    assert said()[1:] == [f"the catalog {database} will be made", "has no position yet"]
    assert not lake.path.exists()
    feed(lake.sink(), [create(1, ORDERS), LOADED])
    assert said()[1:] == ["the catalog answers", "has position log:1"]
    database.write_bytes(b"nonsense" * 1000)
    with pytest.raises(SinkError, match="the catalog's database can't be used"):
        said()
