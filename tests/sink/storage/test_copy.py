"""Copies in lakes: the contract of sinks, statements, files of other programs, what is refused."""

from __future__ import annotations

import operator
import os
import re
import shutil
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from tidemill.errors import ConfigError, NotReproducible, Retryable, SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
)
from tidemill.sink import Delivery, DeliveryOptions, open_sink
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes.copies.columns import copy_schema
from tidemill.sink.files.parquet_columns import image_array
from tidemill.sink.registry import given_sink, misfits
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
    update,
)
from tidemill.testing.s3 import LOGIN, Broken, S3Store
from tidemill.testing.sink_conformance import HISTORY, ORDERS_3, SinkConformance, expected, feed, found, keyed

from .copies import PLACES, DeltaCopies, IcebergCopies, delta_rows
from .copies import rows_of as named
from .lakes import IcebergBucket
from .test_interruptions import Killed, MortalStore

MODES = {
    "at once": {},
    "with a journal": {"flush_seconds": 60.0, "journal_seconds": 0.0},
    "by size": {"flush_seconds": 60.0, "journal_seconds": 60.0, "file_bytes": 200},
}
KEYED = [keyed(item) for item in HISTORY]
STATES = [ORDERS_3, PAIRS]
LOADED = transaction(1, chunk=Chunk(""))
BEGUN = [create(1, PAIRS), LOADED, transaction(2, insert(PAIRS, 1, "a", 1), insert(PAIRS, 2, "b", None))]


@pytest.fixture(params=PLACES)
def kind(request):
    return request.param


class TestCopy(SinkConformance):
    history = KEYED
    states = STATES

    @pytest.fixture(params=[*[f"delta {mode}" for mode in MODES], "iceberg with a journal"])
    def place(self, request, tmp_path):
        kind, _, mode = request.param.partition(" ")
        return PLACES[kind](tmp_path / "copy", **MODES[mode])


@pytest.fixture
def place(kind, tmp_path):
    return PLACES[kind](tmp_path / "copy")


def check(place):
    assert found(place, STATES) == expected(KEYED)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.soak)])
def test_a_process_that_dies_at_any_call_of_the_store_makes_each_commit_once(tmp_path, kind, when, step):
    options = {"flush_seconds": 60.0, "journal_seconds": 60.0, "file_bytes": 700}
    for calls in count(1 + (when == "after"), step):
        place = PLACES[kind](tmp_path / str(calls), **options)
        store = MortalStore(place.path, calls, when)
        with suppress(Killed):
            feed(place.sink(store=store), KEYED)
        feed(place.sink(), KEYED)
        check(place)
        if store.left > 0:
            break
    assert calls > 50


# --- rows


@pytest.mark.parametrize(
    "others",
    [
        [],
        [update(PAIRS, (2, "b", None), (2, "b", 7))],
        [insert(PAIRS, 6, "f", 6), delete(PAIRS, 6, "f", 6)],
    ],
)
def test_a_key_that_another_row_left_in_the_same_commit_is_found_again(place, others):
    moved = transaction(3, update(PAIRS, (1, "a", 1), (5, "a", 1)), insert(PAIRS, 1, "a", 2), *others)
    later = transaction(4, update(PAIRS, (1, "a", 2), (1, "a", 3)))
    feed(place.sink(flush_seconds=0.0), [*BEGUN, moved, later])  # with one index
    rows = {row["a"]: (row["b"], row["n"]) for row in rows_of(place, "shop.pairs")}
    assert rows == {1: ("a", 3), 2: ("b", 7 if len(others) == 1 else None), 5: ("a", 1)}


def test_a_key_that_becomes_a_negative_zero_is_another_one(place):
    table = Table("shop", "pairs", (Column("k", "double", nullable=False), Column("n", "int")), key=(0,))
    changed = [
        transaction(3, update(table, (0.0, 1), (-0.0, 2))),
        transaction(4, update(table, (-0.0, 2), (-0.0, 3))),
    ]
    feed(
        place.sink(flush_seconds=0.0),
        [create(1, table), LOADED, transaction(2, insert(table, 0.0, 1)), *changed],
    )
    assert [(str(row["k"]), row["n"]) for row in place.list("shop.pairs")] == [("-0.0", 3)]


# --- statements


def rows_of(place, name):
    return sorted(place.list(name), key=lambda row: row["a"])


def feed_all(place, *items):
    feed(place.sink(), [*BEGUN, *items])


def test_a_new_column_has_its_default_in_old_rows(place):
    new = Column("more", "decimal", length=5, scale=2, nullable=False, default="1.5")
    table = replace(PAIRS, columns=(*PAIRS.columns, new))
    feed_all(
        place,
        alter(3, PAIRS, "ALTER", AddColumn(new)),
        transaction(4, update(table, (2, "b", None, Decimal("1.50")), (2, "b", 3, Decimal("2.25")))),
    )
    assert rows_of(place, "shop.pairs") == [
        {"a": 1, "b": "a", "n": 1, "more": Decimal("1.50")},
        {"a": 2, "b": "b", "n": 3, "more": Decimal("2.25")},
    ]  # fmt: skip
    assert place.definition("shop.pairs") == table


def test_a_new_column_without_a_default_leaves_the_files(place):
    new = Column("more", "int")
    feed_all(place)
    files = place.files("shop.pairs")
    feed_all(place, alter(3, PAIRS, "ALTER", AddColumn(new, "")))
    assert place.files("shop.pairs") == files
    assert rows_of(place, "shop.pairs")[0] == {"more": None, "a": 1, "b": "a", "n": 1}
    later = replace(PAIRS, columns=(new, *PAIRS.columns))
    feed_all(
        place,
        alter(3, PAIRS, "ALTER", AddColumn(new, "")),
        alter(4, later, "ALTER", ChangeColumn("n", replace(PAIRS.columns[2], name="m"), PAIRS.columns[2])),
    )
    assert rows_of(place, "shop.pairs")[0] == {"more": None, "a": 1, "b": "a", "m": 1}


def test_columns_are_renamed_widened_and_dropped(place):
    a, b, _ = PAIRS.columns
    wide, named = replace(a, kind="bigint"), replace(b, name="word", length=90)
    table = replace(PAIRS, columns=(wide, named))
    feed_all(
        place,
        transaction(3, delete(PAIRS, 1, "a", 1)),
        alter(4, PAIRS, "ALTER", ChangeColumn("a", wide, a), ChangeColumn("b", named, b), DropColumn("n")),
        transaction(5, insert(table, 2**40, "c"), update(table, (2, "b"), (2, "d"))),
    )
    assert rows_of(place, "shop.pairs") == [{"a": 2, "word": "d"}, {"a": 2**40, "word": "c"}]
    assert place.columns("shop.pairs") == [("a", "long", False), ("word", "string", False)]
    assert place.definition("shop.pairs") == table


def test_another_key_finds_the_rows(place):
    table = replace(PAIRS, key=(1,))
    feed_all(
        place,
        alter(3, PAIRS, "ALTER", ChangeKey(("b",))),
        transaction(4, update(table, (1, "a", 1), (7, "a", 1))),
    )
    assert rows_of(place, "shop.pairs") == [{"a": 2, "b": "b", "n": None}, {"a": 7, "b": "a", "n": 1}]


def test_a_column_without_null_is_written_again_though_deleted_rows_had_null(place):
    n = PAIRS.columns[2]
    table = replace(PAIRS, columns=(*PAIRS.columns[:2], replace(n, nullable=False)))
    more = Column("more", "int", nullable=False, default="7")
    feed_all(
        place,
        transaction(3, delete(PAIRS, 2, "b", None)),
        alter(4, PAIRS, "X", ChangeColumn("n", replace(n, nullable=False), n)),
        alter(5, table, "X", AddColumn(more)),
    )
    assert rows_of(place, "shop.pairs") == [{"a": 1, "b": "a", "n": 1, "more": 7}]


def ddl(ts, action, table=PAIRS):
    return Ddl(ts, 0, "src", table.schema, table.name, "X", (action,), f"log:{ts}")


def created(ts, table, *, replaces=False):
    return ddl(ts, CreateTable(table, replaces), table)


def test_a_truncated_table_is_empty_and_a_dropped_one_has_no_definition(place):
    feed_all(place, ddl(3, TruncateTable()), transaction(4, insert(PAIRS, 1, "a", 5)))
    assert rows_of(place, "shop.pairs") == [{"a": 1, "b": "a", "n": 5}]
    end = [ddl(3, TruncateTable()), transaction(4, insert(PAIRS, 1, "a", 5)), ddl(5, DropTable())]
    feed_all(place, *end)
    assert rows_of(place, "shop.pairs") == []
    assert place.definition("shop.pairs") is None
    feed_all(place, *end, created(6, PAIRS), transaction(7, insert(PAIRS, 1, "a", 6)))
    assert rows_of(place, "shop.pairs") == [{"a": 1, "b": "a", "n": 6}]


def test_tables_are_renamed_in_a_chain(place):
    other = replace(PAIRS, name="fresh")
    pairs = ((("shop", "pairs"), ("shop", "old")), (("shop", "fresh"), ("shop", "pairs")))
    feed_all(
        place,
        created(3, other),
        transaction(4, insert(other, 9, "z", 9)),
        transaction(5, delete(PAIRS, 2, "b", None), update(other, (9, "z", 9), (9, "z", 8))),
        ddl(6, RenameTables(pairs)),
        transaction(7, update(PAIRS, (9, "z", 8), (9, "y", 8))),
    )
    assert rows_of(place, "shop.old") == [{"a": 1, "b": "a", "n": 1}]
    assert rows_of(place, "shop.pairs") == [{"a": 9, "b": "y", "n": 8}]
    assert rows_of(place, "shop.fresh") == []
    named = [place.definition(f"shop.{name}") for name in ("old", "pairs", "fresh")]
    assert named == [replace(PAIRS, name="old"), PAIRS, None]


def test_a_table_that_is_loaded_again_is_replaced(place):
    table = replace(PAIRS, columns=(PAIRS.columns[0], Column("b", "bigint", nullable=False)))
    again = created(3, table, replaces=True)
    feed_all(place, again, transaction(4, insert(table, 1, 5)))
    assert rows_of(place, "shop.pairs") == [{"a": 1, "b": 5}]


OLD_N = PAIRS.columns[2]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (ChangeColumn("n", Column("n", "int"), OLD_N), "column n: its values may not stay the same"),
        (ChangeColumn("n", Column("n", "varchar", length=9), OLD_N), "from bigint to varchar"),
        (ChangeColumn("n", replace(OLD_N, nullable=False), OLD_N), "the value that replaced its NULLs"),
        (AddColumn(Column("m", "int"), expression="(n + 1)"), "this target can't compute"),
        (AddColumn(Column("m", "int", default="rand()", nullable=False)), r"DEFAULT rand\(\)"),
        (DropColumn("a"), "a column of the primary key is dropped without a new key"),
        (RenameTables(((("s", "a"), ("s", "b")), (("s", "b"), ("s", "a")))), "tables exchange their names"),
    ],
)  # fmt: skip
def test_a_table_whose_rows_are_not_known_after_a_statement_is_loaded_again(place, action, reason):
    feed_all(place)
    sink = place.sink()
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=3, rowless_seconds=0))
    work.accept([transaction(3, insert(PAIRS, 5, "e", 5))])
    work.run(0)
    work.accept([alter(4, PAIRS, "X", action)])
    with pytest.raises(SinkError, match="this source can't load a single table again") as caught:
        work.run(0)
    assert isinstance(caught.value.__context__, NotReproducible)
    assert re.search(reason, str(caught.value))
    sink.close()
    assert {"a": 5, "b": "e", "n": 5} in rows_of(place, "shop.pairs")


def test_a_column_without_null_becomes_required(place):
    feed_all(place, transaction(3, delete(PAIRS, 2, "b", None)))
    feed_all(
        place,
        transaction(3, delete(PAIRS, 2, "b", None)),
        alter(4, PAIRS, "X", ChangeColumn("n", replace(OLD_N, nullable=False), OLD_N)),
    )
    assert place.columns("shop.pairs")[2] == ("n", "long", False)


# --- refusals


def check_refused(place, table, message):
    choice = given_sink("copy", place.url(), {"mode": "copy"})
    assert message in "".join(one.text for one in misfits(choice, [table, PAIRS]))
    with pytest.raises(SinkError, match=message) as caught:
        feed(place.sink(), [create(1, table)])
    assert caught.value.table == table.full_name


def test_a_table_without_a_key_is_refused_at_the_start(place):
    check_refused(
        place, LOOSE, "shop.loose has no primary key, by which its copy's rows are found: give it one"
    )


ODD = replace(PAIRS, columns=(*PAIRS.columns[:2], Column("n.m, o", "int")))


def test_a_name_that_delta_can_not_have_is_refused_at_the_start(tmp_path):
    message = "shop.pairs: a Delta table can't have a column 'n.m, o': rename it"
    check_refused(DeltaCopies(tmp_path / "copy"), ODD, message)


def test_iceberg_has_any_name(tmp_path):
    place = IcebergCopies(tmp_path / "copy")
    changed = [
        transaction(3, insert(ODD, 1, "a", 1), insert(ODD, 2, "b", 2)),
        transaction(4, delete(ODD, 2, "b", 2)),
    ]
    feed(place.sink(), [create(1, ODD), LOADED, *changed])
    assert place.list("shop.pairs") == [{"a": 1, "b": "a", "n.m, o": 1}]


def test_a_table_that_loses_its_key_stops_the_sink(place):
    with pytest.raises(SinkError, match=r"shop\.pairs has no primary key"):
        feed_all(place, alter(3, PAIRS, "ALTER", ChangeKey(())))


def test_a_folder_has_copies_or_changes(place):
    feed_all(place)
    with pytest.raises(
        SinkError, match=r"has files of format 'parquet for mode = copy' in the layout '(delta|iceberg)'"
    ):
        feed(place.sink(mode="history"), BEGUN)


def test_an_unknown_mode_is_refused(place):
    with pytest.raises(ConfigError, match="mode"):
        open_sink("copy", f"{place.url()}?mode=merge", feed="test", store=MemoryStore())


def test_a_row_of_another_program_stops_the_sink(place):
    feed_all(place)
    place.remove("shop.pairs", "a = 1")
    with pytest.raises(
        SinkError, match="lacks a row that the source changed, with the key 1, a: another program"
    ):
        feed_all(place, transaction(3, delete(PAIRS, 1, "a", 1)))


def test_a_table_of_another_program_is_left_alone(place):
    feed_all(place)
    place.make("shop.orders")
    with pytest.raises(
        SinkError, match=r"shop\.orders is an? \w+ table that another program (or feed )?made: remove it"
    ):
        feed_all(place, created(3, ORDERS))


# --- beside other programs


class Compacting(Directory):
    """Joins a table's files just before its next commits."""

    left = 2

    def __init__(self, place) -> None:
        super().__init__(place.path)
        self._place = place

    def _compact(self, name: str) -> None:
        if self.left and name.startswith(("shop.pairs/_delta_log/", "shop.pairs/metadata/snap-")):
            self.left -= 1
            self._place.compact("shop.pairs")

    def create(self, name, content):
        self._compact(name)
        return super().create(name, content)

    def write(self, name, content):
        self._compact(name)
        super().write(name, content)


def history(first, last):
    return [
        transaction(
            ts, insert(PAIRS, ts, "x", ts), *([delete(PAIRS, ts - 2, "x", ts - 2)] if ts > 11 else [])
        )
        for ts in range(first, last)
    ]


@pytest.mark.parametrize("index", ["kept", "lost", "old"])
def test_a_table_that_is_compacted_meanwhile_goes_on(place, index):
    feed_all(place, *history(10, 13))
    shutil.copytree(place.index, place.path / "../old")
    feed_all(place, *history(10, 16))
    place.compact("shop.pairs")
    if index != "kept":
        shutil.rmtree(place.index)
    if index == "old":
        (place.path / "../old").rename(place.index)
    store = Compacting(place)
    feed(place.sink(store=store), [*BEGUN, *history(10, 20)])
    assert not store.left
    assert sorted(row["a"] for row in place.list("shop.pairs")) == [1, 2, 18, 19]


def test_a_paused_copy_of_the_feed_changes_nothing(place):
    feed_all(place)
    old = place.sink()
    work = Delivery(old, old.open(), "src", DeliveryOptions(rowless_seconds=0))
    new = type(place)(place.path)
    new.index = place.index.with_name("other.index")
    feed(new.sink(), [*BEGUN, transaction(3, delete(PAIRS, 1, "a", 1))])
    version = place.version("shop.pairs")
    work.accept([transaction(3, delete(PAIRS, 2, "b", None))])
    with pytest.raises(SinkError, match="another copy of feed 'test' has taken over"):
        work.run(0)
    old.close()
    assert place.version("shop.pairs") == version
    assert rows_of(place, "shop.pairs") == [{"a": 2, "b": "b", "n": None}]


class Late(Directory):
    """Makes a commit of a table after it was given up, just before the next attempt."""

    def __init__(self, path) -> None:
        super().__init__(path)
        self.commits = []

    def create(self, name, content):
        if name.startswith("shop.pairs/_delta_log/") and len(self.commits) < 2:
            self.commits.append((name, content))
            if len(self.commits) == 1:
                raise Retryable("no answer")
            assert super().create(*self.commits[0])
        return super().create(name, content)


def test_a_commit_that_comes_after_it_was_given_up_is_found_with_its_keys(tmp_path):
    place = DeltaCopies(tmp_path / "copy")
    feed_all(place)
    store = Late(place.path)
    sink = place.sink(store=store)
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
    for n in range(4):
        work.accept([transaction(3 + n, update(PAIRS, (1, "a", 1 + n), (1, "a", 2 + n)))])
        with suppress(Retryable):
            work.run(0)
        work.run(0)
    sink.close()
    assert len(store.commits) == 2
    assert rows_of(place, "shop.pairs") == [{"a": 1, "b": "a", "n": 5}, {"a": 2, "b": "b", "n": None}]


def test_a_long_log_has_checkpoints(tmp_path, monkeypatch):
    place = DeltaCopies(tmp_path / "copy")
    monkeypatch.setattr("tidemill.sink.files.lakes.copies.delta_log._CHECKPOINT_EVERY", 4)
    feed_all(place, *history(10, 22))
    log = place.path / "shop.pairs/_delta_log"
    last = max(path.name for path in log.glob("*.checkpoint.parquet"))
    for path in log.glob("*.json"):
        if path.name < last:
            path.unlink()
    feed_all(place, *history(10, 25))
    assert sorted(row["a"] for row in place.list("shop.pairs")) == [1, 2, 23, 24]


# --- an object store


class Unanswered:
    """A fault: the first write to a table's log or metadata is done without an answer, or isn't done."""

    def __init__(self, when: str) -> None:
        self._when = when
        self.left = 1

    def __call__(self, environ, handle) -> None:
        if (
            self.left
            and environ["REQUEST_METHOD"] == "PUT"
            and any(f"/shop.pairs/{folder}/" in environ["PATH_INFO"] for folder in ("_delta_log", "metadata"))
        ):
            self.left -= 1
            if self._when == "after":
                handle()
            raise Broken


def delta_in(server, place, name):
    storage = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": server.endpoint, "AWS_ALLOW_HTTP": "true"}
    return delta_rows(DeltaTable(f"s3://{place}/{name}", storage_options=storage))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_bucket_has_copies_though_an_answer_is_lost(monkeypatch, tmp_path, kind, when):
    for name, value in LOGIN.items():
        monkeypatch.setitem(os.environ, name, value)
    with S3Store() as server:
        bucket = server.bucket(f"copies-{kind}-{when}")
        options = {"mode": "copy", "flush_seconds": 0.0}
        if kind == "delta":
            url = f"delta+{server.url(f'{bucket}/copy')}"
        else:
            lake = IcebergBucket(server, f"{bucket}/copy", tmp_path)
            url, options = (
                lake.url(),
                {**options, "location": f"s3://{bucket}/copy", "endpoint": server.endpoint},
            )
        server.fault = fault = Unanswered(when)
        sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=3, rowless_seconds=0))
        for item in KEYED:
            work.accept([item])
            while True:
                with suppress(Retryable):
                    work.run(0)
                    break
        work.flush(0)
        sink.close()
        assert not fault.left
        for table in STATES:
            name = table.full_name
            found = (
                delta_in(server, f"{bucket}/copy", name) if kind == "delta" else lake.arrow(name).to_pylist()
            )
            assert Counter(named(table, found)) == expected(KEYED)[name]


# --- values


def test_a_copy_has_every_kind_of_column(place):
    rows = [*kinds.ROWS, kinds.NULLS]
    feed(
        place.sink(),
        [
            create(1, kinds.KEYED),
            LOADED,
            transaction(2, *[insert(kinds.KEYED, *row) for row in rows]),
            transaction(3, *[update(kinds.KEYED, row, (-1 - row[0], *row[1:])) for row in rows]),
        ],
    )
    schema = copy_schema(kinds.KEYED)
    columns = zip(*[(-1 - row[0], *row[1:]) for row in rows], strict=True)
    arrays = [
        image_array("", column, values).cast(schema.field(column.name).type)
        for column, values in zip(kinds.KEYED.columns, columns, strict=True)
    ]
    expected_rows = pa.Table.from_arrays(arrays, schema=schema).to_pylist()
    key = operator.itemgetter("id")
    assert sorted(place.list("shop.everything"), key=key) == sorted(expected_rows, key=key)


@pytest.mark.parametrize("number", range(len(kinds.EVERY)))
def test_a_key_of_any_kind_is_found_again_without_the_index(place, number):
    column, values = kinds.EVERY[number]
    values = [value for value in dict.fromkeys(values) if value is not None][:4]
    table = Table("shop", "pairs", (replace(column, name="k", nullable=False), Column("n", "int")), key=(0,))
    loaded = [create(1, table), LOADED, transaction(2, *[insert(table, value, 1) for value in values])]
    feed(place.sink(), loaded)
    shutil.rmtree(place.index)
    changed = [update(table, (value, 1), (value, 2)) for value in values[:1]]
    feed(
        place.sink(), [*loaded, transaction(3, *changed, *[delete(table, value, 1) for value in values[1:]])]
    )
    assert [row["n"] for row in place.list("shop.pairs")] == [2]
