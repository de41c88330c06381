"""Mounting of TiKV's changes, as the sorter releases them, to items."""

from __future__ import annotations

from functools import partial
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.blocks import block_of
from tidemill.codec.tidb.job import Job
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.layout import build_row
from tidemill.codec.tidb.load_entry import LoadedRows, NewTable, load_change
from tidemill.codec.tidb.table_info import DbInfo, decode_table_info
from tidemill.errors import InvariantViolated, SourceError
from tidemill.events import DELETE, PUT, WHOLE, Chunk, CreateTable, Ddl, Item, KvChange, Sorted
from tidemill.mounter import SchemaHistory, TidbMounter
from tidemill.store.store import Store
from tidemill.testing import cases
from tidemill.testing.tidb_model import Tidb, change_of

from ...codec.tidb.ddl_vectors import VECTORS
from ...codec.tidb.ddl_vectors import lines as vector_lines

pytestmark = pytest.mark.usefixtures("decoder")


class Bench:
    """A TiDB with a schema and its mounter; every job is known to the history before the mounter sees it,
    as in a feed."""

    def __init__(self, store: Store, *, decodes: bool) -> None:
        self._decodes = decodes
        self.tidb = Tidb()
        self.history = SchemaHistory(store, 0)
        self.ts = 0
        self.do(self.tidb.create_database("shop"))
        self.do(self.tidb.create_database("depot"))

    def do(self, job: Job, ts: int = 0) -> KvChange:
        """A job that ends at the next ts."""
        self.ts = ts or self.ts + 10
        self.history.apply(job, self.ts)
        return change_of(job, self.ts)

    def mounter(self, *patterns: str, **options) -> TidbMounter:
        tables = TablePatterns.parse(patterns or ["shop.*"])
        return TidbMounter(self.history, "tidb", tables, decodes=self._decodes, **options)

    def id_of(self, name: str) -> int:
        return self.tidb.tables[tuple(name.split("."))].id


@pytest.fixture(params=[True, False], ids=["decoded", "raw"])
def bench(tmp_path, request):
    store = Store(tmp_path / "store")
    yield Bench(store, decodes=request.param)
    store.close()


def row(*values: int | None) -> bytes:
    """Return a row's value: the columns after the key, which have the ids 2, 3 and so on."""
    cells = {
        number: value.to_bytes(8, "little") for number, value in enumerate(values, 2) if value is not None
    }
    return build_row(cells, [number for number, value in enumerate(values, 2) if value is None])


def put(table: int, key: int, value: bytes, ts: int, old: bytes = b"", start_ts: int = 0) -> KvChange:
    return KvChange(ts, start_ts or ts - 1, PUT, record_key(table, key), value, old)


def gone(table: int, key: int, ts: int, old: bytes = b"", start_ts: int = 0) -> KvChange:
    return KvChange(ts, start_ts or ts - 1, DELETE, record_key(table, key), b"", old)


def released(changes: list[KvChange], resolved: int, continues: bool = False) -> Sorted:
    return Sorted(block_of(changes), resolved, continues)


def told(items: list[Item]) -> list[str]:
    """An item in a line: where it is, its rows, and @position if it ends."""
    lines = []
    for item in items:
        end = f" @{item.position}" if item.last else " ..."
        assert bool(item.position) == item.last
        assert item.source == "tidb"
        if isinstance(item, Ddl):
            lines.append(f"{item.start_ts}-{item.commit_ts} {item.full_name}: {item.query}{end}")
        else:
            rows = [f"{r.op} {r.table.full_name} {r.before or ''}>{r.after or ''}" for r in item.rows]
            assert {(r.commit_ts, r.start_ts) for r in item.rows} <= {(item.commit_ts, item.start_ts)}
            lines.append(f"{item.start_ts}-{item.commit_ts} {', '.join(rows)}{end}")
    return lines


# --- rows ----------------------------------------------------------------------------------------


def test_puts_and_deletes_are_inserts_updates_and_deletes(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    bench.do(bench.tidb.add_column("shop", "a", "n"))
    a = bench.id_of("shop.a")
    changes = [
        put(a, 1, row(10), 101),
        put(a, 1, row(11), 102, old=row(10)),
        put(a, 2, row(None), 102),
        gone(a, 1, 103, old=row(11)),
    ]
    assert told(bench.mounter().mount(released(changes, 103))) == [
        "100-101 insert shop.a >(1, 10) @101",
        "101-102 update shop.a (1, 10)>(1, 11), insert shop.a >(2, None) @102",
        "102-103 delete shop.a (1, 11)> @103",
    ]


def test_a_row_made_and_removed_in_one_transaction_is_nothing(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    mounter = bench.mounter()
    assert mounter.mount(released([gone(a, 1, 101)], 101)) == []
    assert told(mounter.mount(released([gone(a, 1, 102), put(a, 2, row(), 102)], 102))) == [
        "101-102 insert shop.a >(2,) @102"
    ]


def test_rows_of_partitions_are_rows_of_their_table(bench):
    bench.do(bench.tidb.create_table("shop", "p", partitions=2))
    first, second = bench.tidb.tables["shop", "p"].partition.definitions
    changes = [put(first.id, 1, row(), 101), put(second.id, 2, row(), 101)]
    assert told(bench.mounter().mount(released(changes, 101))) == [
        "100-101 insert shop.p >(1,), insert shop.p >(2,) @101"
    ]


def test_filtered_tables_are_not_even_read(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    bench.do(bench.tidb.create_table("depot", "b"))
    a, b = bench.id_of("shop.a"), bench.id_of("depot.b")
    changes = [put(b, 1, b"not a row", 101), put(a, 1, row(), 101), put(b, 1, b"not a row", 102)]
    assert told(bench.mounter().mount(released(changes, 102))) == ["100-101 insert shop.a >(1,) @101"]


def test_rows_of_many_tables_stay_in_their_order(bench):
    for name in "abc":
        bench.do(bench.tidb.create_table("shop", name))
    ids = [bench.id_of(f"shop.{name}") for name in "abc"]
    changes = [put(ids[n % 3], n, row(), 100 + n // 5, start_ts=50) for n in range(50)]
    for readers in (1, 2, 100):
        mounter = bench.mounter(readers=readers)
        items = mounter.mount(released(changes, 200))
        assert len(mounter._readers) <= readers
        rows = [r.after[0] for item in items for r in item.rows]
        assert rows == sorted(range(50), key=lambda n: (n // 5, n % 3))
        assert [len(item.rows) for item in items] == [5] * 10


def test_the_commits_of_a_real_tidb(tmp_path, rewrite):
    lines = list(vector_lines("commits", "v8.1.0"))
    tables = [line for line in lines if line["kind"] == "table"]
    infos = [decode_table_info(line["table_info_json"].encode()) for line in tables]
    store = Store(tmp_path / "store")
    history = SchemaHistory(store, 0, [(DbInfo(id=tables[0]["db_id"], name="feed"), infos)])
    mounter = TidbMounter(history, "tidb", TablePatterns.parse(["feed.*"]))
    found = []
    for line in lines:
        if line["kind"] == "commit":
            changes = sorted(change_in(line, entry) for entry in line["entries"])
            rows = [r for item in mounter.mount(released(changes, line["commit_ts"])) for r in item.rows]
            images = [f"{r.op} {r.table.name} {r.before or ''}>{r.after or ''}" for r in rows]
            found.append(("\n".join(line["sql"]), "\n".join(images)))
    store.close()
    path = Path(__file__).parent / "cases/commits-v8.1.0.txt"
    cases.expect_all(path, found, rewrite)


def change_in(line: dict, entry: dict) -> KvChange:
    images = (bytes.fromhex(entry[field] or "") for field in ("key_hex", "value_hex", "old_value_hex"))
    return KvChange(line["commit_ts"], line["start_ts"], PUT if entry["op"] == "PUT" else DELETE, *images)


# --- transactions --------------------------------------------------------------------------------


def test_transactions_of_one_commit_ts_are_told_apart(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    changes = [put(a, 1, row(), 101, start_ts=90), put(a, 2, row(), 101, start_ts=95), put(a, 3, row(), 102)]
    assert told(bench.mounter().mount(released(changes, 102))) == [
        "90-101 insert shop.a >(1,) @101",
        "95-101 insert shop.a >(2,) @101",
        "101-102 insert shop.a >(3,) @102",
    ]


def test_a_transaction_larger_than_a_batch_comes_in_parts(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    mounter = bench.mounter()
    assert told(mounter.mount(released([put(a, 1, row(), 101)], 100, continues=True))) == [
        "100-101 insert shop.a >(1,) ..."
    ]
    assert told(mounter.mount(released([put(a, 2, row(), 101)], 101))) == ["100-101 insert shop.a >(2,) @101"]


def test_what_went_on_and_then_did_not_is_ended(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    bench.do(bench.tidb.create_table("depot", "b"))
    a, b = bench.id_of("shop.a"), bench.id_of("depot.b")
    started = released([put(a, 1, row(), 101)], 100, continues=True)
    for following, wanted in (
        (released([], 101), ["100-101  @101"]),
        (released([put(b, 2, row(), 101)], 101), ["100-101  @101"]),
        (released([put(a, 2, row(), 102)], 102), ["100-101  @101", "101-102 insert shop.a >(2,) @102"]),
        (released([put(b, 2, row(), 101)], 100, continues=True), []),
        (
            released([put(a, 2, row(), 101, start_ts=105)], 101),
            ["100-101  @101", "105-101 insert shop.a >(2,) @101"],
        ),
    ):
        mounter = bench.mounter()
        assert told(mounter.mount(started)) == ["100-101 insert shop.a >(1,) ..."]
        assert told(mounter.mount(following)) == wanted


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("aaab"), st.integers(0, 2)), min_size=1, max_size=30
)


@given(STEPS, st.sets(st.integers(1, 29)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_wherever_it_is_cut_the_same_comes_out(steps, cuts, empty):
    """Changes with a step in commit ts, a table (b isn't followed) and a start ts."""
    changes, ts = [], 101
    for number, (step, table, start) in enumerate(steps):
        ts += step
        make = partial(put, value=row()) if number % 3 else gone
        old = row() if number % 2 else b""
        changes.append(make({"a": 7, "b": 8}[table], number, ts=ts, old=old, start_ts=50 + start))
    changes.sort()
    bench = Mounting()
    whole = bench.mount([released(changes, ts)])
    messages = []
    bounds = [0, *sorted(cut for cut in cuts if cut < len(changes)), len(changes)]
    for start, end in pairwise(bounds):
        continues = end < len(changes) and changes[end].commit_ts == changes[end - 1].commit_ts
        messages.append(released(changes[start:end], changes[end - 1].commit_ts - continues, continues))
        if empty and not continues:
            messages.append(released([], ts))
    parts = bench.mount(messages)
    assert joined(parts) == joined(whole) == joined(bench.mount(messages, decodes=False))
    for _, items in groupby(parts, key=lambda item: (item.commit_ts, item.start_ts)):
        *before, last = items
        assert last.last
        assert last.position == str(last.commit_ts)
        assert not any(item.last or item.position for item in before)


class Mounting:
    """A mounter over a history of two tables, without a store: all fits into the batch in memory."""

    def __init__(self) -> None:
        tidb = Tidb(first_id=6)
        a, b = tidb._new_table("a", 0), tidb._new_table("b", 0)
        databases = [(DbInfo(id=1, name="shop"), [a]), (DbInfo(id=2, name="depot"), [b])]
        self.history = SchemaHistory(Store(VECTORS / "never written"), 0, databases)

    def mount(self, messages: list[Sorted], *, decodes: bool = True) -> list[Item]:
        mounter = TidbMounter(self.history, "tidb", TablePatterns.parse(["shop.*"]), decodes=decodes)
        return [item for message in messages for item in mounter.mount(message)]


def joined(items: list[Item]) -> dict:
    rows: dict = {}
    for item in items:
        if item.rows:
            rows.setdefault((item.commit_ts, item.start_ts), []).extend(item.rows)
    return rows


# --- schema changes ------------------------------------------------------------------------------


def test_rows_have_the_schema_of_their_ts(bench):
    """All of it in one batch: rows before, between and after two changes of the table."""
    made = bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    changes = [made, put(a, 1, row(), 31)]
    bench.ts = 40
    changes += [bench.do(bench.tidb.add_column("shop", "a", "n")), put(a, 1, row(5), 51, old=row())]
    bench.ts = 60
    changes += [bench.do(bench.tidb.add_column("shop", "a", "m", at=1)), put(a, 1, row(5, 6), 71, old=row(5))]
    bench.ts = 80
    changes += [bench.do(bench.tidb.drop_column("shop", "a", "n")), put(a, 1, row(5, 7), 91, old=row(5, 6))]
    wanted = [
        "29-30 shop.a: create table a (id bigint primary key) @30",
        "30-31 insert shop.a >(1,) @31",
        "49-50 shop.a: alter table a add column n bigint @50",
        "50-51 update shop.a (1, None)>(1, 5) @51",
        "69-70 shop.a: alter table a add column m bigint @70",
        "70-71 update shop.a (1, None, 5)>(1, 6, 5) @71",
        "89-90 shop.a: alter table a drop column n @90",
        "90-91 update shop.a (1, 6)>(1, 7) @91",
    ]
    assert told(bench.mounter().mount(released(changes, 100))) == wanted
    mounter = bench.mounter()
    assert [line for c in changes for line in told(mounter.mount(released([c], c.commit_ts)))] == wanted


def test_a_schema_change_comes_before_transactions_of_its_ts(bench):
    """A commit in one phase may have its ts; at that ts the table has its new columns."""
    made = bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    bench.ts = 40
    added = bench.do(bench.tidb.add_column("shop", "a", "n"))
    first = [put(a, 1, row(), 31), put(a, 2, row(5), 50, start_ts=20), put(a, 3, row(6), 50, start_ts=45)]
    assert told(bench.mounter().mount(released([made, *first, added], 50))) == [
        "29-30 shop.a: create table a (id bigint primary key) @30",
        "30-31 insert shop.a >(1,) @31",
        "20-50 shop.a: alter table a add column n bigint ...",
        "20-50 insert shop.a >(2, 5) @50",
        "45-50 insert shop.a >(3, 6) @50",
    ]


def test_a_table_is_created_for_a_load_before_transactions_of_that_ts(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    bench.do(bench.tidb.create_table("shop", "b"))
    a, b = bench.id_of("shop.a"), bench.id_of("shop.b")
    rows = [put(a, 1, row(), 101, start_ts=90), put(b, 2, row(), 101, start_ts=95)]
    made = load_change(NewTable(a), 101)
    created, *others = bench.mounter().mount(released([made, *rows], 101))
    assert isinstance(created, Ddl)
    assert [type(action) for action in created.actions] == [CreateTable]
    assert told(others) == ["90-101 insert shop.a >(1,) @101", "95-101 insert shop.b >(2,) @101"]


def test_a_chunk_comes_after_transactions_of_its_ts(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    chunk = Chunk("shop.a", WHOLE, ())
    changes = [
        put(a, 1, row(), 101, start_ts=90),
        load_change(LoadedRows(chunk), 101),
        put(a, 1, row(), 101, start_ts=101),
    ]
    before, *loaded = bench.mounter().mount(released(changes, 101))
    assert before.chunk is None
    assert [item.chunk.table for item in loaded] == ["shop.a"] * len(loaded)
    assert loaded[-1].chunk == chunk


def test_an_exchanged_partition_gives_its_rows_to_the_other_table(bench):
    bench.do(bench.tidb.create_table("shop", "p", partitions=1))
    bench.do(bench.tidb.create_table("shop", "t"))
    partition = bench.tidb.tables["shop", "p"].partition.definitions[0].id
    table = bench.id_of("shop.t")
    mounter = bench.mounter()
    changes = [put(partition, 1, row(), 101), put(table, 2, row(), 101)]
    assert told(mounter.mount(released(changes, 101))) == [
        "100-101 insert shop.p >(1,), insert shop.t >(2,) @101"
    ]
    change = bench.do(bench.tidb.exchange_partition(("shop", "p"), ("shop", "t")), 110)
    loads = mounter.mount(released([change], 110))
    assert [ddl.full_name for ddl in loads] == ["shop.p", "shop.t"]
    assert all("EXCHANGE PARTITION" in ddl.reload for ddl in loads)
    changes = [put(partition, 1, row(), 121), put(table, 2, row(), 121)]
    assert told(mounter.mount(released(changes, 121))) == [
        "120-121 insert shop.t >(1,), insert shop.p >(2,) @121"
    ]


def test_a_job_that_does_nothing_to_followed_tables_is_no_item(bench):
    bench.do(bench.tidb.create_table("shop", "a"))
    changes = [
        bench.do(bench.tidb.comment("shop", "a", "hello")),
        bench.do(bench.tidb.create_table("depot", "b")),
    ]
    gone_by = KvChange(bench.ts + 1, bench.ts, DELETE, changes[0].key, b"")
    assert bench.mounter().mount(released([*changes, gone_by], bench.ts + 1)) == []


def test_a_job_about_several_tables_is_one_step(bench):
    change = bench.do(bench.tidb.create_tables("shop", ["a", "b"]))
    assert told(bench.mounter().mount(released([change], bench.ts))) == [
        "29-30 shop.a: create tables ...",
        "29-30 shop.b: create tables @30",
    ]


# --- what can't be mounted -----------------------------------------------------------------------


def test_a_row_of_an_unknown_table_is_an_error_with_id_ts_and_key(bench):
    with pytest.raises(SourceError, match=r"a row of table id 999 at ts 101, .* its key is 74800000000000"):
        bench.mounter().mount(released([put(999, 1, row(), 101)], 101))


def test_a_row_before_its_table_was_made_is_an_error(bench):
    bench.do(bench.tidb.create_table("shop", "a"), 200)
    with pytest.raises(SourceError, match=r"a row of table id \d+ at ts 199"):
        bench.mounter().mount(released([put(bench.id_of("shop.a"), 1, row(), 199)], 199))


@pytest.mark.parametrize("broken", [b"\x80\x00\x05\x00", b"\xfe"])
def test_a_row_that_can_not_be_read_is_an_error_with_table_ts_and_key(bench, broken):
    bench.do(bench.tidb.create_table("shop", "a"))
    a = bench.id_of("shop.a")
    changes = [put(a, n, broken if n == 3 else row(), 100 + n) for n in range(1, 6)]
    key = changes[2].key.hex()
    with pytest.raises(SourceError, match=rf"at ts 103 the row of shop\.a with the key {key} can't be read"):
        told(bench.mounter().mount(released(changes, 110)))
    changes = [gone(a, 3, 103, old=broken)]
    with pytest.raises(SourceError, match=rf"at ts 103 the row of shop\.a with the key {key} can't be read"):
        told(bench.mounter().mount(released(changes, 110)))


def test_a_job_that_the_history_does_not_know_is_a_bug(bench):
    change = change_of(bench.tidb.create_table("shop", "a"), 100)
    with pytest.raises(InvariantViolated, match=r"DDL job \d+ at ts 100 wasn't applied"):
        bench.mounter().mount(released([change], 100))
