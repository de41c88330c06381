"""DDL jobs, both ways, and where they are found."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.action import Action, action_name
from tidemill.codec.tidb.job import DONE, SYNCED, Job, decode_job, encode_job, make_args, make_outcome
from tidemill.codec.tidb.job_entry import JOB_KEYS, JOB_TABLE_ID, read_job
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.table_info import DbInfo, TableInfo, decode_db_info, decode_table_info
from tidemill.errors import SourceError
from tidemill.events import DELETE, PUT, KvChange

from .ddl_vectors import VERSIONS, jobs, transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_the_jobs_of_a_real_tidb_are_read(version):
    for line in jobs(version):
        job = decode_job(line["job_json"].encode())
        assert job.id == line["job_id"]
        assert job.name == line["type_name"]
        assert job.state == SYNCED
        assert job.schema_id == line["schema_id"]
        assert job.table_id == line["table_id"]
        assert job.schema_name == line["schema_name"]
        assert job.table_name == line["table_name"]
        assert job.query == line["sql"]
        assert job.schema_version == line["schema_version"]
        assert job.outcome.finished_ts == line["finished_ts"]
        if line["table_info_json"]:
            assert job.table_info() == decode_table_info(line["table_info_json"].encode())
        if job.type in (Action.CREATE_SCHEMA, Action.MODIFY_SCHEMA_CHARSET_AND_COLLATE):
            assert job.db_info() == decode_db_info(line["db_info_json"].encode())


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_the_same_job_to_tidb(version):
    """Field by field, as far as they are kept."""
    for line in jobs(version):
        theirs = json.loads(line["job_json"])
        ours = json.loads(encode_job(decode_job(line["job_json"].encode())))
        assert theirs.keys() >= ours.keys() - {"charset", "collate"}
        for name in ours.keys() & theirs.keys() - {"reorg_meta", "multi_schema_info"}:
            assert ours[name] == theirs[name], name


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_found_among_all_that_tidb_writes(version):
    done = {}
    for _, written in transactions(version):
        for change, where, _, job_id in written:
            job = read_job(change)
            if where in ("mysql.tidb_ddl_job", "m:DDLJobList", "m:DDLJobAddIdxList") and job_id:
                assert job.id == job_id
                if job.is_done:
                    assert job.outcome.finished_ts == 0, "it isn't known yet"
                    done.setdefault(job.id, job)
            else:
                assert job is None, where
    assert list(done) == [line["job_id"] for line in jobs(version)]


def test_a_rename_of_several_tables_has_all_infos_and_their_databases():
    line = next(line for line in jobs("v8.1.0") if line["type"] == Action.RENAME_TABLES)
    job = decode_job(line["job_json"].encode())
    assert [info.name for info in job.table_infos()] == ["t2", "t3"]
    assert job.table_info() == job.table_infos()[-1]


def test_a_statement_with_several_clauses_has_a_sub_job_for_each():
    found = {
        line["sql"]: [Action(part.type) for part in decode_job(line["job_json"].encode()).sub_jobs()]
        for line in jobs("v8.1.0")
    }
    assert found["alter table t1 drop column c4, drop column c5"] == [Action.DROP_COLUMN] * 2
    assert found["create database d1"] == []


def test_a_job_is_made_from_infos():
    db, table = DbInfo(id=5, name="Shop"), TableInfo(id=7, name="T")
    outcome = make_outcome(12, db=db, table=table, tables=[table, table], finished_ts=99)
    job = Job(id=3, type=Action.CREATE_TABLES, state=DONE, outcome=outcome, raw_args=make_args([1, "x"]))
    again = decode_job(encode_job(job))
    assert again == job
    assert (again.db_info(), again.table_info(), again.table_infos()) == (db, table, [table, table])
    assert again.args() == [1, "x"]
    assert again.is_done
    assert [state for state in range(11) if replace(job, state=state).is_done] == [DONE, SYNCED]
    assert Job(id=3, type=Action.CREATE_TABLE).schema_version == 0


def test_types_of_jobs_have_tidbs_names():
    assert action_name(Action.ADD_COLUMN) == "add column"
    assert action_name(63) == "flashback schema"
    assert action_name(66) == "action 66"
    assert action_name(200) == "action 200"


# --- what can't be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"id":17,"type":"x"}', "DDL job 17 at ts 9 can't be read: .*type"),
        (b'{"id":17,"type":3', "DDL job 17 at ts 9 can't be read"),
        (b"\xff\xfe", "DDL job of unknown id at ts 9 can't be read"),
    ],
)
def test_a_broken_job_is_an_error_that_names_it_and_its_ts(data, complaint):
    with pytest.raises(SourceError, match=complaint):
        decode_job(data, 9)


def test_a_broken_info_is_an_error_that_names_the_job_and_its_statement():
    job = decode_job(
        b'{"id":17,"type":3,"query":"create table t","raw_args":7,"binlog":{"TableInfo":{"id":"x"}}}'
    )
    with pytest.raises(
        SourceError, match=r"DDL job 17 \(create table\): its info can't be read.*create table t"
    ):
        job.table_info()
    assert job.db_info() is None
    assert job.table_infos() == []
    assert job.args() == 7


@pytest.mark.parametrize("value", [b"\x80", b"\x80\x00\x01\x00", b"\x08\x0a\x02\x50x", b"\x08\x0a\x09", b""])
def test_a_broken_row_of_the_job_table_is_an_error_that_names_the_job(value):
    change = KvChange(9, 8, PUT, record_key(JOB_TABLE_ID, 17), value)
    with pytest.raises(SourceError, match=r"DDL job 17 at ts 9 can't be read: its row in mysql.tidb_ddl_job"):
        read_job(change)


def test_other_changes_are_no_jobs():
    assert read_job(KvChange(9, 8, DELETE, record_key(JOB_TABLE_ID, 17), b"")) is None
    assert read_job(KvChange(9, 8, PUT, record_key(5, 17), b"\x80\0\0\0\0\0")) is None
    assert read_job(KvChange(9, 8, PUT, meta.list_meta_key(meta.DDL_JOBS), bytes(16))) is None
    assert read_job(KvChange(9, 8, PUT, meta.list_key(b"Other", 0), b"{}")) is None
    assert read_job(KvChange(9, 8, PUT, record_key(JOB_TABLE_ID, 17), bytes((8, 2, 8, 34)))) is None
    assert read_job(KvChange(9, 8, PUT, record_key(JOB_TABLE_ID, 17), bytes((8, 10, 0)))) is None
    assert record_key(JOB_TABLE_ID, 17).startswith(JOB_KEYS)
    assert not record_key(JOB_TABLE_ID - 1, 17).startswith(JOB_KEYS)


@pytest.mark.parametrize(
    "key", [b"m", b"mDDLJobLi", meta.list_meta_key(meta.DDL_JOBS) + b"x", record_key(JOB_TABLE_ID, 17)[:-1]]
)
def test_a_key_that_cannot_be_read_is_an_error_that_names_its_ts(key):
    with pytest.raises(SourceError, match=rf"the key {key.hex()}, written at ts 9 among the DDL jobs"):
        read_job(KvChange(9, 8, PUT, key, b"{}"))


def test_a_job_that_is_nested_too_deep_is_refused():
    with pytest.raises(SourceError, match="DDL job 17 at ts 9 can't be read"):
        decode_job(b'{"id":17,"type":3,"raw_args":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", 9)
