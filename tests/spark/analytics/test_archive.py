from __future__ import annotations

import shutil
from contextlib import suppress
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from tidemill.errors import SinkError
from tidemill.events import (
    AddColumn,
    Batch,
    Checkpoint,
    Column,
    CreateTable,
    Ddl,
    Item,
    RenameTables,
    RowChange,
    Table,
    Transaction,
    TruncateTable,
    compose_ts,
)
from tidemill.sink import Sink, open_sink
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.layout import HIDDEN
from tidemill.sink.files.ledger import Ledger, State
from tidemill.spark.archive import archive
from tidemill.spark.archive.archive import compact_archive
from tidemill.spark.archive.files import commit, files
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import MemoryStore

NOON = 1_700_000_000_000
DAY = 86_400_000

PEOPLE = Table(
    "shop",
    "people",
    (
        Column("id", "bigint", unsigned=True, nullable=False),
        Column("name", "varchar", length=20, nullable=False),
        Column("wealth", "decimal", length=65, scale=2),
        Column("photo", "blob"),
    ),
    key=(0, 1),
)
WIDER = Table("shop", "people", (*PEOPLE.columns, Column("born", "date")), key=(0, 1))
LOOSE = Table("shop", "loose", (Column("n", "int"),))


def archive_sink(directory: Path) -> Sink:
    url = f"parquet://{directory}"
    return open_sink("copy", url, feed="test", store=MemoryStore(), options={"flush_seconds": 0.0})


class World:
    """A source with one keyed table and one without a key, whose changes go to an archive."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.random = Random(7)
        self.table = PEOPLE
        self.people: dict[tuple, tuple] = {}
        self.at = NOON
        self.ts = 0
        self.sink = archive_sink(directory)
        self.sink.open()

    def follow(self, transactions: int) -> None:
        """Archive transactions of some changes each: a day for every ten, files for every five."""
        for number in range(transactions):
            self.at += DAY // 10
            rows = [self.change() for _ in range(4)]
            rows.append(RowChange(0, 0, LOOSE, "insert", None, (number,)))
            self.write([Transaction(compose_ts(self.at), 1, "src", rows, "p")])
            if number % 5 == 4:
                self.sink.flush()
        self.sink.flush()

    def write(self, items: list[Item]) -> None:
        self.ts = items[-1].commit_ts
        self.sink.write(Batch(items, Checkpoint(self.ts, str(self.ts))))

    def change(self) -> RowChange:
        row = self.row()
        have = self.people.get(row[:2])
        if have is None and self.people and self.random.random() < 0.3:  # the row moves to another key
            have = self.people.pop(self.random.choice([*self.people]))
        elif have is not None and self.random.random() < 0.4:
            del self.people[row[:2]]
            return RowChange(0, 0, self.table, "delete", have, None)
        self.people[row[:2]] = row
        return RowChange(0, 0, self.table, "update" if have else "insert", have, row)

    def row(self) -> tuple:
        pick = self.random.choice
        key = pick([0, 7, 2**63, 2**64 - 1]), pick(["a", "A", "a ", "é"])
        row = (*key, pick([None, Decimal("1.50")]), pick([None, b"", b"\0\xff"]))
        return row if self.table is PEOPLE else (*row, pick([None, "0000-00-00"]))

    def add_column(self) -> None:
        self.at += 1
        self.table = WIDER
        self.people = {key: (*row, None) for key, row in self.people.items()}
        action = AddColumn(WIDER.columns[-1])
        ts = compose_ts(self.at)
        self.write([Ddl(ts, 1, "src", "shop", "people", "ALTER …", (action,), "p")])

    def expected(self) -> list[tuple]:
        """As the archive shows them: such long decimals are text."""
        shown = [(*row[:2], row[2] and str(row[2]), *row[3:]) for row in self.people.values()]
        return sorted(shown, key=repr)


def changes(directory: Path, table: str) -> list[dict]:
    paths = sorted(directory.glob(f"table={table}/date=*/*.parquet"), key=lambda path: path.name)
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def rows_of(directory: Path, columns=WIDER.columns) -> list[tuple]:
    """The latest rows that the archive tells of."""
    found: dict[tuple, tuple] = {}
    for change in changes(directory, "shop.people"):
        for image, is_there in (("before", False), ("after", True)):
            row = change[image]
            if row is not None:
                values = tuple(row.get(column.name) for column in columns)
                found[values[:2]] = values
                if not is_there:
                    del found[values[:2]]
    return sorted(found.values(), key=repr)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "archive")
    yield world
    world.sink.close()


def the_report(report: archive.Report, table: str = "shop.people") -> archive.TableReport:
    return next(one for one in report.tables if one.table == table)


def test_folding_leaves_the_latest_row_of_each_key_and_its_place_in_time(spark, world):
    world.follow(30)
    world.add_column()
    world.follow(2)
    latest = {tuple(row["after"].values())[:2]: row for row in changes(world.directory, "shop.people")
              if row["after"]}  # fmt: skip
    before = len(changes(world.directory, "shop.people"))
    report = the_report(compact_archive(spark, world.directory, world.ts))
    found = changes(world.directory, "shop.people")
    assert rows_of(world.directory) == world.expected()
    assert (report.rows_before, report.rows_after) == (before, len(world.people))
    assert len(found) == len(world.people) < before
    for row in found:
        change = latest[tuple(row["after"].values())[:2]]
        assert row == {**change, "op": "insert", "snapshot": True, "before": None}
    paths = list(world.directory.glob("table=shop.people/*/*"))
    assert len(paths) == report.files_after < report.files_before
    assert {len(pq.read_schema(path).field("after").type) for path in paths} == {4, 5}
    assert report.folded_to == world.ts


def test_what_is_newer_stays_and_is_folded_the_next_time(spark, world):
    world.follow(10)
    up_to = world.ts
    world.follow(10)
    newer = [row for row in changes(world.directory, "shop.people") if row["commit_ts"] > up_to]
    inside = next(file for file in files(world.directory, "table=shop.people") if file.first > up_to)
    assert inside.first < inside.last
    report = the_report(compact_archive(spark, world.directory, inside.first))
    assert report.folded_to == up_to
    found = changes(world.directory, "shop.people")
    assert [row for row in found if row["commit_ts"] > up_to] == newer
    assert all(row["snapshot"] for row in found if row["commit_ts"] <= up_to)
    assert rows_of(world.directory, PEOPLE.columns) == world.expected()
    compact_archive(spark, world.directory, world.ts)
    assert len(changes(world.directory, "shop.people")) == len(world.people)
    world.follow(5)
    assert rows_of(world.directory, PEOPLE.columns) == world.expected()


def test_what_is_after_a_file_of_a_commit_that_is_to_appear_is_left(spark, world):
    """A driver that dies while it publishes a batch leaves files that its next start moves."""
    world.follow(15)
    found = files(world.directory, "table=shop.people")
    name = str(found[-2].path.relative_to(world.directory))
    root = f"{HIDDEN}/spark-1"
    staged = world.directory / root / "staged" / "0"
    staged.parent.mkdir(parents=True)
    found[-2].path.rename(staged)
    ledger = Ledger(Directory(world.directory), "query", "spark", root)
    ledger.claim()
    state = {"layout": "tables", "format": "parquet", "commits": 4, "checkpoint": ""}
    ledger.save(State(feed="query", sink="spark", staged={f"{root}/staged/0": name}, **state))
    report = the_report(compact_archive(spark, world.directory, world.ts))
    assert report.folded_to == found[-3].last
    staged.rename(found[-2].path)
    left = files(world.directory, "table=shop.people")
    assert left[-2:] == found[-2:]
    assert set(found[:-2]).isdisjoint(left)
    report = the_report(compact_archive(spark, world.directory, world.ts))
    assert report.folded_to == found[-1].last


def test_what_there_is_nothing_to_do_for_is_left_and_said(spark, world):
    world.follow(5)
    loose = changes(world.directory, "shop.loose")
    report = compact_archive(spark, world.directory, world.ts)
    assert the_report(report, "shop.loose").left == "it has no key"
    assert changes(world.directory, "shop.loose") == loose
    assert the_report(compact_archive(spark, world.directory, world.ts)).left == "it is folded up to that ts"
    assert (
        the_report(compact_archive(spark, world.directory, 5)).left
        == "no file has only changes up to that ts"
    )


@pytest.mark.parametrize(
    "action",
    [
        TruncateTable(),
        RenameTables(((("shop", "old"), ("shop", "people")), (("shop", "people"), ("shop", "older")))),
        CreateTable(PEOPLE, replaces=True),
    ],
    ids=["truncated", "renamed", "replaced"],
)
def test_a_table_whose_rows_left_it_at_once_is_left_from_then_on(spark, world, action):
    world.follow(10)
    world.at += 1
    name = "old" if isinstance(action, RenameTables) else "people"
    world.write([Ddl(compose_ts(world.at), 1, "src", "shop", name, "…", (action,), "p")])
    world.follow(5)
    left = the_report(compact_archive(spark, world.directory, world.ts)).left
    assert left == "it was dropped, emptied, renamed or loaded again"


def test_a_table_whose_keys_are_all_gone_has_no_files(spark, world):
    world.follow(5)
    rows = [RowChange(0, 0, PEOPLE, "delete", row, None) for row in world.people.values()]
    world.write([Transaction(compose_ts(world.at + 1), 1, "src", rows, "p")])
    world.sink.flush()
    compact_archive(spark, world.directory, world.ts)
    assert changes(world.directory, "shop.people") == []


class DeathError(BaseException):
    pass


def dying(step: list[int], real):
    def stepped(*args, **kwargs):
        step[0] -= 1
        if step[0] == 0:
            raise DeathError
        return real(*args, **kwargs)

    return stepped


def die_before_files_count(spark, world, monkeypatch) -> None:
    def dies(_making):
        raise DeathError

    with monkeypatch.context() as patched:
        patched.setattr(archive, "commit", dies)
        with pytest.raises(DeathError):
            compact_archive(spark, world.directory, world.ts)


def test_a_death_at_any_step_loses_and_repeats_nothing(spark, world, monkeypatch, tmp_path):
    world.follow(30)
    die_before_files_count(spark, world, monkeypatch)
    before = rows_of(world.directory, PEOPLE.columns)
    assert before == world.expected()
    hidden = next((world.directory / HIDDEN).glob("fold-*.new"))
    old = {path.name for path in world.directory.glob("table=shop.people/*/*")}
    new = {path.name for path in hidden.glob("*/*/*.parquet")}
    for number in count(1):
        directory = tmp_path / f"copy-{number}"
        shutil.copytree(world.directory, directory)
        step = [number]
        with monkeypatch.context() as patched:
            for name in ("replace", "unlink", "mkdir"):
                patched.setattr(Path, name, dying(step, getattr(Path, name)))
            patched.setattr("os.fsync", dying(step, lambda _: None))
            patched.setattr(shutil, "rmtree", dying(step, shutil.rmtree))
            with suppress(DeathError):
                archive._finish(directory, commit(directory / HIDDEN / hidden.name))
        archive._recover(directory)
        there = {path.name for path in directory.glob("table=shop.people/*/*")}
        assert there in (old, new)
        assert rows_of(directory, PEOPLE.columns) == before
        assert not list((directory / HIDDEN).glob("fold-*/"))
        if step[0] > 0:
            break
    assert number > 15
    assert there == new


def test_a_run_that_died_before_its_files_count_is_done_again(spark, world, monkeypatch):
    world.follow(10)
    die_before_files_count(spark, world, monkeypatch)
    world.follow(5)
    compact_archive(spark, world.directory, world.ts)
    assert len(changes(world.directory, "shop.people")) == len(world.people)
    assert rows_of(world.directory, PEOPLE.columns) == world.expected()


# --- what isn't right


def test_what_is_no_archive_is_said(spark, tmp_path):
    with pytest.raises(SinkError, match="is no archive: it has no _tidemill"):
        compact_archive(spark, tmp_path, 1)


def test_two_at_a_time_exclude_each_other(spark, world):
    with (
        archive._alone(world.directory / HIDDEN),
        pytest.raises(SinkError, match="compacted by another process"),
    ):
        compact_archive(spark, world.directory, 1)


@pytest.mark.parametrize("content", [b"", b"PAR1 half"])
def test_a_file_that_is_not_whole_is_named_and_nothing_is_removed(spark, world, content):
    world.follow(5)
    path = next(world.directory.glob("table=shop.people/*/*"))
    path.write_bytes(content)
    there = sorted(world.directory.glob("table=*/*/*"))
    with pytest.raises(SinkError, match=f"{path.name} can't be read as Parquet"):
        compact_archive(spark, world.directory, world.ts)
    assert sorted(world.directory.glob("table=*/*/*")) == there


def test_a_file_of_somebody_else_is_named(spark, world):
    world.follow(5)
    folder = next(world.directory.glob("table=shop.people/*"))
    (folder / "part-0000.parquet").write_bytes(b"")
    with pytest.raises(SinkError, match=r"part-0000.parquet is none of the archive's files: remove it"):
        compact_archive(spark, world.directory, world.ts)


def test_spark_reads_every_value_of_every_type(spark, tmp_path):
    sink = archive_sink(tmp_path / "archive")
    sink.open()
    rows = [RowChange(0, 0, kinds.KEYED, "insert", None, row) for row in [*kinds.ROWS, kinds.NULLS]]
    sink.write(Batch([Transaction(compose_ts(NOON), 1, "src", rows, "p")], Checkpoint(compose_ts(NOON), "p")))
    sink.flush()
    sink.close()
    folder = "table=shop.everything"
    frame = spark.read.parquet(str(tmp_path / "archive" / folder)).orderBy("sequence")
    assert frame.first().date.isoformat() == "2023-11-14"
    found = [row.after.asDict() for row in frame.collect()]
    [path] = (tmp_path / "archive" / folder).glob("*/*")
    for row, wanted in zip(found, pq.read_table(path, partitioning=None).to_pylist(), strict=True):
        assert {name: bytes(v) if isinstance(v, bytearray) else v for name, v in row.items()} == wanted[
            "after"
        ]
    compact_archive(spark, tmp_path / "archive", compose_ts(NOON))
    assert [row["after"] for row in changes(tmp_path / "archive", "shop.everything")] == found
