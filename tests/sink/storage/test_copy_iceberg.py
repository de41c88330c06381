"""Copies in Iceberg: files of deleted rows, columns by ids, old snapshots, catalogs that don't answer."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from requests import ConnectionError as NoConnection

from tidemill.errors import Retryable, SinkError
from tidemill.events import AddColumn, ChangeColumn, Column, DropColumn
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes.copies.iceberg_log import IcebergSnapshot
from tidemill.sink.files.lakes.copies.iceberg_manifests import FileChanges, SnapshotWriter
from tidemill.sink.files.lakes.iceberg_transaction import IcebergTransaction
from tidemill.testing.changes import PAIRS, alter, create, delete, insert, transaction, update
from tidemill.testing.sink_conformance import HISTORY, ORDERS_3, expected, feed, found, keyed

from .copies import IcebergCopies
from .test_copy import BEGUN

KEYED = [keyed(item) for item in HISTORY]
MORE = [transaction(3, *[insert(PAIRS, n, "x", n) for n in range(10, 20)])]


@pytest.fixture
def place(tmp_path):
    return IcebergCopies(tmp_path / "copy")


def deletes(n: int) -> list:
    return [transaction(4 + k, delete(PAIRS, 10 + k, "x", 10 + k)) for k in range(n)]


def entries(table: Table, content: ManifestContent, snapshot=None) -> list[DataFile]:
    """Return the files of a snapshot, or of the present one."""
    manifests = (snapshot or table.current_snapshot()).manifests(table.io)
    return [
        entry.data_file
        for manifest in manifests
        if manifest.content == content
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


def numbers(place: IcebergCopies) -> list[int]:
    return sorted(row["a"] for row in place.list("shop.pairs"))


# --- deleted rows


def test_a_data_file_has_at_most_one_file_of_deleted_rows(place):
    feed(place.sink(), [*BEGUN, *MORE, *deletes(5)])
    table = place.table("shop.pairs")
    (one,) = entries(table, ManifestContent.DELETES)
    assert (one.content, one.record_count) == (DataFileContent.POSITION_DELETES, 5)
    assert numbers(place) == [1, 2, 15, 16, 17, 18, 19]
    totals = table.current_snapshot().summary
    assert [totals[f"total-{what}"] for what in ("data-files", "delete-files", "position-deletes")] == [
        "2", "1", "5",
    ]  # fmt: skip


def test_a_data_file_goes_with_its_last_row(place):
    feed(place.sink(), [*BEGUN, *MORE, *deletes(10)])
    table = place.table("shop.pairs")
    assert len(entries(table, ManifestContent.DATA)) == 1
    assert entries(table, ManifestContent.DELETES) == []
    assert numbers(place) == [1, 2]


def test_manifests_are_joined(place):
    feed(place.sink(), BEGUN)
    place.table("shop.pairs").transaction().set_properties(
        {"commit.manifest.min-count-to-merge": "3"}
    ).commit_transaction()
    feed(place.sink(), [*BEGUN, *[transaction(3 + n, insert(PAIRS, 10 + n, "x", n)) for n in range(20)]])
    table = place.table("shop.pairs")
    assert len(table.current_snapshot().manifests(table.io)) <= 3
    assert numbers(place) == [1, 2, *range(10, 30)]


def opened(place: IcebergCopies) -> IcebergSnapshot:
    """Return the table as a copy of the feed sees it."""
    return place.target(Directory(place.path), mode="copy").layout._lake.log("shop.pairs").latest()


def write_deletes(place: IcebergCopies, rows: pa.Table, content: DataFileContent) -> None:
    """Replace all files of deleted rows by one, as another program does."""
    base = opened(place)
    path = place.path / "shop.pairs/joined-deletes.parquet"
    pq.write_table(rows, path)
    paths = rows["file_path"].to_pylist()
    joined = DataFile.from_args(
        content=content,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        lower_bounds={2147483546: paths[0].encode()},
        upper_bounds={2147483546: paths[-1].encode()},
    )
    changes = [
        FileChanges(ManifestContent.DATA, [], []),
        FileChanges(ManifestContent.DELETES, [joined], base.deletes),
    ]
    commit = IcebergTransaction(base.table)
    commit.add_snapshot(SnapshotWriter(base.table, commit.table_metadata).write(base.manifests, changes, {}))
    commit.commit_transaction()


def deleted_rows(place: IcebergCopies) -> pa.Table:
    files = [pq.read_table(urlsplit(file.file_path).path) for file in opened(place).deletes]
    return pa.concat_tables(files).sort_by([("file_path", "ascending"), ("pos", "ascending")])


def test_a_file_of_another_program_with_deleted_rows_of_several_files_is_replaced(place):
    begun = [
        *BEGUN,
        *MORE,
        *deletes(3),
        transaction(10, insert(PAIRS, 30, "y", 1), insert(PAIRS, 31, "y", 1)),
    ]
    begun += [transaction(11, delete(PAIRS, 30, "y", 1), delete(PAIRS, 1, "a", 1))]
    feed(place.sink(), begun)
    write_deletes(place, deleted_rows(place), DataFileContent.POSITION_DELETES)
    before = numbers(place)
    assert before == [2, *range(13, 20), 31]
    assert len(entries(place.table("shop.pairs"), ManifestContent.DELETES)) == 1
    begun += [transaction(12, delete(PAIRS, 13, "x", 13))]
    feed(place.sink(), begun)
    assert numbers(place) == [2, *range(14, 20), 31]
    files = entries(place.table("shop.pairs"), ManifestContent.DELETES)
    assert sorted(file.record_count for file in files) == [1, 1, 4]


def test_deleted_rows_of_files_that_another_program_removed_go(place):
    begun = [*BEGUN, *MORE, *deletes(3)]
    feed(place.sink(), begun)
    place.compact("shop.pairs")
    assert len(entries(place.table("shop.pairs"), ManifestContent.DELETES)) == 1
    feed(place.sink(), [*begun, transaction(20, insert(PAIRS, 40, "z", 1))])
    assert entries(place.table("shop.pairs"), ManifestContent.DELETES) == []
    assert numbers(place) == [1, 2, *range(13, 20), 40]


# --- columns


A, B, N = PAIRS.columns


def test_names_and_types_that_change_leave_the_files(place):
    feed(place.sink(), [*BEGUN, *MORE, *deletes(2)])
    files = place.files("shop.pairs")
    word, wide = replace(B, name="word", length=90), replace(A, kind="bigint")
    table = replace(PAIRS, columns=(wide, word))
    begun = [
        *BEGUN,
        *MORE,
        *deletes(2),
        alter(10, PAIRS, "X", ChangeColumn("a", wide, A), ChangeColumn("b", word, B), DropColumn("n")),
    ]
    feed(place.sink(), begun)
    assert place.files("shop.pairs") == files
    assert place.columns("shop.pairs") == [("a", "long", False), ("word", "string", False)]
    again = replace(table, columns=(*table.columns, N))
    begun += [
        alter(11, table, "X", AddColumn(N)),
        transaction(12, insert(again, 2**40, "z", 3), update(again, (12, "x", None), (12, "y", None))),
    ]
    feed(place.sink(), begun)
    assert set(files) < set(place.files("shop.pairs"))
    assert {row["n"] for row in place.list("shop.pairs")} == {None, 3}  # not the values of the dropped one
    schema = place.table("shop.pairs").schema()
    assert schema.identifier_field_names() == {"a", "word"}
    assert [field.field_id for field in schema.fields] == [1, 2, 4]


SMALL = Column("v", "decimal", length=5, scale=2)
HUGE = Column("v", "bigint", unsigned=True)


@pytest.mark.parametrize(
    ("old", "new", "kind", "stays"),
    [
        (SMALL, replace(SMALL, length=9), "decimal(9, 2)", True),
        (SMALL, replace(SMALL, length=9, scale=4), "decimal(9, 4)", False),
        (Column("v", "tinyint"), Column("v", "int"), "int", True),
        (Column("v", "int", unsigned=True), HUGE, "decimal(20, 0)", False),
        (HUGE, replace(HUGE, nullable=False), "decimal(20, 0)", True),
    ],
)
def test_a_wider_type_is_read_from_the_files_if_readers_can(place, old, new, kind, stays):
    one = Decimal("1.25") if old.kind == "decimal" else 1
    before = replace(PAIRS, columns=(A, B, old))
    begun = [*BEGUN[:2], transaction(2, insert(before, 1, "a", one))]
    begun[0] = create(1, before)
    feed(place.sink(), begun)
    files = place.files("shop.pairs")
    feed(place.sink(), [*begun, alter(3, before, "X", ChangeColumn("v", new, old))])
    assert (place.files("shop.pairs") == files) == stays
    assert place.columns("shop.pairs")[2][:2] == ("v", kind)
    assert [row["v"] for row in place.list("shop.pairs")] == [one]


# --- old snapshots


def on_disk(place: IcebergCopies, name: str) -> set[str]:
    return {str(path) for path in (place.path / name).rglob("*") if path.suffix in (".avro", ".parquet")}


def reachable(table: Table) -> set[str]:
    locations = set()
    for snapshot in table.snapshots():
        locations.add(snapshot.manifest_list)
        locations |= {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            locations |= {file.file_path for file in entries(table, content, snapshot)}
    return {urlsplit(location).path for location in locations}


@pytest.mark.parametrize("keep", [1, 3])
def test_no_file_is_left_of_snapshots_that_are_removed(place, keep):
    place.options["keep_snapshots"] = keep
    feed(place.sink(), KEYED)
    assert found(place, [ORDERS_3, PAIRS]) == expected(KEYED)
    for name in ("shop.orders", "shop.pairs"):
        table = place.table(name)
        assert len(table.snapshots()) == keep
        assert on_disk(place, name) == reachable(table)


def test_each_snapshot_has_the_rows_and_columns_of_its_time(place):
    table = replace(PAIRS, columns=(A, replace(B, name="word")))
    changed = alter(4, PAIRS, "X", DropColumn("n"), ChangeColumn("b", table.columns[1], B))
    feed(
        place.sink(),
        [*BEGUN, transaction(3, delete(PAIRS, 1, "a", 1)), changed, transaction(5, insert(table, 5, "e"))],
    )
    one = place.table("shop.pairs")
    ordered = sorted(one.snapshots(), key=lambda snapshot: snapshot.sequence_number)
    then = [one.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist() for snapshot in ordered]
    assert then[-4:] == [
        [{"a": 1, "b": "a", "n": 1}, {"a": 2, "b": "b", "n": None}],
        [{"a": 2, "b": "b", "n": None}],
        [{"a": 2, "word": "b"}],
        [{"a": 5, "word": "e"}, {"a": 2, "word": "b"}],
    ]


def test_a_snapshot_with_a_tag_keeps_its_files(place):
    place.options["keep_snapshots"] = 2
    feed(place.sink(), [*BEGUN, *MORE])
    table = place.table("shop.pairs")
    table.manage_snapshots().create_tag(place.version("shop.pairs"), "monday").commit()
    feed(place.sink(), [*BEGUN, *MORE, *deletes(10)])
    table = place.table("shop.pairs")
    assert len(table.snapshots()) == 3
    assert table.scan(snapshot_id=table.snapshot_by_name("monday").snapshot_id).to_arrow().num_rows == 12
    assert numbers(place) == [1, 2]


def test_files_of_snapshots_before_a_rewriting_are_left_to_the_program_that_rewrote(place):
    place.options["keep_snapshots"] = 2
    feed(place.sink(), [*BEGUN, *MORE])
    feed(place.sink(), [*BEGUN, *MORE, *deletes(1)])
    place.compact("shop.pairs")
    before = {snapshot.snapshot_id for snapshot in place.table("shop.pairs").snapshots()}
    feed(place.sink(), [*BEGUN, *MORE, *deletes(6)])
    table = place.table("shop.pairs")
    after = {snapshot.snapshot_id for snapshot in table.snapshots()}
    assert len(before & after) == len(before) - 1  # without the one that added the rows again
    assert len(after - before) == 2
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    assert on_disk(place, "shop.pairs") >= reachable(table)
    assert numbers(place) == [1, 2, *range(16, 20)]


# --- catalogs and other programs


def begun_with(place: IcebergCopies, *items):
    sink = place.sink()
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
    work.accept([*BEGUN, *MORE])
    work.run(0)
    work.accept(list(items))
    return sink, work


@pytest.mark.parametrize("lands", ["at once", "late", "denied"])
def test_a_commit_without_an_answer_is_found_again(place, monkeypatch, lands):
    sink, work = begun_with(place, transaction(4, update(PAIRS, (10, "x", 10), (10, "x", 0))))
    real, late = SqlCatalog.commit_table, []

    def unanswered(catalog, table, *commit):
        if late or "pairs" not in table.name():
            return real(catalog, table, *commit)
        late.append((catalog, table, *commit))
        if lands != "late":
            real(*late[0])
        if lands == "denied":
            raise CommitFailedException("a proxy sent it twice")
        raise NoConnection("no answer")

    monkeypatch.setattr(SqlCatalog, "commit_table", unanswered)
    if lands == "denied":
        work.run(0)
    else:
        with pytest.raises(
            Retryable, match=r"shop.pairs: the catalog doesn't answer as it should: no answer"
        ):
            work.run(0)
    if lands == "late":

        def second(*commit):
            monkeypatch.setattr(SqlCatalog, "commit_table", real)
            real(*late[0])
            return real(*commit)

        monkeypatch.setattr(SqlCatalog, "commit_table", second)
    work.run(0)
    for n in range(3):
        work.accept([transaction(5 + n, update(PAIRS, (10, "x", n), (10, "x", n + 1)))])
        work.run(0)
    sink.close()
    assert [row["n"] for row in place.list("shop.pairs") if row["a"] == 10] == [3]
    assert len(place.list("shop.pairs")) == 12


def test_a_catalog_that_has_another_programs_commit_gets_the_feeds_after_it(place, monkeypatch):
    sink, work = begun_with(place, *deletes(1))
    real, left = SqlCatalog.commit_table, [1]

    def raced(catalog, table, *commit):
        if left and "pairs" in table.name():
            left.pop()
            place.compact("shop.pairs")
        return real(catalog, table, *commit)

    before = on_disk(place, "shop.pairs")
    monkeypatch.setattr(SqlCatalog, "commit_table", raced)
    work.run(0)
    sink.close()
    assert not left
    assert numbers(place) == [1, 2, *range(11, 20)]
    assert on_disk(place, "shop.pairs") - before <= reachable(place.table("shop.pairs"))


def test_what_is_not_known_here_stops_the_feed(place):
    feed(place.sink(), BEGUN)
    with place.table("shop.pairs").update_spec() as spec:
        spec.add_identity("a")
    with pytest.raises(
        SinkError, match=r"shop.pairs: another program gave the table a partition, which copies can't have"
    ):
        feed(place.sink(), [*BEGUN, *MORE])


def test_equality_deletes_stop_the_feed(place):
    feed(place.sink(), [*BEGUN, *MORE, *deletes(1)])
    write_deletes(place, deleted_rows(place), DataFileContent.EQUALITY_DELETES)
    with pytest.raises(
        SinkError, match=r"another program gave the table equality deletes, which copies can't have"
    ):
        feed(place.sink(), [*BEGUN, *MORE, *deletes(2)])


def test_another_format_version_stops_the_feed(place):
    feed(place.sink(), BEGUN)
    path = Path(urlsplit(place.table("shop.pairs").metadata_location).path)
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 0}))
    with pytest.raises(
        SinkError, match=r"another program gave the table format version 3, which copies can't have"
    ):
        feed(place.sink(), [*BEGUN, *MORE])


def test_a_column_that_another_program_renamed_stops_the_feed(place):
    feed(place.sink(), BEGUN)
    with place.table("shop.pairs").update_schema() as change:
        change.rename_column("n", "number")
    with pytest.raises(SinkError, match=r"another program removed or renamed the column n: load the table"):
        feed(place.sink(), [*BEGUN, *MORE])
