"""Checkpoints of TiDB-Binlog's drainer: in a file, in MariaDB, and what holds for both."""

from __future__ import annotations

import logging
import os
import stat
import tomllib

import pytest

from tidemill.actors import ManualClock
from tidemill.errors import CheckpointError, ConfigError, SinkError
from tidemill.events import Checkpoint, TablePosition
from tidemill.sink.drainer.checkpoint import RETRY_SECONDS, TRIES, CheckpointClosed, DrainerCheckpoint
from tidemill.sink.drainer.content import DrainerState, from_json, to_json
from tidemill.sink.drainer.store import DrainerStore, open_checkpoint
from tidemill.sink.drainer.table import CheckpointTable, NoCheckpointItem

CLUSTER = 6766844929645682862


class Immediate(ManualClock):
    """A clock whose alarms ring at once, and which keeps their times."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def call_at(self, when, callback):
        self.pauses.append(when - self.now())
        callback()
        return super().call_at(when, lambda: None)


def opened(kind, location, *, initial=0, cluster_id=CLUSTER, clock=None):
    return open_checkpoint(
        kind,
        str(location),
        clock or Immediate(),
        present_ts=lambda: 777,
        initial_commit_ts=initial,
        cluster_id=cluster_id,
    )


@pytest.fixture(params=["file", "mysql", "tidb"])
def place(request, tmp_path):
    """Kind and location of a checkpoint that nothing was saved in."""
    if request.param == "file":
        return request.param, tmp_path / "savepoint"
    private = request.getfixturevalue("checkpoints")
    return request.param, private.url()


# --- both forms


def test_a_saved_checkpoint_is_loaded_again(place):
    first = opened(*place)
    first.load()
    first.save(413015447777050625, consistent=True, schema_version=45)
    again = opened(*place)
    assert again.load()
    assert (again.ts, again.consistent, again.schema_version) == (413015447777050625, True, 45)


@pytest.mark.parametrize(("initial", "ts"), [(5, 5), (-1, 777), (0, 0)])
def test_without_a_checkpoint_the_initial_commit_ts_is_taken(place, initial, ts):
    one = opened(*place, initial=initial)
    assert not one.load()
    assert one.ts == ts


def test_a_stored_commit_ts_of_0_counts_as_none(place):
    opened(*place).save(0)
    one = opened(*place, initial=5)
    assert not one.load()
    assert one.ts == 5


def test_the_schema_version_never_falls(place):
    one = opened(*place)
    one.save(1, schema_version=9)
    one.save(2, schema_version=3)
    assert one.schema_version == 9


def test_going_back_is_done_and_logged(place, caplog):
    one = opened(*place)
    one.save(9)
    with caplog.at_level(logging.ERROR, "tidemill.sink"):
        one.save(4)
    assert one.ts == 4
    assert "the checkpoint goes back from 9 to 4" in caplog.text


@pytest.mark.parametrize("call", ["load", "close", "save"])
def test_a_closed_checkpoint_refuses_every_call_also_a_second_close(place, call):
    one = opened(*place)
    one.close()
    with pytest.raises(CheckpointClosed, match="closed already"):
        getattr(one, call)(*([1] if call == "save" else []))


def test_another_kind_is_refused_with_the_known_ones():
    with pytest.raises(
        ConfigError, match="unsupported checkpoint type 'oracle'; accepted: mysql, tidb, file"
    ):
        opened("oracle", "")


# --- tries


class Failing:
    where = "somewhere"

    def __init__(self, failures):
        self.failures = failures
        self.saved = []

    def load(self):
        raise OSError("unreadable")

    def save(self, state):
        if self.failures:
            self.failures -= 1
            raise OSError("disk full")
        self.saved.append(state.commit_ts)

    def close(self):
        pass


@pytest.mark.parametrize("failures", [0, 1, TRIES - 1])
def test_a_save_is_tried_again_each_second(failures):
    medium, clock = Failing(failures), Immediate()
    DrainerCheckpoint(medium, clock, initial_commit_ts=0, present_ts=int).save(5)
    assert (medium.saved, clock.pauses) == ([5], [RETRY_SECONDS] * failures)


def test_a_save_that_fails_five_times_is_fatal_and_moves_nothing():
    one = DrainerCheckpoint(Failing(TRIES), Immediate(), initial_commit_ts=3, present_ts=int)
    with pytest.raises(CheckpointError, match="somewhere can't be written after 5 tries: disk full"):
        one.save(5)
    assert one.ts == 3


def test_a_checkpoint_that_cannot_be_read_is_an_error_and_leaves_the_initial_ts():
    one = DrainerCheckpoint(Failing(0), Immediate(), initial_commit_ts=3, present_ts=int)
    with pytest.raises(CheckpointError, match="somewhere can't be read: unreadable"):
        one.load()
    assert one.ts == 3


# --- the content


def test_the_json_is_that_of_the_newest_version():
    state = DrainerState(
        commit_ts=65536, ts_map={"primary-ts": 65536, "secondary-ts": 3333}, schema_version=7
    )
    assert to_json(state) == (
        '{"consistent":false,"commitTS":65536,"ts-map":{"primary-ts":65536,"secondary-ts":3333},'
        '"schema-version":7}'
    )


@pytest.mark.parametrize(
    ("text", "ts_map"),
    [
        ('{"commitTS":413015447777050625,"ts-map":{}}', {}),
        ('{"commitTS":413015447777050625,"ts-map":null}', {}),
        (
            '{"commitTS":413015447777050625,"ts-map":{"master-ts":8,"slave-ts":9}}',
            {"primary-ts": 8, "secondary-ts": 9},
        ),
        (
            '{"consistent":true,"commitTS":413015447777050625,"ts-map":{"primary-ts":8,"secondary-ts":9},'
            '"schema-version":3,"status":1}',
            {"primary-ts": 8, "secondary-ts": 9},
        ),
    ],
)
def test_json_of_every_version_is_read(text, ts_map):
    state = from_json(text, "table")
    assert (state.commit_ts, state.ts_map) == (413015447777050625, ts_map)


@pytest.mark.parametrize("text", ["", "[]", '{"commitTS":"5"}', '{"commitTS":5'])
def test_damaged_json_is_an_error(text):
    with pytest.raises(CheckpointError, match="table is not a checkpoint of a drainer"):
        from_json(text, "table")


# --- the file


def test_the_file_is_toml_that_others_may_read(tmp_path):
    path = tmp_path / "savepoint"
    before = os.umask(0o077)
    try:
        opened("file", path).save(413015447777050625)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert tomllib.loads(path.read_text()) == {
        "consistent": False,
        "commitTS": 413015447777050625,
        "schema-version": 0,
    }
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_an_old_version_is_read(tmp_path):
    path = tmp_path / "savepoint"
    path.write_text("status = 0\ncommitTS = 413015447777050625\n")
    one = opened("file", path)
    assert one.load()
    assert one.ts == 413015447777050625


@pytest.mark.parametrize("content", [b"commitTS = ", b'commitTS = "5"\n', b"\xff\xfe"])
def test_a_damaged_file_is_an_error(tmp_path, content):
    path = tmp_path / "savepoint"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="savepoint is not a checkpoint of a drainer"):
        opened("file", path).load()


# --- the table


def test_the_table_and_its_row_are_those_of_tidb_binlog(checkpoints, rows):
    one = opened("mysql", checkpoints.url())
    one.save(413015447777050625)
    one.save(413015447777050626, secondary_ts=44)
    assert rows("SELECT clusterID, checkPoint FROM tidb_binlog.checkpoint") == [
        (
            CLUSTER,
            '{"consistent":false,"commitTS":413015447777050626,"ts-map":{"primary-ts":413015447777050626,'
            '"secondary-ts":44},"schema-version":0}',
        )
    ]
    assert rows(
        "SELECT column_name, column_type, column_key FROM information_schema.columns "
        "WHERE table_schema = 'tidb_binlog' ORDER BY ordinal_position"
    ) == [("clusterID", "bigint(20) unsigned", "PRI"), ("checkPoint", "mediumtext", "")]
    one.close()


def stored(checkpoints, rows, *clusters):
    table = CheckpointTable(checkpoints.url(), 1)
    table.load()
    table.close()
    for cluster_id in clusters:
        rows(f"""INSERT INTO tidb_binlog.checkpoint VALUES ({cluster_id}, '{{"commitTS":{cluster_id}}}')""")


def test_without_a_cluster_id_the_only_row_is_taken_and_written(checkpoints, rows):
    stored(checkpoints, rows, CLUSTER)
    one = opened("mysql", checkpoints.url(), cluster_id=0)
    assert one.load()
    assert one.ts == CLUSTER
    one.save(9)
    one.close()
    assert [cluster_id for (cluster_id,) in rows("SELECT clusterID FROM tidb_binlog.checkpoint")] == [CLUSTER]


def test_without_a_cluster_id_an_empty_table_is_an_error_of_its_own(checkpoints):
    one = opened("mysql", checkpoints.url(), cluster_id=0, initial=5)
    with pytest.raises(NoCheckpointItem, match="is empty: set the cluster id"):
        one.load()
    assert one.ts == 5
    one.close()


def test_without_a_cluster_id_several_rows_are_an_error(checkpoints, rows):
    stored(checkpoints, rows, 7, 8)
    one = opened("mysql", checkpoints.url(), cluster_id=0)
    with pytest.raises(CheckpointError, match=r"has the clusters \[7, 8\]: set the cluster id"):
        one.load()
    one.close()


def test_a_table_of_another_cluster_is_named_and_left_alone(checkpoints, rows, caplog):
    stored(checkpoints, rows, 7)
    one = opened("mysql", checkpoints.url(), cluster_id=8, initial=5)
    assert not one.load()
    assert one.ts == 5
    assert "has checkpoints of other clusters only: [7]" in caplog.text
    one.save(6)
    one.close()
    assert [each for (each,) in rows("SELECT clusterID FROM tidb_binlog.checkpoint ORDER BY 1")] == [7, 8]


def test_a_lost_connection_is_opened_again_by_the_next_try(checkpoints, rows):
    one = opened("mysql", checkpoints.url())
    one.save(1)
    ((thread,),) = one._medium._session.rows("SELECT CONNECTION_ID()")
    rows(f"KILL {thread}")
    one.save(2)
    one.close()
    assert '"commitTS":2' in rows("SELECT checkPoint FROM tidb_binlog.checkpoint")[0][0]


def test_an_error_does_not_show_the_password(checkpoints):
    url = checkpoints.url(password="secret")
    with pytest.raises(SinkError) as caught:
        opened("mysql", url).load()
    assert "secret" not in str(caught.value)


# --- as the checkpoint of a sink


def test_as_a_sink_s_checkpoint_the_position_is_the_ts(tmp_path):
    store = DrainerStore(opened("file", tmp_path / "savepoint"), "cluster 7")
    assert store.load() is None
    store.save(Checkpoint(9, "9", None, "cluster 7"))
    again = DrainerStore(opened("file", tmp_path / "savepoint"), "cluster 7")
    assert again.load() == (Checkpoint(9, "9", None, "cluster 7"), 0)


@pytest.mark.parametrize(
    ("checkpoint", "length"),
    [
        (Checkpoint(9, "9", {}), 0),
        (Checkpoint(9, "9", tables={"a.b": TablePosition(4, "4")}), 0),
        (Checkpoint(9, "9"), 100),
    ],
)
def test_more_than_a_ts_is_refused(tmp_path, checkpoint, length):
    with pytest.raises(CheckpointError, match="holds a commit ts only"):
        DrainerStore(opened("file", tmp_path / "savepoint"), "").save(checkpoint, length)
