"""The schema's jobs over the real gRPC: from a cluster that a real TiDB wrote to, into a schema history."""

from __future__ import annotations

import pytest

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.job_entry import read_job
from tidemill.codec.tidb.table import to_table
from tidemill.codec.tidb.table_info import TableInfo, decode_table_info, holds_rows
from tidemill.emulator.cluster import Cluster
from tidemill.events import PUT, Table
from tidemill.mounter import SchemaHistory
from tidemill.puller.tikv.ddl import DdlPuller
from tidemill.puller.tikv.schema import read_schema
from tidemill.puller.tikv.span import ddl_spans
from tidemill.store.store import Store

from ...codec.tidb.ddl_vectors import VERSIONS, Written, transactions
from .rig import Collected, Collector, Rig

DDL_KEYSPACE = 0


class Truth:
    """The tables that the schema keys hold."""

    def __init__(self) -> None:
        self._infos: dict[bytes, TableInfo] = {}

    @property
    def tables(self) -> dict[int, TableInfo]:
        return {info.id: info for info in self._infos.values() if holds_rows(info)}

    def write(self, written: list[Written]) -> None:
        for change, _, field, _ in written:
            if field.startswith("Table:"):
                self._infos.pop(change.key, None)
                if change.op == PUT:
                    self._infos[change.key] = decode_table_info(change.value)


@pytest.mark.parametrize("begin", [0, 60])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_history_follows_the_jobs_of_a_cluster(tmp_path, version, begin):
    """From a schema that is read in the middle of the jobs, to the end. Regions split on the way."""
    truth = Truth()
    store = Store(tmp_path / "history")
    with Cluster(stores=3) as cluster, Rig(cluster, tmp_path / "puller") as rig:
        every = [written for _, written in transactions(version)]
        for written in every[:begin]:
            write(cluster, truth, written)
        at = cluster.tso()
        history = SchemaHistory(store, at)
        schema_version = rig.client.run(read_schema(rig.client.kv, at, history))
        assert {table.info.id: table.info for table in history.tables(at)} == truth.tables
        collected = rig.tables[DDL_KEYSPACE] = Collected(DDL_KEYSPACE, rig.arrived, rig.changed)
        writer = rig.system.spawn(Collector, collected, capacity=64)
        jobs = rig.system.spawn(DdlPuller, writer, history, start_ts=at, schema_version=schema_version)
        rig.puller.add(DDL_KEYSPACE, ddl_spans(), at, jobs)
        states = []
        early: dict[int, int] = {}
        for number, written in enumerate(every[begin:]):
            ts = write(cluster, truth, written)
            for job in filter(None, [read_job(w.change) for w in written]):
                if job.shows_in_rows:
                    early.setdefault(job.id, ts)
                if job.is_in_effect:
                    states.append((early.get(job.id, ts), truth.tables, job))
            if number in (10, 40):
                cluster.split(meta.list_key(meta.DDL_JOBS, number))
        rig.until_resolved(ts, DDL_KEYSPACE)
        collected.check()
        assert [change.commit_ts for change in collected.changes] == [ts for ts, *_ in states]
        for ts, tables, job in states:
            found = {table.info.id: table.info for table in history.tables(ts)}
            if job.is_done:
                assert found == tables
            else:  # what only TiDB sees may lag behind
                assert seen(found) == seen(tables)
    store.close()


def write(cluster: Cluster, truth: Truth, written: list[Written]) -> int:
    truth.write(written)
    return cluster.write(
        [
            ("put", w.change.key, w.change.value or b"?")
            if w.change.op == PUT
            else ("delete", w.change.key, b"")
            for w in written
        ]
    )


def seen(tables: dict[int, TableInfo]) -> dict[int, Table]:
    return {table_id: to_table("s", info) for table_id, info in tables.items()}
