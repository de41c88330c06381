"""Pumps into MariaDB with the checkpoint of TiDB-Binlog's drainer: taken over from it, and in its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.repeated import repeated

from .test_kill import Writer

FEED = """\
name = "drained"
data_dir = "{directory}/state"
{until}

[source]
url = "pump://{pumps}"
pd = ["{pd}"]
tables = ["many.*"]
retry_seconds = 0.05
start_ts = {start_ts}

[[sink]]
url = "{target}"
{checkpoint}
"""


class Drained:
    """A table in MariaDB, as a drainer copied it, and the feed that goes on."""

    def __init__(self, directory: Path, tidb: Tidb, server: MariaDb, schema: str, checkpoint: str) -> None:
        self._directory = directory
        self._tidb = tidb
        self._server = server
        self.schema = schema
        self.checkpoint = checkpoint
        tidb.execute("create database many")
        tidb.execute("create table many.t (id int primary key, note varchar(40))")
        self.execute("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(40))")
        self.start_ts = tidb.tso()
        self.writer = Writer(tidb, Random(1))

    def execute(self, statement: str, *values: object) -> list:
        with self._server.connect(database=self.schema) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def copy_rows(self) -> None:
        """Make the target's rows those of the source, as the drainer does."""
        with self._server.connect(database=self.schema) as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM t")
            cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(self.writer.rows.items()))
            connection.commit()

    def run(self, point: str = "", until: str = "") -> Child:
        config = self._directory / "feed.toml"
        config.write_text(
            FEED.format(
                directory=self._directory,
                pumps=self._tidb.pumps.address,
                pd=self._tidb.pd_address,
                target=self._server.url(self.schema),
                start_ts=self.start_ts,
                checkpoint=self.checkpoint,
                until=until,
            )
        )
        return Child([*CLI, "run", config], self._directory / "feed.log", failpoint=point)

    def ends(self) -> None:
        with self.run(until='until = "now"') as feed:
            assert feed.exit_status() == 0, feed.output()[-3000:]

    def copies_all(self) -> None:
        self.ends()
        assert dict(self.execute("SELECT id, note FROM t")) == self.writer.rows


@pytest.fixture
def server(mariadb) -> Iterator[MariaDb]:
    """The server; nobody else uses the schema of drainers' checkpoints in it."""
    drop = "DROP DATABASE IF EXISTS tidb_binlog"
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(drop)
        yield mariadb
        cursor.execute(drop)


@pytest.mark.parametrize(
    "content",
    [
        '{"commitTS":%d,"ts-map":{"master-ts":%d,"slave-ts":5}}',
        '{"consistent":false,"commitTS":%d,"ts-map":{"primary-ts":%d,"secondary-ts":5},"schema-version":3}',
    ],
    ids=["of version 3", "of version 6"],
)
def test_a_feed_goes_on_where_a_drainer_was_killed_and_applies_its_last_rows_again(
    tmp_path, tidb, server, database, content
):
    place = Drained(tmp_path, tidb, server, database, 'checkpoint = "drainer"\ncluster_id = %d')
    cluster = tidb.options.cluster_id
    place.checkpoint %= cluster
    for _ in range(20):
        place.writer.write()
    place.copy_rows()
    saved = tidb.tso()
    place.execute("CREATE DATABASE tidb_binlog")
    place.execute(
        "CREATE TABLE tidb_binlog.checkpoint (clusterID BIGINT UNSIGNED PRIMARY KEY, checkPoint MEDIUMTEXT)"
    )
    place.execute("INSERT INTO tidb_binlog.checkpoint VALUES (%s, %s)", cluster, content % (saved, saved))
    for _ in range(20):
        place.writer.write()
    place.copy_rows()  # the drainer has applied them, and not saved its checkpoint
    place.start_ts = 0
    place.copies_all()
    place.writer.write()
    place.copies_all()
    ((text,),) = place.execute("SELECT checkPoint FROM tidb_binlog.checkpoint")
    stored = json.loads(text)
    assert stored["commitTS"] > saved
    assert stored["ts-map"] == {"primary-ts": saved, "secondary-ts": 5}
    assert not stored["consistent"], "safe mode isn't over"


def test_an_old_checkpoint_of_another_cluster_is_not_used(tmp_path, tidb, server, database):
    place = Drained(tmp_path, tidb, server, database, 'checkpoint = "drainer"')
    place.execute("CREATE DATABASE tidb_binlog")
    place.execute(
        "CREATE TABLE tidb_binlog.checkpoint (clusterID BIGINT UNSIGNED PRIMARY KEY, checkPoint MEDIUMTEXT)"
    )
    place.execute("INSERT INTO tidb_binlog.checkpoint VALUES (5, %s)", f'{{"commitTS":{place.start_ts}}}')
    place.writer.write()
    cluster = tidb.options.cluster_id
    with place.run(until='until = "now"') as feed:
        assert feed.exit_status() == 1
        said = f"what came from tidb binlog of cluster 5, and {tidb.pumps.address} is tidb binlog of cluster"
        assert f"{said} {cluster}: connect to that server" in feed.output()
    place.checkpoint = 'checkpoint = "drainer"\ncluster_id = 4711'
    with place.run(until='until = "now"') as feed:
        assert feed.exit_status() == 1
        said = f"cluster_id = 4711, and the rows come from tidb binlog of cluster {cluster}"
        assert said in feed.output()
    place.checkpoint = f'checkpoint = "drainer"\ncluster_id = {cluster}'
    place.copies_all()
    stored = [row[0] for row in place.execute("SELECT clusterID FROM tidb_binlog.checkpoint")]
    assert stored == sorted([5, cluster])


def test_killed_with_its_checkpoint_in_a_file_nothing_is_lost(tmp_path, tidb, mariadb, database):
    file = tmp_path / "savepoint"
    checkpoint = f'checkpoint = "drainer file"\ncheckpoint_file = "{file}"'
    place = Drained(tmp_path, tidb, mariadb, database, checkpoint)
    with repeated(place.writer.write):
        for point in ("sink.before_commit:5", "sink.committed:4", "sink.committed:9", "sink.mid_batch:7"):
            with place.run(point) as feed:
                feed.dies()
    place.copies_all()
    lines = file.read_text().splitlines()
    assert [line.partition(" = ")[0] for line in lines] == ["consistent", "commitTS", "schema-version"]
    tidb.execute("alter table many.t add column more int default 7")
    with place.run("sink.committed:1", until='until = "now"') as feed:
        feed.dies()  # the column is added, and the file doesn't say so
    place.ends()
    assert {more for _, _, more in place.execute("SELECT * FROM t")} == {7}
