"""Tables of lakes that Spark's tasks and driver write, without Spark: each batch is in the tables once."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from tidemill.errors import SinkError
from tidemill.events import Batch, Checkpoint, Column, Item, RowChange, Table, Transaction
from tidemill.sink import open_sink
from tidemill.spark.write.files import Made
from tidemill.spark.write.options import WriteOptions
from tidemill.spark.write.task import write_partition
from tidemill.testing.changes import MemoryStore

from ..sink.storage.lakes import LAKES, Lake, RestLake
from .test_writer_attempts import LOG, OTHER, batches, insert, place, prepared, published, stream, widen
from .test_writer_attempts import WIDE as WIDER


class Queries:
    """A lake, and queries that write to it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.options = WriteOptions(url=lake.url(), sink=lake.options)
        self.files = prepared(self.options)

    def publish(self, epoch: int, *groups: list[Item]) -> None:
        published(self.files, self.options, stream(epoch), *groups)

    def staged(self, epoch: int, *groups: list[Item]) -> list[Made]:
        return [self.task(epoch, 0, *groups)]

    def task(self, epoch: int, partition: int, *groups: list[Item]) -> Made:
        return write_partition(self.options, stream(epoch, partition), batches(*groups))

    def ids(self, name: str = "shop.log") -> list[int]:
        return sorted(row["after"]["id"] for row in self.lake.arrow(name).to_pylist())


@pytest.fixture(params=[*LAKES, "rest"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Queries:
    if request.param == "rest":
        return Queries(RestLake(tmp_path / "lake", request.getfixturevalue("iceberg_rest").port))
    return Queries(LAKES[request.param](tmp_path / "lake"))


def test_a_batch_that_comes_again_is_added_once(lake: Queries) -> None:
    lake.publish(0, [insert(10, 1)])
    for _ in range(2):
        lake.publish(1, [insert(20, 2, 3)], [widen(30)], [insert(40, 4, table=WIDER)])
    assert lake.ids() == [1, 2, 3, 4]
    assert lake.lake.arrow("ddl").num_rows == 1
    assert sorted(lake.lake.arrow("versions")["commit_ts"].to_pylist()) == [10, 40]


def test_queries_and_a_feed_write_into_one_folder(lake: Queries) -> None:
    local = open_sink("copy", lake.options.url, feed="f", store=MemoryStore(), options=lake.lake.options)
    local.open()
    local.write(Batch([insert(10, 1)], Checkpoint(10, "", None, "somewhere")))
    local.flush()
    local.close()
    lake.publish(0, [insert(20, 2)])
    published(lake.files, lake.options, place(0, "another"), [insert(30, 3)])
    assert lake.ids() == [1, 2, 3]


FIRST, SECOND, THIRD = (
    Table("shop", "log", (*LOG.columns, *[Column(name, "int") for name in names]))
    for names in ([], ["size"], ["size", "weight"])
)


def full(ts: int, number: int, table: Table) -> Transaction:
    more = [number * 100 + place for place in range(2, len(table.columns))]
    row = (number, f"{number}.1", *more)
    return Transaction(ts, ts, "somewhere", [RowChange(ts, ts, table, "insert", None, row)], f"at {ts}")


@pytest.mark.parametrize("is_new", [True, False])
def test_tasks_of_one_batch_know_different_columns_of_a_table(lake: Queries, is_new: bool) -> None:
    if not is_new:
        lake.publish(0, [insert(10, 1)])
    epoch = int(not is_new)
    tasks = [
        lake.task(epoch, 0, [full(20, 2, FIRST)], [full(21, 3, SECOND)]),
        lake.task(epoch, 1, [full(30, 4, THIRD)]),
        lake.task(epoch, 2, [full(40, 5, SECOND)]),
    ]
    lake.files.publish(tasks)
    rows = [tuple(row["after"].values()) for row in lake.lake.list("shop.log")]
    assert rows == [
        *([] if is_new else [(1, None, None, None)]),
        (2, "2.1", None, None),
        (3, "3.1", 302, None),
        (4, "4.1", 402, 403),
        (5, "5.1", 502, None),
    ]


def test_a_table_of_another_program_is_refused(lake: Queries) -> None:
    lake.lake.make("shop.log", pa.table({"a": [1]}))
    with pytest.raises(SinkError, match=r"shop.log is an? (Delta|Iceberg) table that another program"):
        lake.publish(0, [insert(10, 1)])


def test_a_driver_that_goes_on_after_another_has_taken_over_changes_nothing(lake: Queries) -> None:
    lake.publish(0, [insert(10, 1)])
    late = lake.staged(1, [insert(20, 2)])
    other = Queries(lake.lake)
    other.publish(1, [insert(20, 2)])
    other.publish(2, [insert(30, 3)])
    before = {name: lake.lake.version(name) for name in ("shop.log", "versions")}
    with pytest.raises(SinkError, match=r"has batch 2 of the query .* so another driver has taken over"):
        lake.files.publish(late)
    assert before == {name: lake.lake.version(name) for name in before}
    other.publish(3, [insert(40, 4)])  # it wasn't fenced off
    assert lake.ids() == [1, 2, 3, 4]


@pytest.mark.parametrize("point", ["sink.committed", "storage.publishing", "lake.adding", "lake.telling"])
def test_a_driver_paused_in_a_commit_adds_nothing_twice(
    lake: Queries, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    lake.publish(0, [insert(10, 1)], [insert(11, 1, table=OTHER)])
    late = lake.staged(1, [insert(20, 2)], [insert(21, 2, table=OTHER)])
    other = Queries(lake.lake)

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
    assert lake.lake.arrow("versions").num_rows == 2 + 2 + 1


PATCHED = ("commits", "lakes.layout")
