"""The valid files of a backfill's directory, with several writers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemill.errors import CheckpointError, ConfigError
from tidemill.events import Column, Table
from tidemill.spark.backfill.chunk_file import ChunkWriter
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.spark.backfill.fill import _Sees
from tidemill.spark.backfill.plan import STRIDE, BackfillPlan, ChunkPlan, TablePlan
from tidemill.spark.backfill.records import LaterChanges, Manifest

TABLE = TablePlan(0, Table("shop", "t", (Column("id", "int"),), (0,)), (ChunkPlan(1), ChunkPlan(2)), True)
PLAN = BackfillPlan("mariadb", 1 << 31, "s", ("shop.*",), "b.1:4", "b.1:4", 1 << 40, (TABLE,), 3)


@pytest.fixture
def place(tmp_path: Path) -> BackfillDirectory:
    found = BackfillDirectory(tmp_path / "bf")
    with found.held():
        return found


def written(place: BackfillDirectory, number: int, packets: bytes) -> ChunkWriter:
    writer = ChunkWriter(place, READ, PLAN, TABLE, number)
    writer.add_packets(packets, 1)
    return writer


def names(place: BackfillDirectory) -> list[str]:
    return sorted(path.name for path in (place.path / READ).iterdir())


def test_of_two_tasks_that_read_the_same_chunk_the_first_to_finish_counts(place: BackfillDirectory) -> None:
    first, second = written(place, 1, b"first"), written(place, 1, b"second, and longer")
    record = first.finish("b.1:5", "b.1:5")
    second.finish("b.1:9", "b.1:9")
    assert place.record(READ, 1) == record
    assert names(place) == [record.file.removeprefix("chunks/"), "000001.json"]


def test_what_was_left_is_swept_but_not_what_may_still_be_written(place: BackfillDirectory) -> None:
    kept = written(place, 1, b"kept").finish("b.1:5", "b.1:5")
    gone = written(place, 7, b"of a plan before").finish("b.1:5", "b.1:5")
    running = written(place, 2, b"x" * (1 << 18))
    before = names(place)
    place.sweep(READ, {1: kept}, missing=[2])
    assert set(before) - set(names(place)) == {"000007.json", gone.file.removeprefix("chunks/")}
    record = running.finish("b.1:6", "b.1:6")
    place.sweep(READ, {1: kept, 2: record})
    assert len(names(place)) == 4
    place.sweep(READ, {1: kept})
    assert names(place) == [kept.file.removeprefix("chunks/"), "000001.json"]


def test_changes_that_were_found_first_stay(place: BackfillDirectory) -> None:
    for file in ("one.parquet", "other.parquet"):
        place.save_changes(LaterChanges("b.1:5", file, (1,), 1, (), ()))
    found = place.changes("b.1:5")
    assert found is not None
    assert found.file == "one.parquet"
    assert place.changes("b.1:6") is None


def test_a_chunk_without_rows_has_no_file(place: BackfillDirectory) -> None:
    record = ChunkWriter(place, READ, PLAN, TABLE, 1).finish("b.1:5", "b.1:5")
    assert (record.file, record.rows, record.blocks) == ("", 0, 0)
    assert names(place) == ["000001.json"]


def test_plan_and_manifest_come_back_and_damage_is_said(place: BackfillDirectory) -> None:
    assert place.plan() is None
    assert place.manifest() is None
    place.save_plan(PLAN)
    record = written(place, 1, b"rows").finish("b.1:5", "b.1:5")
    place.save_manifest(Manifest(PLAN, "b.1:5", (record,)))
    assert place.plan() == PLAN
    assert place.manifest() == Manifest(PLAN, "b.1:5", (record,))
    (place.path / "plan.json").write_text('{"kind": ')
    with pytest.raises(CheckpointError, match=r"plan\.json is damaged"):
        place.plan()


def test_one_driver_at_a_time(place: BackfillDirectory) -> None:
    with (
        place.held(),
        pytest.raises(ConfigError, match="another backfill runs in"),
        BackfillDirectory(place.path).held(),
    ):
        pass


def test_timestamps_rise_from_piece_to_piece_and_chunk_to_chunk() -> None:
    numbers = [0, 1, 2]
    firsts = [PLAN.first_ts(number) for number in numbers]
    assert firsts == sorted(set(firsts))
    assert PLAN.piece_ts(1, 5) == firsts[1] + 5
    assert PLAN.piece_ts(1, STRIDE - 2) < firsts[2] < PLAN.end_ts


def test_one_that_is_half_removed_is_still_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = BackfillDirectory(tmp_path / "bf")
    with place.held():
        (place.path / "done.json").touch()
        (place.path / "plan.json").touch()
    whole = shutil.rmtree

    def killed(path: Path) -> None:
        if path == place.path:
            raise InterruptedError
        whole(path)

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(InterruptedError):
        place.remove()
    assert [path.name for path in place.path.iterdir()] == ["done.json"]
    monkeypatch.undo()
    place.remove()
    assert not place.path.exists()


def test_one_that_is_to_be_kept_says_so(tmp_path: Path) -> None:
    place = BackfillDirectory(tmp_path / "bf")
    with place.held():
        assert not place.is_kept
        place.keep()
    assert BackfillDirectory(tmp_path / "bf").is_kept


def test_an_executor_that_does_not_see_the_directory_says_so(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    (said,) = _Sees(path)([])
    assert said.schema.names == ["kind", "text"]
    assert said.to_pylist() == [
        {"kind": "NotLoadable", "text": f"directory: executors don't see {tmp_path}: name one that all share"}
    ]
    path.touch()
    (said,) = _Sees(path)([])
    assert said.num_rows == 0


def test_a_plan_of_another_version_is_refused(place: BackfillDirectory) -> None:
    place.save_plan(PLAN)
    assert place.plan() == PLAN
    place.save_plan(replace(PLAN, version=1))
    with pytest.raises(CheckpointError, match="holds a backfill of version 1; this tidemill reads version 2"):
        place.plan()
