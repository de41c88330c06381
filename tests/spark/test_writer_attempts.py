"""The task of a writer, without Spark: repeated, beside another attempt, and with invalid rows."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemill.dialects.options import SqliteOptions
from tidemill.dialects.registry import DIALECTS
from tidemill.dialects.sqlite.entry import SQLITE
from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import (
    AddColumn,
    Batch,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    Item,
    RowChange,
    Table,
    Transaction,
)
from tidemill.sink import open_sink
from tidemill.sink.files.directory import Directory
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.read.schema import envelope_type, table_type
from tidemill.spark.write.files import FilesOfQueries
from tidemill.spark.write.options import WriteOptions, write_options
from tidemill.spark.write.place import BatchPartition
from tidemill.spark.write.sql import open_shared
from tidemill.spark.write.task import write_partition
from tidemill.spark.write.writer import batch_writer, stream_writer
from tidemill.testing.changes import MemoryStore
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.progress import happened, joined
from tidemill.testing.s3 import S3Store

from ..dialects.places import SHARED, MariaDbPlace, PostgresPlace, SqlitePlace

QUERY = str(uuid4())
LOG = Table("shop", "log", (Column("id", "int"), Column("note", "varchar", length=20)))
"""Without a key: what is written twice is there twice."""
OTHER = Table("shop", "other", LOG.columns)
WIDE = Table("shop", "log", (*LOG.columns, Column("size", "int")))


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
    encoder = EnvelopeEncoder()
    return [batch for group in groups if (batch := encoder.encode(group)).num_rows]


def place(epoch: int = 0, query: str = QUERY) -> BatchPartition:
    return BatchPartition(f"{query}/0", query, epoch, 0)


class Target:
    """A database to write to, and the content of its table."""

    def __init__(self, place: Any) -> None:
        self._place = place
        self.options = WriteOptions(url=place.url, sink=place.options)
        self.query = str(uuid4())
        self.write(-1, [create(1)], query="snapshot")

    def counts(self) -> list[tuple[int, int]]:
        """Return the ids with the number of their rows."""
        return sorted(Counter(number for number, _ in self._place.rows(LOG)).items())

    def write(self, epoch: int, *groups: Iterable[Item], query: str = "") -> None:
        its = query or self.query
        write_partition(self.options, BatchPartition(f"{its}/0", its, epoch, 0), batches(*groups))

    def attempt(self, epoch: int, found: Iterable[pa.RecordBatch]) -> None:
        write_partition(self.options, BatchPartition(f"{self.query}/0", self.query, epoch, 0), found)


@pytest.fixture(params=SHARED)
def target(request: pytest.FixtureRequest) -> Target:
    return Target(SHARED[request.param](request))


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Target:
    return Target(SqlitePlace(tmp_path / "a.db"))


def test_databases_for_one_process_are_refused(tmp_path: Path) -> None:
    dialects = [dialect for dialect in DIALECTS if not dialect.traits.is_shared]
    assert dialects
    for dialect in dialects:
        with pytest.raises(ConfigError, match=f"Spark can't write to {dialect.name}: one process writes"):
            write_options({"sink": f"{dialect.schemes[0]}:///{tmp_path}/copy"})


def once(*ids: int) -> list[tuple[int, int]]:
    return [(number, 1) for number in ids]


def test_a_batch_that_comes_again_changes_nothing(target: Target) -> None:
    first = [insert(10, 1), insert(20, 2)], [insert(30, 3, 4)]
    target.write(0, *first)
    target.write(0, *first)
    target.write(1, [insert(40, 5)])
    target.write(0, *first)
    assert target.counts() == once(1, 2, 3, 4, 5)


def test_a_column_whose_values_only_the_source_knows_stops_the_task(in_sqlite: Target) -> None:
    in_sqlite.write(0, [insert(10, 1)])
    column = AddColumn(Column("token", "varchar", length=36, default="uuid()"))
    ddl = Ddl(20, 20, "somewhere", "shop", "log", "ALTER TABLE log ADD token …", (column,), "at 20")
    with pytest.raises(SinkError, match=r"DEFAULT uuid\(\) .* give the query an empty target and load"):
        in_sqlite.write(1, [ddl])


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


def stream(epoch: int, partition: int = 0) -> BatchPartition:
    return BatchPartition(f"{QUERY}/{partition}", QUERY, epoch, partition, True)


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
        write_partition(target.options, BatchPartition("nightly/0", query, 0, 0), batches(*groups))

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
    in_sqlite: Target, epoch: int, items: list[Item], sentence: str
) -> None:
    in_sqlite.write(0, [insert(10, 1), insert(20, 2)])
    with pytest.raises(SinkError, match=sentence):
        in_sqlite.write(epoch, items)


def test_rows_that_come_twice_are_refused(in_sqlite: Target) -> None:
    with pytest.raises(SinkError, match="each of them once"):
        in_sqlite.attempt(0, batches([insert(10, 1), insert(20, 2)]) * 2)


@pytest.mark.parametrize("name", ["commit_ts", "start_ts", "sequence"])
def test_rows_without_their_order_are_refused(in_sqlite: Target, name: str) -> None:
    (batch,) = batches([insert(10, 1)])
    number = batch.schema.get_field_index(name)
    columns = batch.columns
    columns[number] = pa.nulls(1, columns[number].type)
    schema = batch.schema.set(number, batch.schema.field(number).with_nullable(True))
    with pytest.raises(SinkError, match=f"the column {name} has nulls"):
        in_sqlite.attempt(0, [pa.RecordBatch.from_arrays(columns, schema=schema)])


def test_a_large_transaction_between_others_of_its_commit_ts_is_whole(target: Target) -> None:
    pieces = [
        Transaction(10, 11, "somewhere", insert(10, *range(first, first + 5)).rows, "", last=first == 95)
        for first in range(0, 100, 5)
    ]
    after = Transaction(10, 12, "somewhere", insert(10, 101).rows, "")
    target.write(0, [insert(10, 100)], *([piece] for piece in pieces), [after])
    assert target.counts() == once(*range(102))


def test_a_snapshot_that_is_read_anew_is_refused(in_sqlite: Target) -> None:
    """As MariaDB's is when a task is repeated: it is of another moment."""

    def load(ts: int, *numbers: int) -> list[list[Item]]:
        rows = [insert(ts + number, number) for number in numbers]
        chunk = Chunk("shop.other")
        return [[create(ts, OTHER)], *([_loading(row, OTHER, chunk)] for row in rows)]

    in_sqlite.write(0, *load(10, 1, 2))
    with pytest.raises(SinkError, match="a snapshot of MariaDB is another one each time"):
        in_sqlite.write(0, *load(100, 1, 2, 3))


def _loading(item: Transaction, table: Table, chunk: Chunk) -> Transaction:
    rows = [RowChange(row.commit_ts, row.start_ts, table, "insert", None, row.after) for row in item.rows]
    return Transaction(item.commit_ts, item.start_ts, item.source, rows, "", chunk=chunk)


# --- files


NDJSON = {"format": "ndjson"}


def options_for(path: Path, **sink: Any) -> WriteOptions:
    return WriteOptions(url=f"directory://{path}", sink=sink or NDJSON)


def prepared(options: WriteOptions) -> FilesOfQueries:
    files = FilesOfQueries(options)
    files.prepare()
    return files


def published(files: FilesOfQueries, options: WriteOptions, at: BatchPartition, *groups: list[Item]) -> None:
    files.publish([write_partition(options, at, batches(*groups))])


def visible(path: Path) -> dict[str, bytes]:
    paths = [one for one in sorted(path.rglob("*")) if one.is_file()]
    names = [(str(one.relative_to(path)), one) for one in paths]
    return {name: one.read_bytes() for name, one in names if not name.startswith("_tidemill/")}


def test_a_batch_that_comes_again_is_committed_once(tmp_path: Path) -> None:
    options = options_for(tmp_path / "rows")
    files = prepared(options)
    found: list[dict[str, bytes]] = []
    published(files, options, place(0), [insert(10, 1)])
    published(files, options, place(0), [insert(10, 1)])
    for _ in range(2):
        published(files, options, place(1), [insert(20, 2)], [insert(30, 3)])
        write_partition(options, place(1), batches([insert(20, 2)]))  # an attempt that doesn't count
        found.append(visible(tmp_path / "rows"))
    assert found[0] == found[1]
    assert [len(content.splitlines()) for content in found[0].values()] == [1, 2]
    published(files, options, place(2), [insert(40, 4)])
    assert list((tmp_path / "rows" / "_tidemill").glob("*/staged/*")) == []
    assert len(visible(tmp_path / "rows")) == 3


def test_a_stream_keeps_its_directory(tmp_path: Path) -> None:
    options = options_for(tmp_path / "rows")
    files = prepared(options)
    published(files, options, stream(0))
    published(files, options, stream(1), [insert(10, 1)])
    other = options_for(tmp_path / "others")
    with pytest.raises(SinkError, match=f"{tmp_path}/others has nothing of the batches before batch 2 of"):
        published(prepared(other), other, stream(2), [insert(20, 2)])
    assert visible(tmp_path / "others") == {}


def test_parquet_files_are_seen_once_their_batch_is_complete(tmp_path: Path) -> None:
    options = WriteOptions(url=f"parquet://{tmp_path}/rows")
    files = prepared(options)
    parts = ([insert(10, 1)], [insert(20, 2)], [widen(30)])
    places = [BatchPartition(f"{QUERY}/{number}", QUERY, 0, number) for number in range(3)]
    made = [write_partition(options, at, batches(part)) for at, part in zip(places, parts, strict=True)]
    assert visible(tmp_path / "rows") == {}
    files.publish(made)
    found = list(visible(tmp_path / "rows"))
    assert [name.partition("/")[0] for name in found] == ["table=ddl", "table=shop.log", "table=shop.log"]
    assert [pq.read_table(tmp_path / "rows" / name).num_rows for name in found] == [1, 1, 1]


FORMATS = ("parquet", "ndjson", "csv", "canal-json", "debezium", "maxwell", "simple")


@pytest.mark.parametrize("layout", ["tables", "ticdc"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_and_layout_is_that_of_the_local_sink(tmp_path: Path, form: str, layout: str) -> None:
    sink = {"format": form, "layout": layout}
    local = open_sink("copy", f"directory://{tmp_path}/local", feed="f", store=MemoryStore(), options=sink)
    items: list[Item] = [insert(10, 1, 2), widen(20), insert(30, 3, table=WIDE)]
    local.open()
    for item in items:
        local.write(batch_of(item))
    local.flush()
    local.close()
    options = options_for(tmp_path / "rows", **sink)
    published(prepared(options), options, stream(0), *[[item] for item in items])
    found, wanted = visible(tmp_path / "rows"), visible(tmp_path / "local")
    assert list(map(unmarked, found)) == list(map(unmarked, wanted))
    assert [content.count(b"\n") for content in found.values()] == [
        content.count(b"\n") for content in wanted.values()
    ]
    metadata = tmp_path / "rows" / ("metadata" if layout == "ticdc" else "_tidemill/metadata")
    assert metadata.read_text() == '{"checkpoint-ts":30}'


def batch_of(item: Item) -> Batch:
    return Batch([item], Checkpoint(item.commit_ts, "", None, "somewhere"))


def unmarked(name: str) -> str:
    """Return a file's name without the mark of its query."""
    return name.replace(f"-{QUERY.replace('-', '')[:12]}-", "-")


def test_a_store_is_written_as_a_directory_is(tmp_path: Path, s3_server: S3Store, bucket: str) -> None:
    options = WriteOptions(url=s3_server.url(f"{bucket}/copy"), sink=NDJSON)
    files = prepared(options)
    published(files, options, place(0), [insert(10, 1)])
    for _ in range(2):
        published(files, options, place(1), [insert(20, 2)], [insert(30, 3)])
    found = s3_server.objects(f"{bucket}/copy")
    assert [len(content.splitlines()) for content in found.values()] == [1, 2]


def test_a_driver_that_dies_while_it_publishes_is_continued_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(tmp_path / "rows")
    files = prepared(options)
    made = [write_partition(options, place(0), batches([insert(10, 1)], [insert(20, 2, table=OTHER)]))]

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Directory, "publish", dies)
        with pytest.raises(KeyboardInterrupt):
            files.publish(made)
    assert visible(tmp_path / "rows") == {}
    published(FilesOfQueries(options), options, place(0), [insert(10, 1)], [insert(20, 2, table=OTHER)])
    assert [len(content.splitlines()) for content in visible(tmp_path / "rows").values()] == [1, 1]


def test_a_commit_that_fails_after_its_state_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark aborts the batch, and then repeats it."""
    given = {"sink": f"directory://{tmp_path}/rows?format=ndjson"}
    options = write_options(given)
    writer = stream_writer(given, envelope_type(), False)
    made = [write_partition(options, stream(0), batches([insert(10, 1)]))]

    def fails(*_: object) -> None:
        raise SinkError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(Directory, "publish", fails)
        with pytest.raises(Exception, match="no room"):
            writer.commit([*made], 0)
    writer.abort([*made], 0)
    again = stream_writer(given, envelope_type(), False)
    again.commit([write_partition(options, stream(0), batches([insert(10, 1)]))], 0)
    assert [len(content.splitlines()) for content in visible(tmp_path / "rows").values()] == [1]
    assert list((tmp_path / "rows" / "_tidemill").glob("*/staged/*")) == []


def test_a_batch_that_failed_leaves_nothing(tmp_path: Path) -> None:
    options = options_for(tmp_path / "rows")
    files = prepared(options)
    before = sorted((tmp_path / "rows").rglob("*.*"))
    made = write_partition(options, place(0), batches([insert(10, 1)]))
    assert made.staged
    files.discard([made])
    assert sorted((tmp_path / "rows").rglob("*.*")) == before


def test_a_directory_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine.txt").write_text("")
    with pytest.raises(SinkError, match=r"holds mine\.txt already"):
        prepared(options_for(tmp_path / "rows"))
    with pytest.raises(SinkError, match=r"can't write .*/rows/mine\.txt: File exists"):
        prepared(options_for(tmp_path / "rows" / "mine.txt"))


def test_a_directory_that_is_not_shared_is_refused(tmp_path: Path) -> None:
    options = replace(options_for(tmp_path / "rows"), host="driver")
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
        (
            {"sink": "sqlite:///a.db", "sinks": "x"},
            "option sinks: no such option for writing",
        ),
        ({"sink": "sqlite:///a.db", "sink.schema": "x"}, "option sink.schema: no such option"),
        (
            {"sink": "parquet:///a", "sink.file_bytes": "x"},
            r"option sink\.file_bytes = 'x': 'x' is not a size",
        ),
        (
            {"sink": "directory:///a", "sink.format": "csv", "sink.encoding": "x"},
            r"option sink\.encoding = 'x': give a JSON object",
        ),
        (
            {"sink": "file:///a.ndjson"},
            r"Spark can't write to file: .*: use directory:///directory\?format=ndjson",
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
            target = Target(PostgresPlace(server, database))
            begin, end, table = other.execute, other.rollback, "shop.log"
        else:
            maria: MariaDb = request.getfixturevalue("mariadb")
            sql: Client = request.getfixturevalue("sql")
            target = Target(MariaDbPlace(maria, sql.database))
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


def test_an_attempt_goes_on_after_what_another_one_has_loaded(tmp_path):
    """Both make the same chunks, with the same timestamps."""
    url = f"sqlite:///{tmp_path / 'copy.db'}"
    other, own = (
        open_shared(SQLITE, url, SqliteOptions(), place(), socket.gethostname(), 1.0) for _ in range(2)
    )
    loading = [Batch([create(1)], Checkpoint(1, "", {})), Batch([insert(2, 1)], Checkpoint(2, "", {}))]
    other.open()
    other.write(loading[0])
    other.flush()
    own.open()
    other.write(loading[1])
    other.flush()
    with pytest.raises(Retryable):
        own.write(loading[1])
    own.write(loading[1])
    own.write(Batch([insert(3, 2)], Checkpoint(3, "", {})))
    assert own.flush() == Checkpoint(3, "", {})
    for sink in (other, own):
        sink.close()
