"""The task of a writer, without Spark: repeated, beside another attempt, and with invalid rows."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import AddColumn, Chunk, Column, CreateTable, Ddl, Item, RowChange, Table, Transaction
from tidemill.spark.envelope import Encoder
from tidemill.spark.read.schema import envelope_type, table_type
from tidemill.spark.write.files import Files
from tidemill.spark.write.options import WriteOptions, write_options
from tidemill.spark.write.place import Place
from tidemill.spark.write.task import write_partition
from tidemill.spark.write.writer import batch_writer
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.progress import happened, joined

QUERY = str(uuid4())
LOG = Table("shop", "log", (Column("id", "int"), Column("note", "varchar", length=20)))
"""Without a key: what is written twice is there twice."""
WIDE = Table("shop", "log", (*LOG.columns, Column("size", "int")))
COUNT = "SELECT id, COUNT(*) FROM {} GROUP BY id ORDER BY id"


def insert(ts: int, *ids: int, table: Table = LOG) -> Transaction:
    more = (None,) * (len(table.columns) - 1)
    rows = [RowChange(ts, ts, table, "insert", None, (number, *more)) for number in ids]
    return Transaction(ts, ts, "somewhere", rows, f"at {ts}")


def create(ts: int, table: Table = LOG) -> Ddl:
    return Ddl(ts, ts, "somewhere", table.schema, table.name, "", (CreateTable(table),), f"at {ts}")


def widen(ts: int) -> Ddl:
    actions = (AddColumn(WIDE.columns[-1]),)
    return Ddl(ts, ts, "somewhere", "shop", "log", "ALTER TABLE log ADD size INT", actions, f"at {ts}")


def batches(*groups: Iterable[Item]) -> list[pa.RecordBatch]:
    encoder = Encoder()
    return [batch for group in groups if (batch := encoder.encode(group)).num_rows]


def place(epoch: int = 0, query: str = QUERY) -> Place:
    return Place(f"{query}/0", query, epoch, 0)


class Target:
    """One to write to, and what is in its table."""

    def __init__(self, url: str, look: Callable[[], list[tuple[Any, ...]]], **sink: str) -> None:
        self.options = WriteOptions(url=url, sink=sink)
        self.counts = look
        self.query = str(uuid4())
        self.write(-1, [create(1)], query="snapshot")

    def write(self, epoch: int, *groups: Iterable[Item], query: str = "") -> None:
        its = query or self.query
        write_partition(self.options, Place(f"{its}/0", its, epoch, 0), batches(*groups))

    def attempt(self, epoch: int, found: Iterable[pa.RecordBatch]) -> None:
        write_partition(self.options, Place(f"{self.query}/0", self.query, epoch, 0), found)


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "sqlite":

        def look() -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
                return list(connection.execute(COUNT.format('"shop.log"')))

        return Target(f"sqlite:///{tmp_path}/a.db", look)
    if request.param == "postgres":
        postgres: PostgreSql = request.getfixturevalue("postgresql")
        database: str = request.getfixturevalue("postgres_database")

        def look_there() -> list[tuple[Any, ...]]:
            with postgres.connect(dbname=database) as connection:
                return connection.execute(COUNT.format("shop.log")).fetchall()

        return Target(postgres.url(database), look_there)
    server: MariaDb = request.getfixturevalue("mariadb")
    sql: Client = request.getfixturevalue("sql")
    return Target(server.url(), lambda: sql(COUNT.format("log")), schema=sql.database)


def once(*ids: int) -> list[tuple[int, int]]:
    return [(number, 1) for number in ids]


def test_a_batch_that_comes_again_changes_nothing(target: Target) -> None:
    first = [insert(10, 1), insert(20, 2)], [insert(30, 3, 4)]
    target.write(0, *first)
    target.write(0, *first)
    target.write(1, [insert(40, 5)])
    target.write(0, *first)
    assert target.counts() == once(1, 2, 3, 4, 5)


def test_a_column_whose_values_only_the_source_knows_stops_the_task(tmp_path: Path) -> None:
    target = Target(f"sqlite:///{tmp_path}/a.db", list)
    target.write(0, [insert(10, 1)])
    column = AddColumn(Column("token", "varchar", length=36, default="uuid()"))
    ddl = Ddl(20, 20, "somewhere", "shop", "log", "ALTER TABLE log ADD token …", (column,), "at 20")
    with pytest.raises(SinkError, match=r"DEFAULT uuid\(\) .* give the query an empty target and load"):
        target.write(1, [ddl])


def test_a_batch_that_was_half_applied_goes_on_behind_it(target: Target) -> None:
    def dies() -> Iterator[pa.RecordBatch]:
        yield from batches([insert(10, 1), insert(20, 2)], [insert(30, 3)])
        raise OSError("the worker is gone")

    with pytest.raises(OSError, match="gone"):
        target.attempt(0, dies())
    assert target.counts() == once(1, 2)
    target.write(0, [insert(10, 1), insert(20, 2), insert(30, 3), insert(40, 4)])
    assert target.counts() == once(1, 2, 3, 4)


def test_transactions_of_one_commit_ts_are_never_parted(target: Target) -> None:
    """They come in two batches, and the task dies between them."""
    both = [insert(10, 1), Transaction(10, 11, "somewhere", insert(10, 2).rows, "")]

    def dies() -> Iterator[pa.RecordBatch]:
        yield from batches([both[0]], [both[1]])[:1]
        raise OSError("the worker is gone")

    with pytest.raises(OSError, match="gone"):
        target.attempt(0, dies())
    assert target.counts() == []
    target.write(0, [both[0]], [both[1]])
    assert target.counts() == once(1, 2)


def stream(epoch: int, partition: int = 0) -> Place:
    return Place(f"{QUERY}/{partition}", QUERY, epoch, partition, True)


@pytest.mark.parametrize("first", [[], [insert(10, 1)]], ids=["empty", "rows"])
def test_a_stream_keeps_the_target_that_it_began_with(target: Target, first: list[Item]) -> None:
    write_partition(target.options, stream(0), batches(first))
    write_partition(target.options, stream(1), [])
    write_partition(target.options, stream(1, 1), batches([insert(20, 2)]))
    write_partition(target.options, stream(2), batches([insert(30, 3)]))
    assert target.counts() == once(*[1][: len(first)], 2, 3)


def test_a_stream_whose_target_is_another_is_refused_as_often_as_it_comes(target: Target) -> None:
    for _ in range(2):
        with pytest.raises(SinkError, match=rf"has nothing of the batches before batch 4 of {QUERY}, so"):
            write_partition(target.options, stream(4), batches([insert(10, 1)]))
    assert target.counts() == []


@pytest.mark.parametrize("applied", [0, 1, 3, 4])
def test_two_attempts_at_the_same_rows_take_turns(target: Target, applied: int) -> None:
    """The slow attempt is overtaken, before rows or a schema change, and continues after the other one."""
    narrow = [[insert(ts * 10, ts)] for ts in (1, 2, 3)]
    groups = [*narrow, [widen(40)], [insert(50, 4, table=WIDE)], [insert(60, 5, table=WIDE)]]
    overtaken = threading.Event()
    begun = threading.Event()
    failed: list[BaseException] = []

    def slow() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(*groups)):
            if number == applied + 1:  # the next is at hand
                begun.set()
                happened(overtaken)
            yield batch

    def attempt() -> None:
        try:
            target.attempt(0, slow())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    happened(begun)
    assert target.counts() == once(1, 2, 3)[:applied]
    target.write(0, *groups)
    overtaken.set()
    joined(thread)
    assert failed == []
    assert target.counts() == once(1, 2, 3, 4, 5)


def test_many_attempts_at_once_apply_every_row_once(target: Target) -> None:
    groups = [[insert(ts * 10, ts)] for ts in range(1, 30)]
    groups += [[widen(300)], *([insert(ts * 10, ts, table=WIDE)] for ts in range(31, 60))]
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            target.write(0, *groups)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        joined(thread)
    assert failed == []
    assert target.counts() == once(*range(1, 30), *range(31, 60))


def test_a_job_of_the_same_name_goes_on_where_the_last_one_ended(target: Target) -> None:
    def job(*groups: list[Item]) -> None:
        query = str(uuid4())
        write_partition(target.options, Place("nightly/0", query, 0, 0), batches(*groups))

    job([insert(10, 1), insert(20, 2)])
    job([insert(10, 1), insert(20, 2)], [insert(30, 3)])
    job([insert(40, 4)])
    assert target.counts() == once(1, 2, 3, 4)
    with pytest.raises(SinkError, match="has other rows than when it was written first"):
        job([insert(10, 1)], [insert(50, 5), insert(60, 6)])


@pytest.mark.parametrize(
    ("epoch", "items", "sentence"),
    [
        (1, [insert(15, 9)], "begins with commit_ts 15, and batches before it went up to 20"),
        (0, [insert(10, 1), insert(30, 3)], "has other rows than when it was written first"),
        (0, [insert(30, 3)], "has other rows than when it was written first"),
        (1, [insert(40, 4), insert(30, 3)], "don't come in order"),
        (1, [create(40), insert(50, 5)], "a snapshot and changes are mixed"),
    ],
)
def test_rows_that_cannot_be_right_are_refused_with_a_sentence(
    tmp_path: Path, epoch: int, items: list[Item], sentence: str
) -> None:
    target = Target(f"sqlite:///{tmp_path}/a.db", list)
    target.write(0, [insert(10, 1), insert(20, 2)])
    with pytest.raises(SinkError, match=sentence):
        target.write(epoch, items)


def test_rows_that_come_twice_are_refused(tmp_path: Path) -> None:
    target = Target(f"sqlite:///{tmp_path}/a.db", list)
    with pytest.raises(SinkError, match="each of them once"):
        target.attempt(0, batches([insert(10, 1), insert(20, 2)]) * 2)


@pytest.mark.parametrize("name", ["commit_ts", "start_ts", "sequence"])
def test_rows_without_their_order_are_refused(tmp_path: Path, name: str) -> None:
    target = Target(f"sqlite:///{tmp_path}/a.db", list)
    (batch,) = batches([insert(10, 1)])
    number = batch.schema.get_field_index(name)
    columns = batch.columns
    columns[number] = pa.nulls(1, columns[number].type)
    schema = batch.schema.set(number, batch.schema.field(number).with_nullable(True))
    with pytest.raises(SinkError, match=f"the column {name} has nulls"):
        target.attempt(0, [pa.RecordBatch.from_arrays(columns, schema=schema)])


def test_a_large_transaction_between_others_of_its_commit_ts_is_whole(target: Target) -> None:
    pieces = [
        Transaction(10, 11, "somewhere", insert(10, *range(first, first + 5)).rows, "", last=first == 95)
        for first in range(0, 100, 5)
    ]
    after = Transaction(10, 12, "somewhere", insert(10, 101).rows, "")
    target.write(0, [insert(10, 100)], *([piece] for piece in pieces), [after])
    assert target.counts() == once(*range(102))


def test_a_snapshot_that_is_read_anew_is_refused(tmp_path: Path) -> None:
    """As MariaDB's is when a task is repeated: it is of another moment."""

    def load(ts: int, *numbers: int) -> list[list[Item]]:
        rows = [insert(ts + number, number) for number in numbers]
        chunk = Chunk("shop.other")
        other = Table("shop", "other", LOG.columns)
        return [[create(ts, other)], *([_loading(row, other, chunk)] for row in rows)]

    target = Target(f"sqlite:///{tmp_path}/a.db", list)
    target.write(0, *load(10, 1, 2))
    with pytest.raises(SinkError, match="a snapshot of MariaDB is another one each time"):
        target.write(0, *load(100, 1, 2, 3))


def _loading(item: Transaction, table: Table, chunk: Chunk) -> Transaction:
    rows = [RowChange(row.commit_ts, row.start_ts, table, "insert", None, row.after) for row in item.rows]
    return Transaction(item.commit_ts, item.start_ts, item.source, rows, "", chunk=chunk)


# --- files


def published(files: Files, options: WriteOptions, at: Place, *groups: list[Item]) -> None:
    files.publish([write_partition(options, at, batches(*groups))])


def test_a_batch_that_comes_again_replaces_its_file(tmp_path: Path) -> None:
    options = WriteOptions(url=f"file://{tmp_path}/rows")
    files = Files(options)
    files.prepare()
    for _ in range(2):
        published(files, options, place(0), [insert(10, 1)])
        published(files, options, place(1), [insert(20, 2)], [insert(30, 3)])
    write_partition(options, place(1), batches([insert(20, 2)]))  # an attempt that doesn't count
    seen = sorted((tmp_path / "rows").glob("*.*"))
    assert [len(path.read_text().splitlines()) for path in seen] == [1, 2]


def test_a_stream_keeps_its_directory(tmp_path: Path) -> None:
    options = WriteOptions(url=f"file://{tmp_path}/rows")
    files = Files(options)
    files.prepare()
    published(files, options, stream(0))
    published(files, options, stream(1), [insert(10, 1)])
    other = WriteOptions(url=f"file://{tmp_path}/others")
    Files(other).prepare()
    with pytest.raises(SinkError, match=f"{tmp_path}/others has nothing of the batches before batch 2 of"):
        published(Files(other), other, stream(2), [insert(20, 2)])
    assert not list((tmp_path / "others").glob("*.ndjson"))


def test_parquet_files_are_seen_once_their_batch_is_complete(tmp_path: Path) -> None:
    options = WriteOptions(url=f"parquet://{tmp_path}/rows")
    files = Files(options)
    files.prepare()
    found = lambda: sorted((tmp_path / "rows").glob("table=*/date=*/*.parquet"))  # noqa: E731
    made = write_partition(options, place(0), batches([insert(10, 1)], [insert(20, 2)], [widen(30)]))
    assert found() == []
    for _ in range(2):
        files.publish([made])
        assert [path.parts[-3] for path in found()] == ["table=ddl", "table=shop.log"]
        made = write_partition(options, place(0), batches([insert(10, 1)], [insert(20, 2)], [widen(30)]))
    assert pq.read_table(found()[1]).num_rows == 2
    again = [Place(f"{QUERY}/{number}", QUERY, 0, number) for number in (1, 2)]
    parts = ([insert(10, 1)], [insert(20, 2)])
    files.publish(
        [write_partition(options, at, batches(part)) for at, part in zip(again, parts, strict=True)]
    )
    assert [path.stem[-5:] for path in found()] == ["00001", "00002"], "those of one partition are gone"


def test_a_batch_that_failed_leaves_nothing(tmp_path: Path) -> None:
    options = WriteOptions(url=f"file://{tmp_path}/rows")
    files = Files(options)
    files.prepare()
    files.discard([write_partition(options, place(0), batches([insert(10, 1)]))])
    assert [path for path in (tmp_path / "rows").rglob("*") if path.is_file()] == []


def test_a_directory_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine.txt").write_text("")
    with pytest.raises(SinkError, match=r"holds mine\.txt already"):
        Files(WriteOptions(url=f"file://{tmp_path}/rows")).prepare()
    with pytest.raises(SinkError, match="Spark writes a directory"):
        Files(WriteOptions(url=f"file://{tmp_path}/rows/mine.txt")).prepare()


def test_a_directory_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    options = WriteOptions(url=f"file://{tmp_path}/rows", host="driver")
    with pytest.raises(SinkError, match="of the driver's host driver isn't there"):
        write_partition(options, place(0), batches([insert(10, 1)]))


def test_sqlite_on_another_host_is_refused(tmp_path: Path) -> None:
    options = WriteOptions(url=f"sqlite:///{tmp_path}/a.db", host="driver")
    with pytest.raises(SinkError, match="is a file of the driver's host driver"):
        write_partition(options, place(0), batches([insert(10, 1)]))


# --- options


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "option sink: missing"),
        ({"sink": "pulsar://x"}, "no sink writes to 'pulsar'"),
        ({"sink": "sqlite:///a.db", "sinks": "x"}, "option sinks: there is none of this name"),
        ({"sink": "sqlite:///a.db", "sink.schema": "x"}, "unknown option 'schema'; accepted: verify"),
        (
            {"sink": "parquet:///a", "sink.file_bytes": "x"},
            r"option sink\.file_bytes = 'x': 'x' is not a size",
        ),
        ({"sink": "sqlite:///a.db", "id": "a b"}, "option id = 'a b'"),
        ({"sink": "sqlite:///a.db", "sinkTimeout": "x"}, "option sinkTimeout = 'x'"),
    ],
)
def test_bad_options_are_named(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        write_options(given)


def test_rows_that_are_not_of_the_envelope_are_refused(tmp_path: Path) -> None:
    given = {"sink": f"sqlite:///{tmp_path}/a.db"}
    with pytest.raises(ConfigError, match="column position is missing: a sink is given rows of the raw"):
        batch_writer(given, table_type(LOG), False)
    with pytest.raises(ConfigError, match='mode "overwrite"'):
        batch_writer(given, envelope_type(), True)


def test_a_batch_into_files_has_no_id(tmp_path: Path) -> None:
    given = {"sink": f"parquet://{tmp_path}/rows", "id": "job"}
    with pytest.raises(ConfigError, match="option id: a directory of files doesn't know what it has"):
        batch_writer(given, envelope_type(), False)


@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_a_lock_of_somebody_else_is_reported_and_ends_the_task_at_its_timeout(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    with ExitStack() as stack:
        if kind == "postgres":
            server: PostgreSql = request.getfixturevalue("postgresql")
            database: str = request.getfixturevalue("postgres_database")
            other = stack.enter_context(server.connect(dbname=database))
            target = Target(server.url(database), list)
            begin, end, table = other.execute, other.rollback, "shop.log"
        else:
            maria: MariaDb = request.getfixturevalue("mariadb")
            sql: Client = request.getfixturevalue("sql")
            target = Target(maria.url(), list, schema=sql.database)
            begin, end, table = sql, lambda: sql("ROLLBACK"), "log"
        target.options = replace(target.options, timeout=2.0)
        target.write(0, [insert(10, 1)])
        begin("BEGIN")
        begin(f"SELECT * FROM {table}")
        waits = f"batch 1 of {target.query}, partition 0, waited"
        with pytest.raises(
            Retryable, match=rf"{waits} \d+ s \(option sinkTimeout\): .*(lock timeout|Lock wait timeout)"
        ):
            target.write(1, [widen(20)], [insert(30, 2, table=WIDE)])
        assert any(waits in one and "s of 2 s: " in one for one in caplog.messages)
        end()
        target.write(1, [widen(20)], [insert(30, 2, table=WIDE)])
