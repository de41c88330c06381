"""Effects of jobs on followed tables: actions, nothing, or a refusal."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.tidb.action import Action as JobType
from tidemill.codec.tidb.job import DONE, Job, decode_job
from tidemill.codec.tidb.table_info import TableInfo, encode_table_info
from tidemill.errors import SourceError
from tidemill.events import (
    PUT,
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TruncateTable,
)
from tidemill.mounter import SchemaHistory
from tidemill.mounter.tidb.ddl import HOW_TO_GO_ON, read_ddl
from tidemill.puller.tikv.renames import add_old_names
from tidemill.puller.tikv.schema import read_schema
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


FLASHBACKS = ("v8.1", "v8.5", "v8.5, many tables", "v9")


def flashback_database(form: str, table: TableInfo, name: str) -> Job:
    """Return the job of FLASHBACK DATABASE as TiDB stores it: without a name, the infos in its arguments.

    With many tables TiDB looks for them when the job runs.
    """
    database = {
        "id": 61,
        "db_name": {"O": name, "L": name},
        "charset": "utf8mb4",
        "collate": "utf8mb4_bin",
        "state": 5,
        "policy_ref_info": None,
    }
    listed = {
        "SchemaID": 61,
        "TableInfo": json.loads(encode_table_info(table)),
        "DropJobID": 65,
        "SnapshotTS": 470607511840096256,
        "AutoIDs": {"RowID": 1, "IncrementID": 0, "RandomID": 0},
        "OldSchemaName": "shop",
        "OldTableName": table.name,
    }
    schema = database | {"DropJobID": 65, "SnapshotTS": 470607511840096256}
    schema["OldSchemaName"] = {"O": "shop", "L": "shop"}
    if form == "v8.1":
        schema["RecoverTabsInfo"] = [listed]
    else:
        schema["LoadTablesOnExecute"] = form == "v8.5, many tables"
        schema["RecoverTableInfos"] = None if schema["LoadTablesOnExecute"] else [listed]
    args = {"recover_info": schema, "check_flag": 1} if form == "v9" else [schema, 1]
    text = {
        "id": 66,
        "type": 63,
        "schema_id": 61,
        "table_id": 0,
        "schema_name": "",
        "table_name": "",
        "state": 4,
        "err": None,
        "raw_args": args,
        "schema_state": 5,
        "query": f"flashback database shop to {name}",
        "binlog": {
            "SchemaVersion": 583,
            "DBInfo": database,
            "TableInfo": None,
            "FinishedTS": 0,
            "MultipleTableInfos": None,
        },
        "version": 2 if form == "v9" else 1,
        "reorg_meta": None,
        "multi_schema_info": None,
    }
    return decode_job(json.dumps(text).encode())


def told(ddl: Ddl) -> str:
    """A Ddl in a line."""
    if ddl.refusal:
        return ddl.refusal.removesuffix(f"; {HOW_TO_GO_ON}")
    if ddl.reload:
        return ddl.reload
    return f"{ddl.full_name}: {', '.join(map(said, ddl.actions))}"


def said(action: Action) -> str:
    match action:
        case DropTable():
            return "drop table"
        case TruncateTable():
            return "truncate"
        case RenameTables(pairs):
            return "rename " + ", ".join(f"{'.'.join(old)} to {'.'.join(new)}" for old, new in pairs)
        case CreateTable(table):
            return f"create ({', '.join(f'{c.name} {c.kind}' for c in table.columns)})"
        case AddColumn(column, after):
            where = " last" if after is None else f" after {after}" if after else " first"
            return f"add {column.name} {column.kind}{where}"
        case DropColumn(name):
            return f"drop {name}"
        case ChangeColumn(name, column, _, after):
            where = "" if after is None else f" after {after}" if after else " first"
            return f"change {name} to {column.name} {defined(column)}{where}"
        case ChangeKey(names):
            return f"key ({', '.join(names)})"


def defined(column: Column) -> str:
    unsigned = " unsigned" if column.unsigned else ""
    null = "" if column.nullable else " not null"
    default = "" if column.default is None else f" default {column.default}"
    return f"{column.kind}({column.length}){unsigned}{null}{default}"


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, history, rewrite):
    """Statements at ts 1, 2 and so on; the feed follows shop.*, but not shop.tmp_*."""
    tidb, tables = Tidb(), TablePatterns.parse(["shop.*", "!shop.tmp_*"])
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
    tables = TablePatterns.parse(["*.*"])
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
        for ddl in read_ddl(job, change_of(job, ts), history, TablePatterns.parse(["*.*"]), "tidb"):
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
    keys = RecordedKeys("v8.1.0")
    for number, ts in enumerate(keys.timestamps):
        history = SchemaHistory(Store(tmp_path / str(number)), ts)
        asyncio.run(keys.read_schema(ts, history))
        rest = follow(history, [(at, job) for at, job in jobs if at > ts])
        assert rest == [line for line in whole if line[0] > ts]


def test_a_table_whose_old_name_is_gone_while_it_is_renamed_is_an_error(tmp_path):
    """The schema is read at the first step of the job, and garbage was collected up to there."""
    keys = RecordedKeys("v8.1.0")
    first_step = next(
        change.commit_ts
        for sql, written in transactions("v8.1.0")
        for change, where, *_ in written
        if sql == "rename table t2 to t2x" and where == "m:DB:613"
    )
    keys.forget_before(first_step)
    with pytest.raises(
        SourceError, match=r"table id 620 .* renamed by DDL job 669 \(rename table t2 to t2x\)"
    ):
        asyncio.run(keys.read_schema(first_step, SchemaHistory(Store(tmp_path / "store"), first_step)))


def follow(history: SchemaHistory, jobs: list[tuple[int, Job]]) -> list[tuple[int, str]]:
    """Return the effects of the jobs."""
    lines = []
    for ts, job in jobs:
        history.apply(job, ts)
        ddls = read_ddl(job, change_of(job, ts), history, TablePatterns.parse(["*.*"]), "tidb")
        lines += [(ts, told(ddl)) for ddl in ddls]
    return lines


class RecordedKeys:
    """The versions of all keys that a real TiDB wrote, as TiKV has them."""

    def __init__(self, version: str) -> None:
        self.timestamps = []
        self._versions: dict[bytes, list[tuple[int, bytes | None]]] = {}
        for _, written in transactions(version):
            self.timestamps.append(written[0].change.commit_ts)
            for change, *_ in written:
                value = change.value if change.op == PUT else None
                self._versions.setdefault(change.key, []).append((change.commit_ts, value))

    async def read_schema(self, ts: int, history: SchemaHistory) -> None:
        await read_schema(self, ts, history)
        await add_old_names(self, ts, history)

    def forget_before(self, ts: int) -> None:
        """Collect garbage: of the versions up to `ts`, only the last one is left."""
        for key, versions in self._versions.items():
            old = [one for one in versions if one[0] <= ts]
            self._versions[key] = old[-1:] + versions[len(old) :]

    async def get(self, key: bytes, ts: int) -> bytes | None:
        return next((value for at, value in reversed(self._versions.get(key, ())) if at <= ts), None)

    async def scan(self, start: bytes, end: bytes, ts: int) -> AsyncIterator[tuple[bytes, bytes]]:
        for key in sorted(self._versions):
            if start <= key < end and (value := await self.get(key, ts)) is not None:
                yield key, value


def test_a_refusal_names_job_ts_and_statement_and_how_to_go_on(history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    job = tidb.alter("shop", "a", JobType.TRUNCATE_TABLE_PARTITION, "truncate partition p")
    history.apply(job, 7)
    tables = TablePatterns.parse(["shop.*"])
    (ddl,) = read_ddl(job, change_of(job, 7), history, tables, "tidb", of_pumps=True)
    assert ddl.refusal == (
        f"table shop.a: DDL job {job.id} at ts 7 can't be followed (TRUNCATE PARTITION: rows go without"
        f" events): alter table a truncate partition p; {HOW_TO_GO_ON}"
    )
    (loading,) = read_ddl(job, change_of(job, 7), history, tables, "tidb")
    assert loading.reload == (
        f"table shop.a: loaded again after DDL job {job.id} at ts 7 (TRUNCATE PARTITION: rows go without"
        " events): alter table a truncate partition p"
    )
    assert (ddl.commit_ts, ddl.start_ts, ddl.source, ddl.query, ddl.actions) == (
        7,
        6,
        "tidb",
        "alter table a truncate partition p",
        (),
    )


def test_what_takes_back_all_rows_is_refused(history):
    job = Job(id=5, type=JobType.FLASHBACK_CLUSTER, state=DONE, query="flashback cluster to timestamp '...'")
    history.apply(job, 7)
    (ddl,) = read_ddl(job, change_of(job, 7), history, TablePatterns.parse(["shop.*"]), "tidb")
    assert ddl.refusal.startswith("the cluster: DDL job 5 at ts 7 can't be followed (FLASHBACK CLUSTER")


@pytest.mark.parametrize("form", FLASHBACKS)
def test_a_database_that_comes_back_is_refused(form, history):
    """Under its new name, which only the database's info has; other feeds know its tables from then on."""
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    history.apply(tidb.drop_database("shop"), 3)
    job = flashback_database(form, tidb.dropped["shop", "a"], "found")
    history.apply(job, 8)
    (ddl,) = read_ddl(job, change_of(job, 8), history, TablePatterns.parse(["found.*"]), "tidb")
    assert ddl.refusal.startswith("schema found: DDL job 66 at ts 8 can't be followed (FLASHBACK DATABASE")
    assert ddl.refusal.count("flashback database shop to found") == 1
    assert read_ddl(job, change_of(job, 8), history, TablePatterns.parse(["shop.*"]), "tidb") == []
    listed = form != "v8.5, many tables"
    assert [table.name for table in history.tables(8)] == ["found.a"] * listed


def test_a_long_statement_is_cut_in_a_refusal(history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    history.apply(tidb.create_table("shop", "a"), 2)
    job = tidb.alter("shop", "a", JobType.TRUNCATE_TABLE_PARTITION, "truncate partition " + "p, " * 1000)
    history.apply(job, 7)
    tables = TablePatterns.parse(["shop.*"])
    (ddl,) = read_ddl(job, change_of(job, 7), history, tables, "tidb", of_pumps=True)
    assert " ...; to go on" in ddl.refusal
    assert len(ddl.refusal) < 1500
