"""Mounting of what the emulated TiDB writes: jobs to a schema history, rows to row changes."""

from __future__ import annotations

import pytest

from tidemill.codec.tidb.job_entry import read_job
from tidemill.codec.tidb.key import table_prefix
from tidemill.emulator.sql.sql import Tidb
from tidemill.events import DELETE, PUT, KvChange
from tidemill.mounter.tidb.history import SchemaHistory
from tidemill.mounter.tidb.runs import RowReader
from tidemill.store.store import Store


class Recorded(Tidb):
    """Keeps every change with its old value, as a feed would get them."""

    def __init__(self, **options):
        self.changes: list[KvChange] = []
        super().__init__(1, **options)

    def write(self, mutations, *, start_ts=0):
        before = self.tso()
        olds = {key: self.read(key, before) or b"" for _, key, _ in mutations}
        commit_ts = super().write(mutations, start_ts=start_ts)
        self.changes += [
            KvChange(commit_ts, commit_ts - 1, DELETE if op == "delete" else PUT, key, value, olds[key])
            for op, key, value in mutations
        ]
        return commit_ts


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    yield store
    store.close()


STATEMENTS = """
    create database shop
    create database depot charset latin1
    create table shop.a (id int primary key, v varchar(10))
    create table shop.b (x varchar(10) collate utf8mb4_bin, y date, n int, primary key (x, y))
    create table shop.p (id int primary key) partition by hash (id) partitions 3
    alter table shop.a add column w int not null default 7 after id
    alter table shop.a add index iv (v), drop column v
    alter table shop.a add column (m datetime, n decimal(5,2) default 1.25)
    create index im on shop.a (m)
    drop index im on shop.a
    alter table shop.a modify column w bigint not null
    truncate table shop.p
    rename table shop.a to shop.t, shop.b to shop.a, shop.t to depot.b
    alter table depot.b rename to shop.c
    create table depot.like_c like shop.c
    create table shop.gone (id int primary key)
    drop table shop.gone
    alter database depot charset utf8mb4
    create database last
    create table last.x (id int primary key)
    drop database last
"""


@pytest.mark.parametrize("job_table", [True, False])
def test_a_history_of_its_jobs_has_its_schema(store, job_table):
    history = SchemaHistory(store, 0)
    with Recorded(job_table=job_table) as tidb:
        for statement in STATEMENTS.strip().splitlines():
            tidb.execute(statement.strip())
        for change in tidb.changes:
            job = read_job(change)
            if job is not None and job.is_done:
                history.apply(job, change.commit_ts)
        now = tidb.tso()
        mine = {
            f"{name}.{table.info.name}": table.info
            for name in ("shop", "depot")
            for table in tidb.schema.tables(name)
        }
    assert {table.name: table.info for table in history.tables(now)} == mine
    assert mine.keys() == {"shop.a", "shop.c", "shop.p", "depot.like_c"}


@pytest.mark.parametrize("options", [{"row_format": 1}, {"row_format": 2}, {"row_checksum": True}])
def test_its_rows_are_read_with_what_they_were_before(store, options):
    history = SchemaHistory(store, 0)
    with Recorded(**options) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.a (id int primary key, v varchar(10), n decimal(5,2) default 1.5)")
        for change in tidb.changes:
            job = read_job(change)
            if job is not None and job.is_done:
                history.apply(job, change.commit_ts)
        tidb.changes.clear()
        with tidb.transaction() as txn:
            txn.insert("shop.a", {"id": 1, "v": "one"})
            txn.insert("shop.a", {"id": 2, "v": None, "n": "-0.25"})
        with tidb.transaction() as txn:
            txn.update("shop.a", 1, {"v": "uno"})
            txn.delete("shop.a", 2)
        (table,) = history.tables(tidb.tso())
        changes = RowReader(table).read_each(tidb.changes)
    assert [(change.op, change.before and list(map(str, change.before))) for change in changes] == [
        ("insert", None),
        ("insert", None),
        ("update", ["1", "one", "1.50"]),
        ("delete", ["2", "None", "-0.25"]),
    ]
    assert changes[2].after_dict()["v"] == "uno"


def test_rows_that_tidb_fills_with_the_values_of_a_new_column_are_no_changes(store):
    history = SchemaHistory(store, 0)
    with Recorded() as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.a (id int primary key, n int)")
        for number in range(3):
            with tidb.transaction() as txn:
                txn.insert("shop.a", (number, 10 * number))
        for change in tidb.changes:
            job = read_job(change)
            if job is not None and job.is_done:
                history.apply(job, change.commit_ts)
        (before,) = history.tables(tidb.tso())
        tidb.changes.clear()
        tidb.execute("alter table shop.a modify column n varchar(10)")
        prefix = table_prefix(before.info.id)
        filled = [change for change in tidb.changes if change.key.startswith(prefix)]
        assert len(filled) == 3
        assert all(map(RowReader(before).is_fill, filled))
        for change in tidb.changes:
            job = read_job(change)
            if job is not None and job.is_done:
                history.apply(job, change.commit_ts)
        (after,) = history.tables(tidb.tso())
        with tidb.transaction() as txn:
            txn.delete("shop.a", 2)
        (deleted,) = RowReader(after).read_each(tidb.changes[-1:])
    assert deleted.before == (2, "20")
