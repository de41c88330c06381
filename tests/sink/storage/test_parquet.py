from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tidemill.actors import ManualClock
from tidemill.codec.text import datetime_text, time_text
from tidemill.errors import CheckpointError, ConfigError, SinkError
from tidemill.events import (
    ChangeColumn,
    ChangeKey,
    Chunk,
    Column,
    CreateTable,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
    compose_ts,
)
from tidemill.sink import Delivery, DeliveryOptions, open_sink
from tidemill.sink.files import storage
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.ledger import Ledger
from tidemill.sink.files.options import ArchiveOptions
from tidemill.sink.files.storage import StorageSink
from tidemill.sink.files.target import files_target
from tidemill.store import disk
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    ORDERS,
    PAIRS,
    MemoryStore,
    alter,
    at,
    batch,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.child import Child
from tidemill.testing.sink_conformance import HISTORY, ORDERS_2, SinkConformance, expected, feed

from ..test_conformance import altered

EAGER = ArchiveOptions(flush_seconds=0)
OPTIONS = {
    "every flush": EAGER,
    "every few rows": ArchiveOptions(file_bytes=3000, journal_seconds=0),
    "without a journal": ArchiveOptions(file_bytes=3000),
    "pieces of transactions": ArchiveOptions(file_bytes=1),
    "in the end": ArchiveOptions(journal_seconds=0),
}


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "archive"


def archive(directory: Path, options: ArchiveOptions | None = None, clock: ManualClock | None = None):
    """Return a sink of a directory."""
    target = files_target(Directory(directory), options or ArchiveOptions())
    return StorageSink(target, Ledger(target.store, "test", "copy"), (clock or ManualClock()).now)


def read(directory: Path, table: Table | str) -> list[dict]:
    """All rows of a table, in order."""
    name = table if isinstance(table, str) else table.full_name
    paths = sorted(directory.glob(f"table={name}/date=*/*.parquet"), key=lambda path: path.name)
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


class ParquetPlace:
    """Plays the changes again."""

    at_least_once = False

    def __init__(self, directory: Path, options: ArchiveOptions):
        self.directory = directory
        self.options = options

    def sink(self):
        return archive(self.directory, self.options)

    def rows(self, table: Table):
        changes = read(self.directory, table)
        changes += [row for row in read(self.directory, "ddl") if row["schema"] == table.schema
                    and row["table"] == table.name]  # fmt: skip
        found: Counter[str] = Counter()
        for change in sorted(changes, key=lambda row: (row["commit_ts"], row["start_ts"], row["sequence"])):
            if change["op"] == "alter":
                found = altered(found, change)
            if change.get("before") is not None:
                before = json.dumps(change["before"], sort_keys=True)
                assert found[before]
                found[before] -= 1
            if change.get("after") is not None:
                found[json.dumps(change["after"], sort_keys=True)] += 1
        rows = [json.loads(text) for text in found.elements()]
        return [tuple(row[column.name] for column in table.columns) for row in rows]


class TestParquet(SinkConformance):
    @pytest.fixture(params=OPTIONS)
    def place(self, request, directory):
        return ParquetPlace(directory, OPTIONS[request.param])


def test_a_file_has_a_table_and_a_day_and_says_which_changes(directory):
    noon, midnight = compose_ts(1_700_000_000_000), compose_ts(1_700_006_400_000)
    feed(
        archive(directory),
        [
            create(noon - 2, ORDERS),
            create(noon - 1, PAIRS),
            transaction(noon, insert(ORDERS, 1, "a"), update(ORDERS, (1, "a"), (1, None)), chunk=Chunk("")),
            transaction(midnight, delete(ORDERS, 1, None), insert(PAIRS, 1, "b", 2)),
        ],
    )
    assert [name for name in names(directory) if not name.startswith("_")] == [
        f"table=ddl/date=2023-11-14/{noon - 2:020}-{noon - 1:020}-{3:010}-0.parquet",
        f"table=shop.orders/date=2023-11-14/{noon:020}-{noon:020}-{3:010}-1.parquet",
        f"table=shop.orders/date=2023-11-15/{midnight:020}-{midnight:020}-{3:010}-2.parquet",
        f"table=shop.pairs/date=2023-11-15/{midnight:020}-{midnight:020}-{3:010}-3.parquet",
    ]
    head = {"source": "src", "commit_ts": noon, "start_ts": 0, "snapshot": True}
    assert read(directory, ORDERS) == [
        {**head, "sequence": 0, "op": "insert", "before": None, "after": {"id": 1, "note": "a"}},
        {**head, "sequence": 1, "op": "update",
         "before": {"id": 1, "note": "a"}, "after": {"id": 1, "note": None}},
        {**head, "commit_ts": midnight, "sequence": 0, "op": "delete", "snapshot": False,
         "before": {"id": 1, "note": None}, "after": None},
    ]  # fmt: skip


def shown(column: Column, value):
    """Return the value that a reader gets, by docs/reference/parquet.md."""
    match column.kind:
        case _ if value is None:
            return None
        case "decimal" if column.length > 38:
            return f"{value:.{column.scale}f}"
        case "date":
            return str(value)
        case "time":
            return time_text(value, column.scale)
        case "datetime" | "timestamp":
            return datetime_text(value, column.scale)
    return value


def test_every_value_of_every_type_is_read_back_exactly(directory):
    rows = [*kinds.ROWS, kinds.NULLS]
    changes = [insert(kinds.KEYED, *row) for row in rows] + [delete(kinds.KEYED, *row) for row in rows]
    feed(
        archive(directory),
        [create(1, kinds.KEYED), transaction(2, *changes, chunk=Chunk(""))],
    )
    found = read(directory, kinds.KEYED)
    wanted = [
        {column.name: shown(column, value) for column, value in zip(kinds.KEYED.columns, row, strict=True)}
        for row in rows
    ]
    assert [row["after"] for row in found[: len(rows)]] == wanted
    assert [row["before"] for row in found[len(rows) :]] == wanted


def test_types_are_those_of_the_documentation(directory):
    feed(
        archive(directory),
        [create(1, kinds.KEYED), transaction(2, insert(kinds.KEYED, *kinds.NULLS), chunk=Chunk(""))],
    )
    [path] = directory.glob("table=shop.everything/*/*.parquet")
    image = pq.read_schema(path).field("after").type
    types = {image.field(number).name: image.field(number).type for number in range(image.num_fields)}
    assert types["tinyint_unsigned"] == pa.uint8()
    assert types["mediumint_signed"] == pa.int32()
    assert types["bigint_unsigned"] == pa.uint64()
    assert types["whole"] == pa.decimal128(10, 0)
    assert types["wide"] == types["day"] == types["time_3"] == types["datetime_0"] == pa.large_string()
    assert types["single"] == pa.float32()
    assert types["bits"] == pa.uint64()
    assert types["fixed"] == pa.large_binary()


def test_a_schema_change_begins_new_files_and_is_recorded(directory):
    feed(archive(directory), HISTORY, max_rows=1000)
    columns = [
        [field.name for field in pq.read_schema(path).field("after").type]
        for path in sorted(directory.glob("table=shop.orders/*/*.parquet"))
    ]
    assert columns == [["id", "note"], ["id", "note", "paid"], ["id", "paid"]]
    ddl = read(directory, "ddl")
    assert [(row["op"], row["table"]) for row in ddl] == [
        ("create", "orders"), ("create", "pairs"), ("create", "loose"),
        ("alter", "orders"), ("alter", "orders"),
    ]  # fmt: skip
    assert ddl[3]["query"] == "ALTER TABLE orders ADD paid INT NOT NULL DEFAULT 7"
    assert json.loads(ddl[3]["actions"])[0]["add"]["default"] == "7"
    assert json.loads(ddl[4]["actions"]) == [{"drop": "note"}]
    assert [column["name"] for column in json.loads(ddl[0]["actions"])[0]["create"]["columns"]] == [
        "id",
        "note",
    ]


def test_changes_of_whole_tables_are_recorded(directory):
    pairs = ((("shop", "orders"), ("shop", "old")),)
    wider = replace(ORDERS.columns[1], length=80)
    changes = [
        [CreateTable(ORDERS, replaces=True)],
        [TruncateTable()],
        [ChangeColumn("note", wider, ORDERS.columns[1]), ChangeKey(())],
        [RenameTables(pairs)],
        [DropTable()],
    ]
    items = [alter(ts, ORDERS, f"statement {ts}", *change) for ts, change in enumerate(changes, 2)]
    feed(archive(directory), [transaction(1, chunk=Chunk("")), *items])
    found = [(row["op"], json.loads(row["actions"])) for row in read(directory, "ddl")]
    assert [op for op, _ in found] == ["create", "truncate", "alter", "rename", "drop"]
    assert found[0][1][0]["replaces"] is True
    assert found[1][1] == [{"truncate": True}]
    assert (found[2][1][0]["change"], found[2][1][0]["column"]["length"]) == ("note", 80)
    assert found[2][1][1] == {"key": []}
    assert found[3][1] == [{"rename": [{"from": ["shop", "orders"], "to": ["shop", "old"]}]}]
    assert found[4][1] == [{"drop_table": True}]


def test_names_that_are_no_file_names_are_escaped(directory):
    table = Table("a/b", "..c d.é", (Column("id", "int"),))
    feed(
        archive(directory),
        [create(1, table), transaction(2, insert(table, 1), chunk=Chunk(""))],
    )
    assert [path.name for path in directory.glob("table=a*")] == ["table=a%2Fb.%2E%2Ec%20d%2E%C3%A9"]


def test_a_name_that_is_too_long_for_a_folder_ends_in_a_digest(directory):
    tables = [Table("目" * 60, "録" * 50 + end, (Column("id", "int"),)) for end in "ab"]
    feed(
        archive(directory),
        [transaction(1, *[insert(table, number) for number, table in enumerate(tables)], chunk=Chunk(""))],
    )
    folders = sorted(directory.glob("table=%E7%9B%AE*~*"))
    assert [len(path.name) for path in folders] == [200, 200]
    found = {}
    for path in folders:
        [file] = path.glob("*/*.parquet")
        [row] = pq.read_table(file, partitioning=None).to_pylist()
        found[json.loads(pq.read_schema(file).metadata[b"tidemill.table"])["name"]] = row["after"]["id"]
    assert found == {"録" * 50 + "a": 0, "録" * 50 + "b": 1}


def follow(sink: StorageSink, *timestamps: int) -> None:
    for ts in timestamps:
        sink.write(batch(transaction(ts, insert(ORDERS, ts, "x"))))
        sink.flush()


def test_what_is_acknowledged_is_seen_after_flush_seconds_though_nothing_comes(directory):
    clock = ManualClock()
    sink = archive(directory, ArchiveOptions(flush_seconds=60, journal_seconds=0), clock)
    work = Delivery(sink, sink.open() or at(0), "src")

    def next_call(*timestamps):
        work.accept([transaction(ts, insert(ORDERS, ts, "x")) for ts in timestamps])
        return work.run(clock.now())

    assert next_call(1, 2) == 60
    assert work.statistics().checkpoint == at(2)
    clock.advance(59)
    assert next_call() == 1
    assert read(directory, ORDERS) == []
    clock.advance(1)
    assert next_call() is None
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1, 2]
    assert next_call(3) == 60
    clock.advance(60)
    assert next_call() is None
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1, 2, 3]
    sink.close()
    assert len(list(directory.glob("table=*/*/*"))) == 2


def test_time_that_is_up_inside_a_transaction_waits_for_its_end(directory):
    clock = ManualClock()
    sink = archive(directory, ArchiveOptions(flush_seconds=60), clock=clock)
    sink.open()
    follow(sink, 1)
    sink.write(batch(transaction(2, insert(ORDERS, 2, "x"), last=False)))
    clock.advance(70)
    assert sink.flush() == at(1)
    assert read(directory, ORDERS) == []
    sink.write(batch(transaction(2, insert(ORDERS, 3, "x"))))
    assert sink.flush() == at(2)
    assert [(row["commit_ts"], row["sequence"]) for row in read(directory, ORDERS)] == [
        (1, 0),
        (2, 0),
        (2, 1),
    ]
    sink.close()


def test_files_are_made_at_a_size_and_a_large_transaction_makes_several(directory):
    sink = archive(directory, ArchiveOptions(file_bytes=50_000))
    sink.open()
    for piece in range(10):
        rows = [insert(ORDERS, number, "x" * 30) for number in range(piece * 1000, piece * 1000 + 1000)]
        sink.write(batch(transaction(1, *rows, last=piece == 9)))
        assert sink.flush() == (at(1) if piece == 9 else None)
    paths = sorted(directory.glob("table=shop.orders/*/*"))
    assert len(paths) > 2
    assert max(pq.read_table(path).nbytes for path in paths) < 200_000
    assert [row["sequence"] for row in read(directory, ORDERS)] == list(range(10_000))
    sink.close()


def test_rows_that_are_enough_for_files_never_go_to_the_journal(directory, monkeypatch):
    sink = archive(directory, ArchiveOptions(file_bytes=1000))
    sink.open()
    follow(sink, 1)
    monkeypatch.setattr(storage, "write_entry", None)
    for ts in range(2, 201):
        sink.write(batch(transaction(ts, insert(ORDERS, ts, "x"))))
        reached = sink.progress()
    assert reached.ts > 160
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == list(range(1, reached.ts + 1))
    sink.close()


def test_rows_that_wait_for_more_are_acknowledged_after_journal_seconds(directory):
    clock = ManualClock()
    sink = archive(directory, ArchiveOptions(journal_seconds=2), clock=clock)
    sink.open()
    acknowledged = []
    for ts in range(1, 6):
        sink.write(batch(transaction(ts, insert(ORDERS, ts, "x"))))
        acknowledged.append(sink.progress())
        clock.advance(1)
    assert acknowledged == [at(1), at(1), at(3), at(3), at(5)]
    assert read(directory, ORDERS) == []
    sink.close()
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1, 2, 3, 4, 5]


# --- crashes


class DeathError(BaseException):
    pass


STEPS = [(os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "mkdir"), (shutil, "rmtree")]


class Mortality:
    """Dies at the n-th step on the disk: before it, or just after it."""

    def __init__(self, monkeypatch, steps: int, after: bool):
        self.left = steps
        self.after = after
        for owner, name in STEPS:
            monkeypatch.setattr(owner, name, self.stepping(getattr(owner, name)))

    def stepping(self, step):
        def stepped(*args, **kwargs):
            self.left -= 1
            if self.left < 0 or (self.left == 0 and not self.after):
                raise DeathError
            result = step(*args, **kwargs)
            if self.left == 0:
                raise DeathError
            return result

        return stepped


SHORT = [
    create(1, ORDERS),
    transaction(2, chunk=Chunk("")),
    transaction(3, insert(ORDERS, 1, "a"), last=False),
    transaction(3, insert(ORDERS, 2, "b")),
    next(item for item in HISTORY if item.commit_ts == 15),
    transaction(16, update(ORDERS_2, (1, "a", 7), (1, "a", 8)), delete(ORDERS_2, 2, "b", 7)),
]


def deliver(place: ParquetPlace) -> None:
    """As `feed` does, but leaves everything lying when it dies."""
    sink = place.sink()
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=1, rowless_seconds=0))
    for item in SHORT:
        work.accept([item])
        work.run(0)
    work.flush(0)
    sink.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("chosen", ["every flush", "every few rows", "pieces of transactions", "in the end"])
def test_a_death_at_any_step_on_the_disk_loses_and_repeats_nothing(tmp_path, chosen, after):
    for step in count(1):
        place = ParquetPlace(tmp_path / str(step), OPTIONS[chosen])
        with pytest.MonkeyPatch.context() as patched:
            mortality = Mortality(patched, step, after)
            with suppress(DeathError):
                deliver(place)
        for path in place.directory.glob("table=*/*/*.parquet"):
            pq.read_metadata(path)  # what is visible is whole
        deliver(place)
        assert Counter(place.rows(ORDERS_2)) == expected(SHORT)["shop.orders"]
        left = [name for name in names(place.directory / "_tidemill") if not name.endswith(".new")]
        assert [name.partition("/")[0] for name in left] == ["metadata", "states"]
        if mortality.left > 0:
            break
    assert step > 20


@pytest.mark.parametrize("nth", [1, 4, 9])
@pytest.mark.parametrize("point", ["sink.mid_batch", "sink.before_commit", "sink.committed"])
def test_a_process_that_is_killed_goes_on_where_it_was(tmp_path, point, nth):
    program = """
import sys
from tidemill.events import Table, Column, Transaction, RowChange, Batch, Checkpoint
from tidemill.sink import open_sink
from tidemill.testing.changes import MemoryStore
table = Table("shop", "orders", (Column("id", "int"),), key=(0,))
url = f"parquet://{sys.argv[1]}/archive"
options = {"file_bytes": 3000, "journal_seconds": 0}
sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
at = sink.open()
for ts in range(at.ts + 1 if at else 1, 13):
    row = RowChange(0, 0, table, "insert", None, (ts,))
    sink.write(Batch([Transaction(ts, 0, "src", [row], str(ts))], Checkpoint(ts, str(ts))))
    sink.flush()
sink.close()
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    with Child(command, failpoint=f"{point}:{nth}") as child:
        child.dies()
    with Child(command) as child:
        assert child.exit_status() == 0
    assert [row["after"]["id"] for row in read(tmp_path / "archive", ORDERS)] == list(range(1, 13))


# --- what isn't right


def test_a_directory_of_somebody_else_is_left_alone(directory):
    directory.mkdir()
    (directory / "mine.txt").write_text("mine")
    with pytest.raises(SinkError, match=r"holds mine\.txt already: empty it, or give another prefix"):
        archive(directory).open()
    assert names(directory) == ["mine.txt"]


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SinkError, match=r"can't write .*no/archive: No such file or directory"):
        archive(tmp_path / "no" / "archive").open()


def test_an_archive_that_lost_its_states_is_noticed(directory):
    sink = archive(directory, EAGER)
    sink.open()
    follow(sink, 1)
    shutil.rmtree(directory / "_tidemill")
    with pytest.raises(SinkError, match=r"holds table=shop\.orders already: empty it"):
        archive(directory).open()


@pytest.mark.parametrize("what", ["missing", "damaged", "cut"])
def test_a_journal_that_is_not_whole_is_noticed_before_files_are_made_of_it(directory, what):
    sink = archive(directory)
    sink.open()
    follow(sink, 1)
    [journal] = directory.glob("_tidemill/staged/*/journal")
    content = bytearray(journal.read_bytes())
    content[-5] ^= 1
    match what:
        case "missing":
            journal.unlink()
        case "damaged":
            journal.write_bytes(content)
        case "cut":
            journal.write_bytes(content[:2])
    state = "missing" if what == "missing" else "damaged"
    with pytest.raises(CheckpointError, match=rf"/journal is {state}: put back a copy of all that was here"):
        archive(directory).open()
    assert read(directory, ORDERS) == []


def test_a_value_that_its_type_has_no_place_for_is_an_error_that_names_it(directory):
    sink = archive(directory)
    sink.open()
    with pytest.raises(SinkError, match=r"shop.orders.id has a value that int32 can't hold"):
        sink.write(batch(transaction(1, insert(ORDERS, 2**31, "x"))))
    sink.close()
    assert [name.rpartition("/")[0] for name in names(directory)] == ["_tidemill/states"]


def full(*_, **__):
    raise OSError(28, "No space left on device", "rows.parquet")


def test_a_full_disk_is_an_error_that_says_so(directory, monkeypatch):
    sink = archive(directory, EAGER)
    sink.open()
    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(SinkError, match=r"can't write .*/archive: No space left on device"):
        follow(sink, 1)
    monkeypatch.undo()
    sink.close()
    again = archive(directory)
    assert again.open() is None
    follow(again, 1)
    again.close()
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1]


def test_rows_that_close_cannot_write_stay_for_the_next_start(directory, monkeypatch):
    sink = archive(directory)
    sink.open()
    follow(sink, 1)
    monkeypatch.setattr(disk, "write", full)
    message = (
        rf"can't write {directory}: No space left on device \(rows\.parquet\); acknowledged rows wait in its "
        "journal, and the next start writes their files"
    )
    with pytest.raises(SinkError, match=message):
        sink.close()
    sink.close()
    monkeypatch.undo()
    again = archive(directory)
    assert again.open() == at(1)
    again.close()
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1]


def test_an_open_transaction_does_not_keep_acknowledged_rows_from_their_files(directory):
    sink = archive(directory, ArchiveOptions(file_bytes=1000))
    sink.open()
    follow(sink, 1)
    while not list((directory / "_tidemill" / "staged").glob("*/0")):
        sink.write(batch(transaction(2, insert(ORDERS, 2, "x"), last=False)))
    sink.close()
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1]


def test_rows_of_the_journal_that_cannot_be_written_stay_for_the_next_start(directory, monkeypatch):
    clock = ManualClock()
    sink = archive(directory, ArchiveOptions(flush_seconds=60), clock)
    sink.open()
    follow(sink, 1)
    monkeypatch.setattr(disk, "write", full)
    clock.advance(60)
    with pytest.raises(SinkError, match=r"can't write .*/archive: No space left on device"):
        sink.progress()
    monkeypatch.undo()
    sink.close()
    again = archive(directory)
    assert again.open() == at(1)
    again.close()
    assert [row["commit_ts"] for row in read(directory, ORDERS)] == [1]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("file://{}?format=parquet", {}),
        ("file://{}", {"format": "parquet"}),
        ("parquet://{}", {"file_bytes": 1 << 20, "flush_seconds": 5}),
    ],
)
def test_it_is_opened_by_url_or_option(directory, url, options):
    sink = open_sink("copy", url.format(directory), feed="f", store=MemoryStore(), options=options)
    assert sink.target == f"directory:{directory}"


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("parquet://", {}, "sink copy: 'parquet://' names no file; for instance parquet:///var/rows"),
        ("file:///x?format=orc", {}, "sink copy: no format 'orc'; accepted: ndjson, canal-json"),
        ("file:///x", {"format": 3}, "sink copy: no format 3; accepted: ndjson, canal-json"),
        (
            "parquet:///x",
            {"files": 3},
            "sink copy: files: no such option; did you mean 'file_bytes'? (accepted: commit_rows, ",
        ),
        ("parquet:///x", {"file_bytes": 0}, "sink copy: file_bytes = 0: expected `int` >= 1"),
        (
            "parquet:///x",
            {"flush_seconds": "soon"},
            "sink copy: flush_seconds = 'soon': expected `float`, got `str`",
        ),
        ("parquet:///x", {"flush_seconds": -1}, "sink copy: flush_seconds = -1: expected `float` >= 0"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_accepted(url, options, message):
    with pytest.raises(ConfigError) as caught:
        open_sink("copy", url, feed="f", store=MemoryStore(), options=options)
    assert message in str(caught.value)


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in [name for name in sys.modules if name.startswith("tidemill.sink.files.parquet_")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"sink copy: Parquet needs: pip install 'tidemill\[arrow\]'"):
        open_sink("copy", "parquet:///x", feed="f", store=MemoryStore())
