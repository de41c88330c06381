"""Rows and jobs that a real TiDB wrote, as its pumps send them, are read as those from TiKV are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.proto import binlog
from tidemill.codec.tidb import meta
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.column_type import ColumnFlag
from tidemill.codec.tidb.datum import Flag, decode_datums, encode_datum
from tidemill.codec.tidb.job import PUBLIC, Job, decode_job
from tidemill.codec.tidb.key import decode_record_key
from tidemill.codec.tidb.old_row import join_row, split_row
from tidemill.codec.tidb.record import JobRecord, job_change, rows_change
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.table_info import TableInfo
from tidemill.errors import SourceError
from tidemill.events import Ddl, Row, Sorted
from tidemill.mounter import BinlogMounter, SchemaHistory
from tidemill.mounter.tidb.binlog_rows import BinlogReader
from tidemill.mounter.tidb.ddl import read_ddl
from tidemill.mounter.tidb.history import TableAt
from tidemill.puller.pump.jobs import has_effect
from tidemill.puller.pump.renames import with_new_databases
from tidemill.store.store import Store
from tidemill.testing.tidb_model import change_of

from ...codec.tidb.ddl_vectors import VERSIONS, effects, jobs
from ...codec.tidb.row_vectors import Vector, load
from .test_tidb_ddl import told

KIND = binlog.MutationType
MAX = 1 << 62
OUTSIDE_KEYS = {Flag.BYTES: Flag.COMPACT_BYTES, Flag.INT: Flag.VARINT, Flag.UINT: Flag.UVARINT}
"""Flags of a datum outside of keys, by its flag in a key."""

ROWS = [vector for vector in load("rows") if vector.row_format == 1]
"""In the format of pumps."""


def handle_of(vector: Vector) -> bytes:
    _, handle = decode_record_key(vector.key)
    if isinstance(handle, int):
        return encode_datum(Flag.VARINT, handle)
    return b"".join(encode_datum(OUTSIDE_KEYS.get(flag, flag), bare) for flag, bare in decode_datums(handle))


def image_of(vector: Vector) -> bytes:
    """Return a row with its integer key and its NULLs, as old and new images are."""
    datums = split_row(vector.value)
    _, handle = decode_record_key(vector.key)
    for column in vector.info.columns:
        if vector.info.pk_is_handle and column.flags & ColumnFlag.PRI_KEY:
            unsigned = column.flags & ColumnFlag.UNSIGNED
            datums[column.id] = (Flag.UVARINT, handle % 2**64) if unsigned else (Flag.VARINT, handle)
        elif column.origin_default is None and not column.generated:
            datums.setdefault(column.id, (Flag.NULL, None))
    return join_row(datums)


def by_tikv(vector: Vector) -> Row:
    (row,) = RowDecoder("vec", vector.info).decode([(vector.key, vector.value)])
    return row


def read(vector: Vector, **rows: object) -> list[tuple[str, Row | None, Row | None]]:
    reader = BinlogReader(TableAt("vec", vector.info, 1))
    mutation = binlog.TableMutation(table_id=vector.info.id, **rows)
    return [(change.op, change.before, change.after) for change in reader.read(mutation, 9, 8)]


def test_inserted_rows():
    for vector in ROWS:
        inserted = handle_of(vector) + vector.value
        found = read(vector, inserted_rows=[inserted], sequence=[KIND.Insert])
        assert repr(found) == repr([("insert", None, by_tikv(vector))]), vector.info.name
    assert len({vector.info.name for vector in ROWS}) > 20


def test_updated_and_deleted_rows():
    images = [vector for vector in ROWS if not vector.info.is_common_handle]
    for vector in images:
        row, image = by_tikv(vector), image_of(vector)
        found = read(
            vector, updated_rows=[image * 2], deleted_rows=[image], sequence=[KIND.Update, KIND.DeleteRow]
        )
        assert repr(found) == repr([("update", row, row), ("delete", row, None)]), vector.info.name
    assert len(images) > 90


class Diffs:
    """The schema diffs that a TiDB wrote with a job."""

    def __init__(self, line: dict) -> None:
        self._values = {meta.string_key(name.encode()): text for name, text in line["schema_diffs"].items()}

    async def get(self, key: bytes, _ts: int) -> bytes | None:
        text = self._values.get(key)
        return None if text is None else text.encode()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_jobs_of_the_history_have_the_effects_of_the_jobs_in_the_queue(version, tmp_path):
    tables = TablePatterns.parse(["*.*"])
    ours = SchemaHistory(Store(tmp_path / "pumps"), 0)
    mounter = BinlogMounter(ours, "tidb", tables)
    found = []
    for ts, line in enumerate(jobs(version), 1):
        data = line["job_json"].encode()
        job = asyncio.run(with_new_databases(decode_job(data), Diffs(line), ts))
        assert has_effect(job)
        ours.apply(job, ts)
        change = job_change(JobRecord(ts, ts, job.id, PUBLIC, job.query), data, 1)
        found += steps(job, mounter.mount(Sorted([change], ts)))
    theirs = SchemaHistory(Store(tmp_path / "tikv"), 0)
    wanted = []
    for ts, job in effects(version):
        theirs.apply(job, ts)
        wanted += steps(job, read_ddl(job, change_of(job, ts), theirs, tables, "tidb", of_pumps=True))
    assert found == wanted
    assert [*map(definition, ours.tables(MAX))] == [*map(definition, theirs.tables(MAX))]


def test_rows_with_columns_of_a_later_job_are_refused(tmp_path):
    """A job that adds two columns is complete some milliseconds after both are public."""
    history = SchemaHistory(Store(tmp_path / "pumps"), 0)
    mounter = BinlogMounter(history, "tidb", TablePatterns.parse(["*.*"]))
    for ts, line in enumerate(jobs("v8.1.0"), 1):
        data = line["job_json"].encode()
        job = asyncio.run(with_new_databases(decode_job(data), Diffs(line), ts))
        is_last = job.query == "alter table t1 add column (c4 int, c5 int)"
        if is_last:
            mutation = binlog.TableMutation(table_id=job.table_id)
            value = binlog.PrewriteValue(schema_version=job.schema_version, mutations=[mutation])
            record = binlog.Binlog(
                tp=binlog.BinlogType.Commit, commit_ts=ts * 10 - 1, prewrite_value=value.SerializeToString()
            )
            mounter.mount(Sorted([rows_change(record, 1)], ts * 10 - 1))
        history.apply(job, ts * 10)
        change = job_change(JobRecord(ts * 10, ts * 10, job.id, PUBLIC, job.query), data, 1)
        if is_last:
            with pytest.raises(SourceError, match="rows of t1 have values of c4, c5, and came before"):
                mounter.mount(Sorted([change], ts * 10))
            return
        mounter.mount(Sorted([change], ts * 10))
    pytest.fail("there is no such job")


def steps(job: Job, ddls: Sequence[Ddl]) -> list[tuple[int, str]]:
    """Return the steps of each change: a statement with several clauses may take effect in parts."""
    found = []
    for ddl in ddls:
        refusal = replace(ddl, refusal=re.sub(r"at ts \d+", "at its ts", ddl.refusal))
        parts = [replace(ddl, actions=(action,)) for action in ddl.actions] or [refusal]
        found += [(job.id, told(part)) for part in parts]
    return found


def definition(table: TableAt) -> tuple[str, TableInfo]:
    return table.name, table.info


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (None, "its arguments can't be read: there is no schema diff 716"),
        (b'{"schema_id": 1}', "its schema diff 716 can't be read: .*table_id"),
    ],
)
def test_a_rename_of_several_tables_whose_databases_are_unknown_is_refused(diff, reason):
    line = next(line for line in jobs("v8.1.0") if line["type"] == Action.RENAME_TABLES)
    values = Diffs({"schema_diffs": {"Diff:716": diff.decode()} if diff else {}})
    with pytest.raises(SourceError, match=reason):
        asyncio.run(with_new_databases(decode_job(line["job_json"].encode()), values, 9))
