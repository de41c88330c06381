"""Effects of jobs on followed tables: actions, nothing, or a refusal."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import DONE, Job
from tidemill.codec.tidb.table_info import DbInfo, TableInfo, decode_db_info, decode_table_info
from tidemill.events import PUT, AddColumn, CreateTable, Ddl, DropColumn
from tidemill.mounter import SchemaHistory
from tidemill.mounter.tidb.ddl import HOW_TO_GO_ON, existing_tables, read_ddl
from tidemill.routing import TableFilter
from tidemill.store.store import Store
from tidemill.testing import cases
from tidemill.testing.tidb_model import Tidb, change_of

from ...codec.tidb.ddl_vectors import VERSIONS, effects, transactions
from .test_history import statement

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("cases/ddl-*.txt"))


@pytest.fixture
def history(tmp_path):
    store = Store(tmp_path / "store")
    yield SchemaHistory(store, 0)
    store.close()


def told(ddl: Ddl) -> str:
    """A Ddl in a line."""
    if ddl.refusal:
        return ddl.refusal.removesuffix(f"; {HOW_TO_GO_ON}")
    return f"{ddl.full_name}: {', '.join(map(said, ddl.actions))}"


def said(action: CreateTable | AddColumn | DropColumn) -> str:
    match action:
        case CreateTable(table):
            return f"create ({', '.join(f'{c.name} {c.kind}' for c in table.columns)})"
        case AddColumn(column, after):
            where = " last" if after is None else f" after {after}" if after else " first"
            return f"add {column.name} {column.kind}{where}"
        case DropColumn(name):
            return f"drop {name}"


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, history, rewrite):
    """Statements at ts 1, 2 and so on; the feed follows shop.*, but not shop.tmp_*."""
    tidb, tables = Tidb(), TableFilter(["shop.*", "!shop.tmp_*"])
    clock = count(1)

    def play(commands: str) -> str:
        lines = []
        for line, ts in zip(commands.splitlines(), clock, strict=False):
            job = statement(tidb, *line.split())
            history.apply(job, ts)
            lines += map(told, read_ddl(job, change_of(job, ts), history, tables, "tidb"))
        return "\n".join(lines) or "nothing"

    cases.expect_history(path, play, rewrite)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_statements_of_a_real_tidb(version, history, rewrite):
    """A statement with several clauses may take effect in parts."""
    path = HERE / f"cases/real-{version}.txt"
    tables = TableFilter(["*.*"])
    found = []
    for ts, job in effects(version):
        history.apply(job, ts)
        lines = map(told, read_ddl(job, change_of(job, ts), history, tables, "tidb"))
        text = re.sub(r"job \d+ at ts \d+", "job J at ts T", "\n".join(lines) or "nothing")
        found.append((f"{job.query}{'' if job.is_done else ' (in part)'}", text))
    cases.expect_all(path, found, rewrite)


def test_a_default_of_the_present_moment_is_told_with_the_clock_of_the_session(history):
    """In New York, five hours behind."""
    clocks = {}
    for ts, job in effects("v8.1.0"):
        history.apply(job, ts)
        for ddl in read_ddl(job, change_of(job, ts), history, TableFilter(["*.*"]), "tidb"):
            clocks[job.query] = ddl.epoch_seconds, ddl.utc_offset_seconds
    seconds, offset = clocks["alter table t1 add column c2 datetime default current_timestamp after a"]
    assert offset == -5 * 3600
    info = next(t.info for t in history.tables(1 << 62) if t.info.name == "t1")
    origin = next(c.origin_default for c in info.columns if c.name == "c2")
    assert datetime.fromtimestamp(seconds + offset, UTC).strftime("%Y-%m-%d %H:%M:%S") == origin


def test_a_restart_anywhere_tells_the_rest(tmp_path):
    """From the schema at each ts of a real TiDB's history, in the middle of jobs too."""
    jobs = effects("v8.1.0")
    whole = follow(SchemaHistory(Store(tmp_path / "whole"), 0), jobs)
    keys: dict[bytes, bytes] = {}
    for number, (_, written) in enumerate(transactions("v8.1.0")):
        for change, *_ in written:
            keys.pop(change.key, None)
            if change.op == PUT:
                keys[change.key] = change.value
        ts = written[0].change.commit_ts
        history = SchemaHistory(Store(tmp_path / str(number)), ts, databases(keys))
        rest = follow(history, [(at, job) for at, job in jobs if at > ts])
        assert rest == [line for line in whole if line[0] > ts]


def follow(history: SchemaHistory, jobs: list[tuple[int, Job]]) -> list[tuple[int, str]]:
    """Return the effects of the jobs. A renamed table may already have its new name."""
    lines = []
    for ts, job in jobs:
        history.apply(job, ts)
        for ddl in read_ddl(job, change_of(job, ts), history, TableFilter(["*.*"]), "tidb"):
            if job.type in (Action.RENAME_TABLE, Action.RENAME_TABLES):
                assert "RENAME" in ddl.refusal
                lines.append((ts, "rename"))
            else:
                lines.append((ts, told(ddl)))
    return lines


def databases(keys: dict[bytes, bytes]) -> list[tuple[DbInfo, list[TableInfo]]]:
    """Return the databases and tables in the schema keys."""
    found: dict = {}
    for key, value in keys.items():
        if key.startswith(b"mD") and (name := meta.decode_meta_key(key)).kind == "hash":
            if name.name == meta.DATABASES:
                found.setdefault(name.field, [None, []])[0] = decode_db_info(value)
            elif meta.is_table_field(name.field):
                found.setdefault(name.name, [None, []])[1].append(decode_table_info(value))
    return [(info, tables) for info, tables in found.values()]


def test_a_refusal_names_job_ts_and_statement_and_how_to_go_on(history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    job = tidb.drop_table("shop", "a")
    history.apply(job, 7)
    (ddl,) = read_ddl(job, change_of(job, 7), history, TableFilter(["shop.*"]), "tidb")
    assert ddl.refusal == (
        f"table shop.a: DDL job {job.id} at ts 7 can't be followed (DROP TABLE), only new tables and adding"
        f" and dropping columns can: drop table a; {HOW_TO_GO_ON}"
    )
    assert (ddl.commit_ts, ddl.start_ts, ddl.source, ddl.query, ddl.actions) == (
        7,
        6,
        "tidb",
        "drop table a",
        (),
    )


def test_what_takes_back_all_rows_is_refused(history):
    job = Job(id=5, type=Action.FLASHBACK_CLUSTER, state=DONE, query="flashback cluster to timestamp '...'")
    history.apply(job, 7)
    (ddl,) = read_ddl(job, change_of(job, 7), history, TableFilter(["shop.*"]), "tidb")
    assert ddl.refusal.startswith("the cluster: DDL job 5 at ts 7 can't be followed (FLASHBACK CLUSTER")
    job = Job(
        id=6, type=Action.RECOVER_SCHEMA, state=DONE, schema_name="shop", query="flashback database shop"
    )
    history.apply(job, 8)
    (ddl,) = read_ddl(job, change_of(job, 8), history, TableFilter(["shop.*"]), "tidb")
    assert ddl.refusal.startswith("schema shop: DDL job 6 at ts 8 can't be followed (FLASHBACK DATABASE")
    assert read_ddl(job, change_of(job, 8), history, TableFilter(["depot.*"]), "tidb") == []


def test_a_long_statement_is_cut_in_a_refusal(history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    job = tidb.alter("shop", "a", Action.TRUNCATE_TABLE_PARTITION, "truncate partition " + "p, " * 1000)
    history.apply(job, 7)
    (ddl,) = read_ddl(job, change_of(job, 7), history, TableFilter(["shop.*"]), "tidb")
    assert " ...; to go on" in ddl.refusal
    assert len(ddl.refusal) < 1500


def test_tables_that_are_there_at_the_start_are_told_as_new_ones(history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    history.apply(tidb.create_table("shop", "p", partitions=3), 3)
    history.apply(tidb.create_table("shop", "tmp_x"), 4)
    history.apply(tidb.create_table("shop", "later"), 6)
    found = list(existing_tables(history, 5, TableFilter(["shop.*", "!shop.tmp_*"]), "tidb"))
    assert [told(ddl) for ddl in found] == ["shop.a: create (id bigint)", "shop.p: create (id bigint)"]
    assert {(ddl.commit_ts, ddl.position, ddl.query, ddl.last, ddl.source) for ddl in found} == {
        (5, "5", "", True, "tidb")
    }


@pytest.mark.parametrize(
    ("query", "pattern", "refused"),
    [
        ("rename table t2x to d2.t2y", "d1.t2x", True),
        ("rename table t2x to d2.t2y", "d2.t2y", True),
        ("rename table t2x to d2.t2y", "d1.other", False),
        ("rename table d2.t2y to d1.t2, t3 to d2.t3", "d2.t2y", True),
        ("rename table d2.t2y to d1.t2, t3 to d2.t3", "depot.*", False),
    ],
)
def test_a_rename_that_a_feed_begins_in_the_middle_of_is_refused(history, query, pattern, refused):
    """The schema that it reads has the new names, one transaction before the job is done."""
    ((ts, job),) = [(ts, job) for ts, job in effects("v8.1.0") if job.query == query]
    for schema_id, name in ((613, "d1"), (615, "d2")):
        history.add_database(DbInfo(id=schema_id, name=name))
    infos = job.table_infos() or [job.table_info()]
    for info, schema_id in zip(infos, (613, 615) if len(infos) > 1 else (615,), strict=True):
        history.add_table(schema_id, info)
    history.apply(job, ts)
    ddls = read_ddl(job, change_of(job, ts), history, TableFilter([pattern]), "tidb")
    assert [bool(ddl.refusal) for ddl in ddls] == [True] * refused
