"""The emulated TiDB: what it writes is what a real one writes, and its transactions keep their promises."""

from __future__ import annotations

import gzip
import json
from itertools import count
from pathlib import Path

import pytest

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import DONE, QUEUEING, SYNCED
from tidemill.codec.tidb.job_entry import read_job
from tidemill.codec.tidb.json import decode_json
from tidemill.codec.tidb.key import decode_record_key, record_key
from tidemill.codec.tidb.layout import cells_of, layout_of
from tidemill.codec.tidb.old_row import split_row
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.table_info import decode_table_info
from tidemill.emulator import Rejected
from tidemill.emulator.sql.sql import Tidb
from tidemill.events import PUT, KvChange

VECTORS = Path(__file__).parents[1] / "vectors"


class Recorded(Tidb):
    """Keeps what is written."""

    def __init__(self, **options):
        self.written = []
        super().__init__(1, **options)

    def write(self, mutations, *, start_ts=0):
        commit_ts = super().write(mutations, start_ts=start_ts)
        self.written.append((commit_ts, mutations))
        return commit_ts

    def jobs(self):
        """(commit ts, job) of each put of a job that waits or runs."""
        found = []
        for commit_ts, mutations in self.written:
            for op, key, value in mutations:
                if op != "delete":
                    job = read_job(KvChange(commit_ts, commit_ts, PUT, key, value))
                    if job is not None:
                        found.append((commit_ts, job))
        return found


@pytest.fixture
def tidb():
    with Recorded() as tidb:
        tidb.execute("create database shop")
        tidb.execute("use shop")
        yield tidb


# --- as a real TiDB ------------------------------------------------------------------------------

UNKNOWN = ("expr_index", "mv_index", "auto_random", "part_list", "part_key")
"""Parts of the names of tables that the emulator can't make."""

NEED_WEIGHTS = ("gbk_bin_pk", "pk_varchar_f", "pk_unicode", "pk_0900")


def recorded_tables(file):
    """(CREATE TABLE, TableInfo, rows) of tables that weren't altered."""
    tables: list = []
    with gzip.open(VECTORS / f"{file}-v8.1.0.jsonl.gz", "rt") as lines:
        for line in map(json.loads, lines):
            if text := line.get("table_info_json"):
                tables.append((line, decode_table_info(text.encode()), []))
            tables[-1][2].append((bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"])))
    left_out = (*UNKNOWN, *NEED_WEIGHTS)
    return [
        (line["create_sql"], info, rows)
        for line, info, rows in tables
        if "after_sql" not in line and not any(word in line["table"] for word in left_out)
    ]


@pytest.mark.parametrize(("file", "row_format"), [("rows", 1), ("rows", 2), ("rows_checksum", 2)])
def test_rows_are_the_bytes_that_tidb_wrote(file, row_format):
    count = 0
    with Tidb(1, row_format=row_format, row_checksum=file == "rows_checksum") as tidb:
        tidb.execute("create database vec")
        tidb.execute("use vec")
        for sql, info, rows in recorded_tables(file):
            if (rows[0][1][0] == 0x80) != (row_format == 2):
                continue
            tidb.execute(sql)
            for key, value in rows:
                with tidb.transaction() as txn:
                    _insert(tidb, txn, info, key, value)
                made = tidb.read(_moved(tidb, info, key), txn.commit_ts)
                assert made == value, (sql, key.hex())
                count += 1
    assert count > 80


def _insert(tidb, txn, info, key, value):
    decoder = RowDecoder("vec", info)
    (row,) = decoder.decode([(key, value)])
    names = [column.name for column in decoder.table.columns]
    values = dict(zip(names, row, strict=True))
    for column in decoder.table.columns:
        if column.kind == "json" and values[column.name] is not None:
            values[column.name] = _tree(info, column.name, value)
    _, handle = decode_record_key(key)
    hidden = not (info.pk_is_handle or info.is_common_handle)
    txn.insert(f"vec.{info.name}", values, handle if hidden else None)


def _tree(info, name, value):
    """The text of a JSON has lost what bytes and dates there are in it."""
    (column,) = [column for column in info.columns if column.name == name]
    if value[0] == 0x80:
        return decode_json(cells_of(layout_of(value), value)[column.id])
    return decode_json(split_row(value)[column.id][1])


def _moved(tidb, info, key):
    """The key with the id that the emulator gave the table or its partition."""
    old, handle = decode_record_key(key)
    mine = tidb.schema.table(f"vec.{info.name}").info
    ids = {info.id: mine.id}
    if info.partition:
        theirs = zip(info.partition.definitions, mine.partition.definitions, strict=True)
        ids |= {their.id: our.id for their, our in theirs}
    return record_key(ids[old], handle)


@pytest.mark.parametrize("file", ["rows"])
def test_tables_are_described_as_tidb_describes_them(file):
    with Tidb(1) as tidb:
        tidb.execute("create database vec")
        tidb.execute("use vec")
        for sql, info, _ in recorded_tables(file):
            if info.name.startswith("t_uniq"):  # flags of its indexes' columns, which change no row
                continue
            tidb.execute(sql)
            made = tidb.schema.table(f"vec.{info.name}").info
            assert made.columns == info.columns
            assert made.indexes == info.indexes
            assert made.is_common_handle == info.is_common_handle
            assert made.pk_is_handle == info.pk_is_handle
            assert (made.charset, made.collation) == (info.charset, info.collation)


def real_states(version, sql):
    """The states that a real job went through, with whether it was done together with the schema change."""
    found = []
    with gzip.open(VECTORS / f"ddl_events-{version}.jsonl.gz", "rt") as lines:
        for line in map(json.loads, lines):
            if line.get("sql") == sql:
                found += _states(
                    (int(line["commit_ts"]), entry["op"].lower(), entry["key_hex"], entry["value_hex"])
                    for entry in line["entries"]
                )
    return found


def _states(entries):
    found = []
    for commit_ts, op, key, value in entries:
        raw = bytes.fromhex(key)
        if op == "del" or value is None:
            continue
        job = read_job(KvChange(commit_ts, commit_ts, PUT, raw, bytes.fromhex(value)))
        if job is not None:
            found.append((op, job.state, job.type))
    return found


@pytest.mark.parametrize("job_table", [True, False])
def test_a_job_goes_the_way_that_tidbs_jobs_go(job_table):
    version = "v8.1.0" if job_table else "v6.1.0"
    with Recorded(job_table=job_table) as tidb:
        tidb.execute("create database d1")
        mine = [
            (op, job.state, job.type)
            for commit_ts, mutations in tidb.written
            for op, key, value in mutations
            if op != "delete" and (job := read_job(KvChange(commit_ts, 0, PUT, key, value)))
        ]
    assert mine == real_states(version, "create database d1")


def test_the_schema_change_is_in_the_transaction_that_says_done(tidb):
    tidb.written.clear()
    ts = tidb.execute("create table t (id int primary key)")
    states = [(commit_ts == ts, job.state) for commit_ts, job in tidb.jobs()]
    assert states == [(False, QUEUEING), (False, QUEUEING), (True, DONE)]
    (together,) = [mutations for commit_ts, mutations in tidb.written if commit_ts == ts]
    info = tidb.schema.table("shop.t").info
    database = tidb.schema.database("shop")
    key = meta.hash_key(meta.database_field(database.id), meta.table_field(info.id))
    assert key in {mutation[1] for mutation in together}
    assert decode_table_info(tidb.read(key, ts)) == info
    job = tidb.jobs()[-1][1]
    assert job.table_info() == info
    history = meta.hash_key(meta.DDL_HISTORY, meta.history_field(job.id))
    assert b'"state":%d' % SYNCED in tidb.read(history, tidb.tso())


# --- schema --------------------------------------------------------------------------------------


def columns(tidb, name):
    return [column.name for column in tidb.schema.table(name).info.columns]


def test_columns_come_and_go_and_old_rows_have_the_default(tidb):
    tidb.execute("create table t (id int primary key, a int)")
    with tidb.transaction() as txn:
        txn.insert("shop.t", (1, 10))
    tidb.execute(
        "alter table t add column b varchar(10) not null default 'x' first, add column c int after id"
    )
    assert columns(tidb, "shop.t") == ["b", "id", "c", "a"]
    with tidb.transaction() as txn:
        assert txn.get("shop.t", 1) == ("x", 1, None, 10)
        txn.insert("shop.t", {"id": 2, "a": 20, "c": 3, "b": "y"})
    tidb.execute("alter table t drop column a")
    with tidb.transaction() as txn:
        assert txn.get("shop.t", 2) == ("y", 2, 3)
    tidb.execute("alter table t change column c d bigint")
    assert columns(tidb, "shop.t") == ["b", "id", "d"]
    assert [job.type for _, job in tidb.jobs() if job.state == DONE][2:] == [
        Action.MULTI_SCHEMA_CHANGE,
        Action.DROP_COLUMN,
        Action.MODIFY_COLUMN,
    ]


def test_a_truncated_table_is_another_table_of_the_same_name(tidb):
    tidb.execute("create table t (id int primary key)")
    with tidb.transaction() as txn:
        txn.insert("shop.t", (1,))
    before = tidb.schema.table("shop.t").info.id
    tidb.execute("truncate table t")
    assert tidb.schema.table("shop.t").info.id != before
    with tidb.transaction() as txn:
        assert txn.get("shop.t", 1) is None
    job = tidb.jobs()[-1][1]
    assert (job.table_id, job.table_info().id) == (before, tidb.schema.table("shop.t").info.id)


def test_tables_are_renamed_also_into_another_database(tidb):
    tidb.execute("create database other")
    tidb.execute("create table a (id int primary key)")
    tidb.execute("create table b (id int primary key)")
    first, second = tidb.schema.table("shop.a").info.id, tidb.schema.table("shop.b").info.id
    tidb.execute("rename table a to c, b to a, c to b")
    assert tidb.schema.table("shop.a").info.id == second
    assert tidb.schema.table("shop.b").info.id == first
    tidb.execute("alter table a rename to other.a2")
    assert tidb.schema.table("other.a2").info.id == second
    assert tidb.jobs()[-1][1].schema_id == tidb.schema.database("other").id


def test_partitions_have_keys_of_their_own(tidb):
    tidb.execute(
        "create table t (id int primary key, v int) partition by range (id)"
        " (partition p0 values less than (10), partition p1 values less than (20))"
    )
    with tidb.transaction() as txn:
        txn.insert("shop.t", (5, 1))
        txn.insert("shop.t", (15, 1))
        txn.insert("shop.t", (10, 1))
        with pytest.raises(ValueError, match="no partition for 25"):
            txn.insert("shop.t", (25, 1))
    info = tidb.schema.table("shop.t").info
    ids = [part.id for part in info.partition.definitions]
    assert tidb.read(record_key(ids[0], 5), txn.commit_ts)
    assert tidb.read(record_key(ids[1], 15), txn.commit_ts)
    assert tidb.read(record_key(ids[1], 10), txn.commit_ts)
    tidb.execute("alter table t add partition (partition p2 values less than maxvalue)")
    tidb.execute("alter table t drop partition p0")
    with tidb.transaction() as txn:
        txn.insert("shop.t", (25, 1))
        txn.update("shop.t", 15, {"v": 2})
        assert txn.get("shop.t", 5) is None
        assert txn.get("shop.t", 15) == (15, 2)


def test_partitions_are_exchanged_and_reorganized_and_tables_recovered(tidb):
    parts = "(partition p0 values less than (10), partition p1 values less than maxvalue)"
    tidb.execute(f"create table t (id int primary key) partition by range (id) {parts}")
    tidb.execute("create table other (id int primary key)")
    with tidb.transaction() as txn:
        for number in (1, 2, 11):
            txn.insert("shop.t", (number,))
        txn.insert("shop.other", (7,))
    tidb.execute("alter table t exchange partition p0 with table other")
    assert [sorted(tidb.rows(f"shop.{name}")) for name in ("t", "other")] == [[(7,), (11,)], [(1,), (2,)]]
    tidb.execute("alter table t reorganize partition p0, p1 into (partition all_ values less than maxvalue)")
    (whole,) = tidb.schema.table("shop.t").info.partition.definitions
    assert tidb.read(record_key(whole.id, 11), tidb.tso()) is not None
    assert sorted(tidb.rows("shop.t")) == [(7,), (11,)]
    tidb.execute("drop table other")
    tidb.execute("flashback table other to back")
    assert sorted(tidb.rows("shop.back")) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("alter table shop.parted exchange partition a with table shop.parted", "parted has some"),
        ("alter table shop.parted reorganize partition c into (partition d values less than (3))", "c"),
        ("alter table shop.parted drop primary key", "no primary key that isn't clustered"),
        ("recover table shop.parted", "already"),
        ("recover table shop.lost", "no table shop.lost was dropped"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused(tidb, sql, why):
    parts = "(partition a values less than (3), partition b values less than (5))"
    tidb.execute(f"create table parted (id int primary key) partition by range (id) {parts}")
    with pytest.raises(ValueError, match=why):
        tidb.execute(sql)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select 1", "doesn't know this statement"),
        ("create table t (id geometry)", "type geometry"),
        ("create table shop.t (id int, id2 int primary key", "instead of 'the end'"),
        ("drop table nothing", "there is no table shop.nothing"),
        ("create database shop", "already"),
        (
            "create table shop.x (id int primary key) partition by list (id) (partition a values in (1))",
            "RANGE",
        ),
    ],
)
def test_what_it_does_not_know_is_refused(tidb, sql, why):
    count = len(tidb.written)
    with pytest.raises(ValueError, match=why):
        tidb.execute(sql)
    assert len(tidb.written) == count


def test_a_change_of_a_key_that_rewrites_rows_is_refused(tidb):
    tidb.execute("create table t (id int primary key, a int)")
    with pytest.raises(ValueError, match="would be rewritten"):
        tidb.execute("alter table t modify column id varchar(10)")


def test_a_column_is_rewritten_while_transactions_write_it(tidb):
    """In the states of TiDB: delete only, write only, write reorganization, public."""
    tidb.execute("create table t (id int primary key, a int, b int, key (a))")
    number, seen = count(), []

    def insert() -> None:
        with tidb.transaction() as txn:
            id_ = next(number)
            txn.insert("shop.t", (id_, 10 * id_, id_))
            if id_:
                txn.update("shop.t", id_ - 1, {"b": 7})
        seen.append([(column.name, column.state) for column in tidb.schema.table("shop.t").info.columns][3:])

    insert()
    tidb.execute("alter table t change column a c varchar(10) after b", insert)
    with tidb.transaction() as txn:
        txn.insert("shop.t", (4, 4, "40"))
    assert seen == [[], *([("_Col$_a_0", state)] for state in (1, 2, 3))]
    info = tidb.schema.table("shop.t").info
    assert [(column.id, column.name) for column in info.columns] == [(1, "id"), (3, "b"), (4, "c")]
    assert [part.name for part in info.indexes[0].columns] == ["c"]
    assert tidb.rows("shop.t") == [(0, 7, "0"), (1, 7, "10"), (2, 7, "20"), (3, 3, "30"), (4, 4, "40")]


# --- transactions --------------------------------------------------------------------------------


@pytest.fixture
def orders(tidb):
    tidb.execute(
        "create table orders (id bigint primary key auto_increment, price decimal(10,2) not null default 1.5,"
        " name varchar(20), at timestamp(3) default current_timestamp(3))"
    )
    return tidb


def test_a_transaction_sees_itself_and_nobody_else(orders):
    with orders.transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "name": "one"})
        with orders.transaction() as other:
            assert other.get("shop.orders", 1) is None
        assert txn.get("shop.orders", 1)[2] == "one"
        txn.update("shop.orders", 1, {"name": "two"})
        assert txn.get("shop.orders", 1)[2] == "two"
        txn.delete("shop.orders", 1)
        assert txn.get("shop.orders", 1) is None
        txn.insert("shop.orders", {"id": 2})
    with orders.transaction() as txn:
        assert txn.get("shop.orders", 1) is None
        assert str(txn.get("shop.orders", 2)[1]) == "1.50"


def test_a_new_key_moves_the_row(orders):
    with orders.transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "name": "one"})
    with orders.transaction() as txn:
        txn.update("shop.orders", 1, {"id": 7})
    mutations = orders.written[-1][1]
    assert [op for op, _, _ in mutations] == ["delete", "put"]
    with orders.transaction() as txn:
        assert txn.get("shop.orders", 7)[2] == "one"


def test_an_error_inside_leaves_nothing(orders):
    count = len(orders.written)
    with pytest.raises(ValueError, match="no row 9"), orders.transaction() as txn:  # noqa: PT012
        txn.insert("shop.orders", {"id": 1})
        txn.delete("shop.orders", 9)
    assert len(orders.written) == count
    with orders.transaction() as txn:
        assert txn.get("shop.orders", 1) is None
    assert txn.commit_ts == 0


def test_the_second_writer_of_a_row_is_refused(orders):
    with orders.transaction() as txn:
        txn.insert("shop.orders", {"id": 1})
    slow = orders.transaction()
    slow.update("shop.orders", 1, {"name": "slow"})
    with orders.transaction() as fast:
        fast.update("shop.orders", 1, {"name": "fast"})
    with pytest.raises(Rejected):
        slow.commit()
    with orders.transaction() as txn:
        assert txn.get("shop.orders", 1)[2] == "fast"


def test_rows_get_numbers_where_they_have_none(orders):
    with orders.transaction() as txn:
        assert [txn.insert("shop.orders", {}) for _ in range(3)] == [1, 2, 3]
    orders.execute("create table heap (a int)")
    with orders.transaction() as txn:
        handle = txn.insert("shop.heap", {"a": 5})
        assert txn.update("shop.heap", handle, {"a": 6}) == (6,)
    with orders.transaction() as txn:
        assert txn.delete("shop.heap", handle) == (6,)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda txn: txn.insert("shop.orders", {"what": 1}), "no column what"),
        (lambda txn: txn.insert("shop.orders", (1,)), "4 columns, the row has 1"),
        (lambda txn: txn.insert("shop.orders", {"id": 1}), "already has a row 1"),
        (lambda txn: txn.insert("shop.orders", {"id": 2, "price": "x"}), "column price can't be 'x'"),
        (lambda txn: txn.update("shop.orders", 9, {"name": ""}), "no row 9"),
        (lambda txn: txn.update("shop.orders", 1, {"what": ""}), "no column what"),
        (lambda txn: txn.delete("shop.orders", 9), "no row 9"),
        (lambda txn: txn.get("shop.what", 9), "no table shop.what; there are shop.orders"),
    ],
)
def test_what_cannot_be_written_is_said(orders, call, why):
    with orders.transaction() as txn:
        txn.insert("shop.orders", {"id": 1})
    with orders.transaction() as txn, pytest.raises(ValueError, match=why):
        call(txn)
