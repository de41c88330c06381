"""Reading a cluster's schema, as a real TiDB wrote it, at any ts of its history."""

from __future__ import annotations

import pytest

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.job_entry import read_job
from tidemill.codec.tidb.table_info import DbInfo, TableInfo, decode_table_info, encode_db_info
from tidemill.emulator.cluster import Cluster
from tidemill.errors import SourceError
from tidemill.events import PUT
from tidemill.puller.tikv.schema import read_schema

from ...codec.tidb.ddl_vectors import VERSIONS, transactions
from .client import client


class Read:
    """Takes in what is read."""

    def __init__(self) -> None:
        self.databases: dict[int, str] = {}
        self.tables: dict[tuple[int, int], TableInfo] = {}

    def add_database(self, info: DbInfo) -> None:
        self.databases[info.id] = info.name

    def add_table(self, database_id: int, info: TableInfo) -> None:
        assert database_id in self.databases
        self.tables[database_id, info.id] = info


@pytest.fixture
def cluster():
    with Cluster(stores=3) as cluster:
        yield cluster


@pytest.fixture
def c(cluster):
    with client(cluster.pd_address, scan_page=7) as c:
        yield c


def read(c, ts):
    schema = Read()
    return c.run(read_schema(c.kv, ts, schema)), schema


def tables_by_name(schema: Read) -> dict[str, TableInfo]:
    return {f"{schema.databases[db]}.{info.name}": info for (db, _), info in schema.tables.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_is_read_as_of_each_transaction_of_a_real_tidb(cluster, c, version):
    truth: dict[tuple[int, int], TableInfo] = {}
    moments = []
    done = 0
    for number, (_, written) in enumerate(transactions(version)):
        mutations = [
            (
                "put" if w.change.op == PUT else "delete",
                w.change.key,
                w.change.value or b"?" * (w.change.op == PUT),
            )
            for w in written
        ]
        ts = cluster.write(mutations)
        for w in written:
            job = read_job(w.change)
            done = job.schema_version if job and job.is_done else done
            if w.field.startswith("Table:"):
                key = meta.decode_meta_key(w.change.key)
                name = meta.database_id(key.name), int(w.field[6:])
                truth.pop(name, None)
                if w.change.op == PUT:
                    truth[name] = decode_table_info(w.change.value)
        if number % 9 == 0:
            moments.append((ts, dict(truth)))
        if number in (20, 60, 100):
            cluster.split(meta.hash_key(meta.DATABASES, b"%d" % number))
            cluster.split(b"mDB:6" + bytes((number,)))
    for ts, wanted in moments:
        _, schema = read(c, ts)
        assert schema.tables == wanted
    assert read(c, cluster.tso())[0] == done
    assert len({len(wanted) for _, wanted in moments}) > 3


def test_the_version_is_of_the_last_change_that_is_there(cluster, c):
    """TiDB v8.1 counts before it changes the schema."""
    version, diff = meta.string_key(meta.SCHEMA_VERSION), meta.schema_diff
    assert read(c, cluster.tso())[0] == 0
    cluster.write([("put", version, b"7")])
    first = cluster.write([("put", meta.string_key(diff(7)), b"{}")])
    counted = cluster.write([("put", version, b"8")])
    changed = cluster.write([("put", meta.string_key(diff(8)), b"{}")])
    assert [read(c, ts)[0] for ts in (first, counted, changed)] == [7, 7, 8]


def database(number: int, name: str) -> tuple[str, bytes, bytes]:
    key = meta.hash_key(meta.DATABASES, meta.database_field(number))
    return "put", key, encode_db_info(DbInfo(id=number, name=name))


def test_databases_of_tidb_itself_are_left_out(cluster, c):
    broken = meta.hash_key(meta.database_field(1), meta.table_field(5))
    cluster.write([database(1, "mysql"), ("put", broken, b"never read"), database(2, "shop")])
    assert read(c, cluster.tso())[1].databases == {2: "shop"}


def test_an_info_that_can_not_be_read_is_an_error_that_names_its_key_and_the_ts(cluster, c):
    broken = meta.hash_key(meta.database_field(2), meta.table_field(5))
    ts = cluster.write([database(2, "shop"), ("put", broken, b'{"id":"x"}')])
    said = f"the schema at ts {ts} can't be read: table id 5 of database id 2: "
    with pytest.raises(SourceError, match=said):
        read(c, ts)
