"""A SQL sink whose checkpoint is in the drainer's table, in a real MariaDB."""

from __future__ import annotations

import json

import pytest

from tidemill.dialects.mysql.entry import MYSQL
from tidemill.dialects.options import MySqlOptions
from tidemill.errors import CheckpointError, ConfigError, SinkError
from tidemill.events import Batch, Checkpoint
from tidemill.sink import open_sink
from tidemill.sink.registry import given_sink
from tidemill.sink.sql.mysql_drainer import NoCheckpointItem
from tidemill.spark.write.sql import open_shared
from tidemill.testing.changes import ORDERS, MemoryStore, create, insert, transaction

CLUSTER = 6766844929645682862


@pytest.fixture
def sink(checkpoints, database):
    """Makes sinks into one database; they are closed after the test."""
    made = []

    def make(cluster_id=CLUSTER):
        options = {"checkpoint": "drainer", "cluster_id": cluster_id}
        url = checkpoints.url(database)
        made.append(open_sink("copy", url, feed="shop", store=MemoryStore(), options=options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def at(ts, *rows, **more):
    return Batch([transaction(ts, *(insert(ORDERS, *row) for row in rows))], Checkpoint(ts, str(ts), **more))


def begun(sink):
    """An open sink with an empty table."""
    one = sink()
    one.open()
    one.write(Batch([create(5, ORDERS)], Checkpoint(5, "5")))
    one.flush()
    return one


def stored(rows):
    return {
        int(cluster_id): json.loads(text)
        for cluster_id, text in rows("SELECT clusterID, checkPoint FROM tidb_binlog.checkpoint")
    }


def count(rows, database):
    return rows(f"SELECT COUNT(*) FROM {database}.orders")[0][0]


def test_rows_and_checkpoint_become_durable_together(sink, rows, database):
    one = begun(sink)
    one.write(at(9, (1, "a")))
    assert (stored(rows)[CLUSTER]["commitTS"], count(rows, database)) == (5, 0)
    one.flush()
    assert (stored(rows)[CLUSTER]["commitTS"], count(rows, database)) == (9, 1)
    one.write(at(12, (2, "b")))
    one.close()
    assert (stored(rows)[CLUSTER]["commitTS"], count(rows, database)) == (9, 1)


def test_the_checkpoint_is_what_a_drainer_reads(sink, rows):
    begun(sink)
    assert stored(rows) == {CLUSTER: {"consistent": True, "commitTS": 5, "ts-map": {}, "schema-version": 0}}
    assert rows(
        "SELECT column_name, column_type, column_key FROM information_schema.columns "
        "WHERE table_schema = 'tidb_binlog' ORDER BY ordinal_position"
    ) == [("clusterID", "bigint(20) unsigned", "PRI"), ("checkPoint", "mediumtext", "")]


def test_a_sink_goes_on_at_the_checkpoint_of_a_drainer_and_keeps_what_it_does_not_know(sink, rows):
    begun(sink).close()
    rows(
        """UPDATE tidb_binlog.checkpoint SET checkPoint =
        '{"commitTS":7,"ts-map":{"master-ts":3,"slave-ts":4},"schema-version":45}'"""
    )
    one = sink()
    assert one.open() == Checkpoint(7, "7", None, f"tidb binlog of cluster {CLUSTER}")
    one.write(at(9, (1, "a")))
    assert one.flush() == Checkpoint(9, "9")
    assert stored(rows)[CLUSTER] == {
        "consistent": False,
        "commitTS": 9,
        "ts-map": {"primary-ts": 3, "secondary-ts": 4},
        "schema-version": 45,
    }


def test_a_row_without_a_commit_ts_is_no_checkpoint(sink, rows):
    begun(sink).close()
    rows("""UPDATE tidb_binlog.checkpoint SET checkPoint = '{"commitTS":0,"ts-map":{}}'""")
    assert sink().open() is None


def test_without_a_cluster_id_the_only_row_is_used(sink, rows):
    begun(sink).close()
    one = sink(0)
    assert one.open() == Checkpoint(5, "5", None, f"tidb binlog of cluster {CLUSTER}")
    one.write(at(9, (1, "a")))
    one.flush()
    assert list(stored(rows)) == [CLUSTER]


def test_without_a_cluster_id_and_a_row_the_sink_is_not_opened(sink):
    with pytest.raises(NoCheckpointItem, match="is empty: set the cluster id"):
        sink(0).open()


def test_without_a_cluster_id_several_rows_are_an_error(sink, rows):
    begun(sink).close()
    rows("""INSERT INTO tidb_binlog.checkpoint VALUES (7, '{"commitTS":7}')""")
    with pytest.raises(CheckpointError, match=rf"has the clusters \[7, {CLUSTER}\]: set the cluster id"):
        sink(0).open()


def test_other_clusters_rows_are_named_and_left_alone(sink, rows, caplog):
    begun(sink).close()
    other = sink(7)
    assert other.open() is None
    assert f"has checkpoints of other clusters only: [{CLUSTER}]" in caplog.text
    other.write(at(9))
    other.flush()
    assert [each["commitTS"] for _, each in sorted(stored(rows).items())] == [9, 5]


def test_a_checkpoint_that_somebody_else_has_moved_is_an_error_and_no_row_is_written(sink, rows, database):
    one = begun(sink)
    rows("""UPDATE tidb_binlog.checkpoint SET checkPoint = '{"commitTS":6,"ts-map":{}}'""")
    one.write(at(9, (1, "a")))
    with pytest.raises(SinkError, match="was moved by somebody else"):
        one.flush()
    assert count(rows, database) == 0


@pytest.mark.parametrize(
    "checkpoint", [Checkpoint(9, "log:9"), Checkpoint(9, "9", {})], ids=["position", "snapshot"]
)
def test_a_checkpoint_that_is_more_than_a_commit_ts_is_refused(sink, checkpoint):
    one = begun(sink)
    one.write(Batch([transaction(9)], checkpoint))
    with pytest.raises(CheckpointError, match="stores a commit ts only"):
        one.flush()


def test_spark_refuses_it():
    with pytest.raises(ConfigError, match="Spark stores checkpoints of its own"):
        open_shared(MYSQL, "mysql://root@127.0.0.1/", MySqlOptions(checkpoint="drainer"), None, "", 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": "drainer", "cluster_id": -1}, "cluster_id = -1"),
        ({"cluster_id": 7}, 'cluster_id is for checkpoint = "drainer"'),
        ({"checkpoint": "canal"}, "checkpoint"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        given_sink("copy", "mysql://root@127.0.0.1/", options)
