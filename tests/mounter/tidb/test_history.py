"""The schema history: which tables there were at which ts."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.tidb.table_info import encode_table_info, holds_rows
from tidemill.errors import InvariantViolated
from tidemill.mounter.tidb.history import Physical, SchemaHistory
from tidemill.store.scratch import Scratch
from tidemill.store.store import Store
from tidemill.testing import cases
from tidemill.testing.tidb_model import Tidb

CASES = sorted(Path(__file__).parent.glob("cases/history-*.txt"))


@pytest.fixture
def make_history(tmp_path):
    scratch = Scratch(tmp_path / "scratch")
    stores = []

    def make(ts=0, databases=(), **options):
        stores.append(Store(scratch.new_store(), window_bytes=20_000, buffer_bytes=1 << 20))
        return SchemaHistory(stores[-1], ts, databases, **options)

    yield make
    for store in stores:
        store.close()
    scratch.close()


# --- as text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, make_history, rewrite):
    tidb, history = Tidb(), make_history()
    cases.expect_history(path, lambda commands: play(tidb, history, commands), rewrite)


def play(tidb: Tidb, history: SchemaHistory, commands: str) -> str:
    """Run the statements of a block, each at the ts in front of it; what the block's questions answer."""
    said = []
    for line in commands.splitlines():
        match line.split():
            case ["tables", ts]:
                said += [
                    f"{table.info.id} {table.name} since {table.since}:"
                    f" {' '.join(column.name for column in table.info.columns)}"
                    for table in history.tables(int(ts))
                ]
            case ["physical", ts]:
                said += [f"{p.id} of {p.schema}.{p.table}" for p in history.physical_tables(int(ts))]
            case ["table", physical_id, "at", ts]:
                table = history.table_at(int(physical_id), int(ts))
                said.append(f"{physical_id} at {ts}: {table.name if table else 'none'}")
            case ["prune", ts]:
                history.prune(int(ts))
            case [ts, *words]:
                applied = history.apply(statement(tidb, *words), int(ts))
                said += [f"{ts} + {p.id} of {p.schema}.{p.table}" for p in applied.added]
                said += [f"{ts} - {p.id} of {p.schema}.{p.table}" for p in applied.removed]
    return "\n".join(said) or "nothing"


def statement(tidb: Tidb, *words: str):
    """The job of a statement such as `rename shop.a to shop.b`."""
    names = [tuple(word.split(".")) for word in words if "." in word]
    match words:
        case ("create", "database", name):
            return tidb.create_database(name)
        case ("alter", "database", name):
            return tidb.alter_database(name)
        case ("drop", "database", name):
            return tidb.drop_database(name)
        case ("create", "table", _):
            return tidb.create_table(*names[0])
        case ("create", "table", _, "with", count, "partitions"):
            return tidb.create_table(*names[0], partitions=int(count))
        case ("create", "tables", *_):
            return tidb.create_tables(names[0][0], [name for _, name in names])
        case ("create", "view", _):
            return tidb.create_view(*names[0])
        case ("rename", _, "to", _):
            return tidb.rename_table(*names)
        case ("rename", *_):
            return tidb.rename_tables(list(zip(names[::2], names[1::2], strict=True)))
        case ("exchange", "partition", "of", _, "with", _):
            return tidb.exchange_partition(*names)
        case (verb, "column", name, "of", _):
            return getattr(tidb, f"{verb}_column")(*names[0], name)
        case (verb, what, "of", _):
            return getattr(tidb, f"{verb}_{what}")(*names[0])
        case (verb, "table", _):
            return getattr(tidb, f"{verb}_table")(*names[0])
        case ("comment", "on", "table", _, text):
            return tidb.comment(*names[0], text)
    raise ValueError(f"no such statement: {' '.join(words)}")


# --- against the model ---------------------------------------------------------------------------

STATEMENTS = (
    "alter_database", "drop_database", "create_table", "create_partitioned", "create_tables", "create_view",
    "drop_table", "recover_table", "truncate_table", "rename_table", "rename_tables", "add_column",
    "drop_column", "comment", "add_partition", "drop_partition", "truncate_partition",
    "reorganize_partition", "remove_partitioning", "exchange_partition",
)  # fmt: skip


def run(tidb: Tidb, what: str, pick: int):
    """A statement of a kind on something that there is; None if there is nothing to do it on."""

    def one(things):
        things = sorted(things)
        return things[pick % len(things)] if things else None

    fresh = f"t{tidb.last_id}"
    schema = one(tidb.databases)
    if schema is None or what == "create_database":
        return tidb.create_database(f"d{tidb.last_id}")
    table = one(tidb.tables)
    partitioned = one(n for n, info in tidb.tables.items() if info.partition and info.partition.definitions)
    plain = one(name for name, info in tidb.tables.items() if info.partition is None)
    match what:
        case "alter_database" | "drop_database":
            return getattr(tidb, what)(schema)
        case "create_table" | "create_view":
            return getattr(tidb, what)(schema, fresh)
        case "create_partitioned":
            return tidb.create_table(schema, fresh, partitions=1 + pick % 3)
        case "create_tables":
            return tidb.create_tables(schema, [fresh + "a", fresh + "b"])
        case "recover_table":
            name = one(n for n in tidb.dropped if n[0] in tidb.databases and n not in tidb.tables)
            return name and tidb.recover_table(*name)
        case "exchange_partition":
            return partitioned and plain and tidb.exchange_partition(partitioned, plain)
        case "rename_table":
            return table and tidb.rename_table(table, (schema, fresh))
        case "rename_tables":
            pairs = [(name, (schema, f"{fresh}x{n}")) for n, name in enumerate(sorted(tidb.tables)[:2])]
            return tidb.rename_tables(pairs, version=1 + pick % 2) if pairs else None
        case "add_column" | "comment":
            return table and getattr(tidb, what)(*table, fresh)
        case "drop_column":
            last = table and tidb.tables[table].columns[-1].name
            return tidb.drop_column(*table, last) if table and last != "id" else None
        case "drop_table" | "truncate_table":
            return table and getattr(tidb, what)(*table)
    return partitioned and getattr(tidb, what)(*partitioned)


STEPS = st.lists(
    st.tuples(st.sampled_from(STATEMENTS), st.integers(0, 7), st.integers(1, 3)), min_size=1, max_size=40
)


def seen(history: SchemaHistory, ts: int):
    """Return the same as `physical()` of the model."""
    tables = {table.name: table for table in history.tables(ts)}
    return {p.id: (p.schema, tables[f"{p.schema}.{p.table}"].info) for p in history.physical_tables(ts)}


@given(STEPS, st.integers(0, 40), st.data())
@settings(max_examples=150, deadline=None)
def test_at_any_ts_the_history_is_what_the_jobs_before_left(tmp_path_factory, steps, start, data):
    tidb = Tidb()
    directory = tmp_path_factory.mktemp("history")
    stores = [Store(directory / "a", window_bytes=4_000), Store(directory / "b", window_bytes=4_000)]
    history = SchemaHistory(stores[0], 0)
    restarted = None
    ts, truth, followed = 0, {0: {}}, {}
    try:
        for number, (what, pick, pause) in enumerate(steps):
            if number == start:
                restarted = SchemaHistory(stores[1], ts, tidb.snapshot(), cache_bytes=1)
            job = run(tidb, what, pick)
            if job is None:
                continue
            ts += pause
            applied = history.apply(job, ts)
            if restarted is not None:
                assert restarted.apply(job, ts) == applied
            truth[ts] = tidb.physical()
            for left in applied.removed:
                del followed[left.id]
            followed.update({p.id: p for p in applied.added})
            assert followed == {
                id_: Physical(id_, schema, info.name) for id_, (schema, info) in truth[ts].items()
            }
        pruned = data.draw(st.integers(0, ts))
        for asked in range(pruned, ts + 3):
            if asked == pruned:
                history.prune(pruned)
            wanted = truth[max(known for known in truth if known <= asked)]
            assert seen(history, asked) == wanted
            for id_ in {id_ for tables in truth.values() for id_ in tables}:
                table = history.table_at(id_, asked)
                assert (table and (table.schema, table.info)) == wanted.get(id_)
        if restarted is not None:
            assert seen(restarted, ts) == truth[max(truth)]
    finally:
        for store in stores:
            store.close()


# --- bounds --------------------------------------------------------------------------------------


def test_what_was_pruned_may_not_be_asked_for(make_history):
    history = make_history(ts=10)
    history.prune(20)
    with pytest.raises(InvariantViolated, match=r"the schema at ts 19 .* only from 20"):
        history.table_at(1, 19)
    assert history.table_at(1, 20) is None


def test_a_job_that_was_not_applied_has_no_changes(make_history):
    with pytest.raises(InvariantViolated, match=r"DDL job 7 at ts 30 wasn't applied"):
        make_history(ts=10).changes(7, 30)


def test_views_and_tables_of_tidb_itself_are_left_out(make_history):
    tidb = Tidb()
    history = make_history()
    history.apply(tidb.create_database("mysql"), 1)
    history.apply(tidb.create_table("mysql", "user"), 2)
    history.apply(tidb.create_database("shop"), 3)
    view = tidb.create_view("shop", "v")
    history.apply(view, 4)
    assert not holds_rows(view.table_info())
    assert list(history.tables(5)) == []
    assert history.physical_tables(5) == []


def test_pruned_versions_leave_the_disk(make_history):
    """Of two tables one has a version at each ts. The other's only one is moved from window to window."""
    tidb = Tidb()
    tidb.create_database("shop")
    tidb.create_table("shop", "a")
    tidb.create_table("shop", "b")
    history = make_history(0, tidb.snapshot())
    store, most, written = history._infos._store, 0, 0
    for ts in range(1, 6001):
        history.apply(tidb.comment("shop", "a", "x" * (1000 + ts % 7)), ts)
        written += len(encode_table_info(tidb.tables["shop", "a"]))
        if ts % 1000 == 0:
            assert {table.name for table in history.tables(ts - 999)} == {"shop.a", "shop.b"}
            history.prune(ts)
            assert history._infos.bytes < 5_000, "two infos"
            assert store.bytes < 1_100_000, "the current window at most"
        most = max(most, store.bytes)
    assert written > 9_000_000
    assert 1_000_000 < most < 3_500_000, "what a thousand versions take, and two batches"
    assert history._jobs == {}
    assert {table.name for table in history.tables(6000)} == {"shop.a", "shop.b"}


def test_what_is_gone_leaves_the_memory(make_history):
    tidb = Tidb()
    history = make_history()
    for ts, job in enumerate(
        (
            tidb.create_database("shop"),
            tidb.create_table("shop", "p", partitions=2),
            tidb.create_table("shop", "t"),
            tidb.exchange_partition(("shop", "p"), ("shop", "t")),
            tidb.drop_partition("shop", "p"),
            tidb.drop_table("shop", "p"),
        ),
        start=1,
    ):
        history.apply(job, ts)
    history.prune(6)
    exchanged = tidb.tables["shop", "t"].id
    assert history.table_at(exchanged, 6).name == "shop.t"
    assert list(history._versions) == [exchanged]
    assert history._owners == {}
    history.apply(tidb.drop_database("shop"), 7)
    history.prune(7)
    assert history._versions == history._databases == history._cache._infos == {}
    assert history._infos.bytes == 0


def test_a_partitioned_table_has_no_rows_under_its_own_id(make_history):
    tidb = Tidb()
    history = make_history()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "p", partitions=1), 2)
    info = tidb.tables["shop", "p"]
    assert history.table_at(info.id, 2) is None
    assert history.table_at(info.partition.definitions[0].id, 2).info == info


def test_one_thread_reads_while_another_applies_and_prunes(make_history):
    """Each version says in its comment since when it is."""
    tidb = Tidb()
    tidb.create_database("shop")
    tidb.create_table("shop", "a")
    table_id = tidb.tables["shop", "a"].id
    history = make_history(0, tidb.snapshot(), cache_bytes=3_000)
    applied = [0]
    wrong: list[object] = []

    def read():
        while applied[0] < 2000:
            ts = applied[0]
            try:
                table = history.table_at(table_id, ts)
            except InvariantViolated:
                continue  # pruned meanwhile
            if ts and int(table.info.comment) != ts:
                wrong.append((ts, table))

    readers = [Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for ts in range(1, 2001):
        history.apply(tidb.comment("shop", "a", str(ts)), ts)
        applied[0] = ts
        history.prune(ts - 3)
    for reader in readers:
        reader.join()
    assert wrong == []


def test_ten_thousand_tables_take_less_than_a_kilobyte_each(make_history):
    tidb = Tidb()
    tidb.create_database("shop")
    for number in range(10_000):
        tidb.create_table("shop", f"table_number_{number}")
    snapshot = tidb.snapshot()
    size = len(encode_table_info(tidb.tables["shop", "table_number_0"]))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        history = make_history(0, ((info, iter(tables)) for info, tables in snapshot), cache_bytes=100 * size)
        assert len(history.physical_tables(1)) == 10_000
        for _ in history.tables(1):
            pass
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    unwritten = 1 << 20
    assert used < 10_000 * 800 + unwritten + 100 * 10 * size
    assert 90 < len(history._cache._infos) <= 100
