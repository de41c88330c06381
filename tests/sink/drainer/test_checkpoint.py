"""Checkpoints of TiDB-Binlog's drainer: their content, and those in a file."""

from __future__ import annotations

import logging
import os
import stat
import tomllib
from pathlib import Path

import pytest

from tidemill.actors import ManualClock
from tidemill.errors import CheckpointError
from tidemill.sink.drainer.content import DrainerState, from_json, to_json
from tidemill.sink.drainer.file import RETRY_SECONDS, TRIES, DrainerFile
from tidemill.store import disk


class Immediate(ManualClock):
    """A clock whose alarms ring at once, and which keeps their times."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def call_at(self, when, callback):
        self.pauses.append(when - self.now())
        callback()
        return super().call_at(when, lambda: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "savepoint"


def opened(path, clock=None):
    return DrainerFile(path, clock or Immediate())


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


def test_a_saved_checkpoint_is_loaded_again(path):
    first = opened(path)
    assert not first.load()
    first.save(413015447777050625)
    again = opened(path)
    assert again.load()
    assert again.ts == 413015447777050625


def test_a_stored_commit_ts_of_0_counts_as_none(path):
    opened(path).save(0)
    one = opened(path)
    assert not one.load()
    assert one.ts == 0


def test_the_schema_version_stays(path):
    path.write_text("commitTS = 8\nschema-version = 45\nconsistent = true\n")
    one = opened(path)
    assert one.load()
    one.save(9)
    assert tomllib.loads(path.read_text()) == {"consistent": False, "commitTS": 9, "schema-version": 45}


def test_going_back_is_done_and_logged(path, caplog):
    one = opened(path)
    one.save(9)
    with caplog.at_level(logging.ERROR, "tidemill.sink"):
        one.save(4)
    assert one.ts == 4
    assert "the checkpoint goes back from 9 to 4" in caplog.text


def test_the_file_is_toml_that_others_may_read(path):
    before = os.umask(0o077)
    try:
        opened(path).save(413015447777050625)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert tomllib.loads(path.read_text()) == {
        "consistent": False,
        "commitTS": 413015447777050625,
        "schema-version": 0,
    }
    assert list(path.parent.iterdir()) == [path]


def test_a_file_of_an_old_version_is_read(path):
    path.write_text("status = 0\ncommitTS = 413015447777050625\n")
    one = opened(path)
    assert one.load()
    assert one.ts == 413015447777050625


@pytest.mark.parametrize("content", [b"commitTS = ", b'commitTS = "5"\n', b"\xff\xfe"])
def test_a_damaged_file_is_an_error(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="savepoint is not a checkpoint of a drainer"):
        opened(path).load()


def test_a_file_that_cannot_be_read_is_an_error_and_leaves_no_ts(path):
    one = opened(path)
    one.save(3)
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match="savepoint can't be read"):
        one.load()
    assert one.ts == 0


# --- tries


class Failing:
    """Fails some writes to the disk."""

    def __init__(self, failures):
        self.failures = failures
        self.saved = []

    def replace(self, path: Path, content: bytes, *, mode: int) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("disk full")
        self.saved.append(tomllib.loads(content.decode())["commitTS"])


@pytest.mark.parametrize("failures", [0, 1, TRIES - 1])
def test_a_save_is_tried_again_each_second(failures, path, monkeypatch):
    failing, clock = Failing(failures), Immediate()
    monkeypatch.setattr(disk, "replace", failing.replace)
    opened(path, clock).save(5)
    assert (failing.saved, clock.pauses) == ([5], [RETRY_SECONDS] * failures)


def test_a_save_that_fails_five_times_is_fatal_and_moves_nothing(path, monkeypatch):
    one = opened(path)
    one.save(3)
    monkeypatch.setattr(disk, "replace", Failing(TRIES).replace)
    with pytest.raises(CheckpointError, match="savepoint can't be written after 5 tries: disk full"):
        one.save(5)
    assert one.ts == 3
