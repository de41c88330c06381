"""Delta tables that Spark's tasks and driver write, without Spark: each batch is in the tables once."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tidemill.errors import SinkError
from tidemill.events import Batch, Checkpoint, Item
from tidemill.sink import open_sink
from tidemill.spark.write.files import Made
from tidemill.spark.write.options import WriteOptions
from tidemill.spark.write.task import write_partition
from tidemill.testing.changes import MemoryStore

from .test_writer_attempts import OTHER, batches, insert, place, prepared, published, stream, widen
from .test_writer_attempts import WIDE as WIDER


class Lake:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.options = WriteOptions(url=f"delta://{directory}")
        self.files = prepared(self.options)

    def publish(self, epoch: int, *groups: list[Item]) -> None:
        published(self.files, self.options, stream(epoch), *groups)

    def staged(self, epoch: int, *groups: list[Item]) -> list[Made]:
        return [write_partition(self.options, stream(epoch), batches(*groups))]

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.directory / name)

    def ids(self, name: str = "shop.log") -> list[int]:
        return sorted(row["after"]["id"] for row in self.table(name).to_pyarrow_table().to_pylist())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_a_batch_that_comes_again_is_added_once(lake: Lake) -> None:
    lake.publish(0, [insert(10, 1)])
    for _ in range(2):
        lake.publish(1, [insert(20, 2, 3)], [widen(30)], [insert(40, 4, table=WIDER)])
    assert lake.ids() == [1, 2, 3, 4]
    assert lake.table("ddl").to_pyarrow_table().num_rows == 1
    assert sorted(lake.table("versions").to_pyarrow_table()["commit_ts"].to_pylist()) == [10, 40]


def test_queries_and_a_feed_write_into_one_folder(lake: Lake, tmp_path: Path) -> None:
    local = open_sink("copy", f"delta://{lake.directory}", feed="f", store=MemoryStore(), options={})
    local.open()
    local.write(Batch([insert(10, 1)], Checkpoint(10, "", None, "somewhere")))
    local.flush()
    local.close()
    lake.publish(0, [insert(20, 2)])
    published(lake.files, lake.options, place(0, "another"), [insert(30, 3)])
    assert lake.ids() == [1, 2, 3]


def test_a_table_of_another_program_is_refused(lake: Lake) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(lake.directory / "shop.log", pa.table({"a": [1]}))
    with pytest.raises(SinkError, match=r"shop.log is a Delta table that another program made"):
        lake.publish(0, [insert(10, 1)])


def test_a_driver_that_goes_on_after_another_has_taken_over_changes_nothing(lake: Lake) -> None:
    lake.publish(0, [insert(10, 1)])
    late = lake.staged(1, [insert(20, 2)])
    other = Lake(lake.directory)
    other.publish(1, [insert(20, 2)])
    other.publish(2, [insert(30, 3)])
    before = {name: lake.table(name).version() for name in ("shop.log", "versions")}
    with pytest.raises(SinkError, match=r"has batch 2 of the query .* so another driver has taken over"):
        lake.files.publish(late)
    assert before == {name: lake.table(name).version() for name in before}
    other.publish(3, [insert(40, 4)])  # it wasn't fenced off
    assert lake.ids() == [1, 2, 3, 4]


@pytest.mark.parametrize("point", ["sink.committed", "storage.publishing", "lake.adding", "lake.telling"])
def test_a_driver_paused_in_a_commit_adds_nothing_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    lake.publish(0, [insert(10, 1)], [insert(11, 1, table=OTHER)])
    late = lake.staged(1, [insert(20, 2)], [insert(21, 2, table=OTHER)])
    other = Lake(lake.directory)

    passes = count()

    def paused(name: str) -> None:
        if name == point and not next(passes):
            other.publish(1, [insert(20, 2)], [insert(21, 2, table=OTHER)])
            other.publish(2, [insert(30, 3)])

    for module in PATCHED:
        monkeypatch.setattr(f"tidemill.sink.files.{module}.reach", paused)
    try:
        lake.files.publish(late)
    except SinkError as error:
        assert "another copy of feed" in str(error)  # noqa: PT017
    assert lake.ids() == [1, 2, 3]
    assert lake.ids("shop.other") == [1, 2]
    assert lake.table("versions").to_pyarrow_table().num_rows == 2 + 2 + 1


PATCHED = ("commits", "lakes.layout")
