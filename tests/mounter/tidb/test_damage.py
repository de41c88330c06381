"""Real DDL jobs with values of their JSON exchanged: each is followed, or refused with a SourceError."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import decode_job, encode_job
from tidemill.errors import SourceError
from tidemill.mounter import SchemaHistory
from tidemill.mounter.tidb.ddl import read_ddl
from tidemill.store.store import Store
from tidemill.testing.damage import damaged_json
from tidemill.testing.tidb_model import Tidb, change_of

from ...codec.tidb.ddl_vectors import VERSIONS, effects


@pytest.fixture
def history(tmp_path):
    store = Store(tmp_path / "store")
    yield SchemaHistory(store, 0)
    store.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", VERSIONS)
def test_jobs(version, seed, history):
    random = Random(seed)
    tables = TablePatterns.parse(["*.*"])
    for ts, job in effects(version):
        for text in (damaged_json(encode_job(job), random), encode_job(job)):
            with suppress(SourceError):
                broken = decode_job(text, ts)
                history.apply(broken, ts)
                read_ddl(broken, change_of(broken, ts), history, tables, "tidb")


@pytest.mark.parametrize(
    "args", [[{"RecoverTabsInfo": [{"TableInfo": {"id": "x"}}]}], [{"RecoverTabsInfo": 5}]]
)
def test_a_recovered_table_that_cannot_be_read_is_refused(args, history):
    tidb = Tidb()
    history.apply(tidb.create_database("shop"), 1)
    database = tidb.databases["shop"]
    job = tidb._job(Action.RECOVER_SCHEMA, "shop", "flashback database shop", db=database, args=args)
    with pytest.raises(
        SourceError, match=r"DDL job \d+ \(flashback schema\): its recovered tables can't be read"
    ):
        history.apply(job, 2)


def test_a_recovered_database_without_its_info_is_refused(history):
    job = decode_job(b'{"id":7,"type":63,"query":"flashback database shop","binlog":{"SchemaVersion":3}}')
    with pytest.raises(SourceError, match=r"DDL job 7 \(flashback schema\): its database can't be read"):
        history.apply(job, 2)
