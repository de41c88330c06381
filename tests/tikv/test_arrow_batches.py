"""A feed of TiKV as Arrow batches: values, order, acknowledgements, a kill."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemill
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.child import Child

pytestmark = pytest.mark.usefixtures("decoder")


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key, price decimal(8,2), name varchar(40))")
        made.execute("create table shop.note (id varchar(20) primary key, text varchar(40))")
        yield made


def opened(tidb: Tidb, directory: Path, **more: Any) -> tidemill.OpenFeed[Any]:
    more.setdefault("until", "now")
    return tidemill.open(f"tikv://{tidb.pd_address}", ["shop.*"], data_dir=directory, arrow=True, **more)


def read(feed: tidemill.OpenFeed[Any]) -> list[Any]:
    """Return all batches, acknowledged."""
    found = []
    for batch in feed.arrow_batches():
        found.append(batch)
        feed.ack(batch)
    return found


def change(tidb: Tidb) -> None:
    """Two transactions, one of both tables."""
    with tidb.transaction() as txn:
        txn.insert("shop.item", (1, "1.50", "one"))
        txn.insert("shop.item", (2, None, "two"))
        txn.insert("shop.note", ("a", "first"))
    with tidb.transaction() as txn:
        txn.update("shop.item", 1, {"name": "uno"})
        txn.delete("shop.item", 2)


def test_rows_come_as_columns_of_their_table(tidb: Tidb, tmp_path: Path) -> None:
    with opened(tidb, tmp_path) as feed:  # only the place to begin
        assert read(feed) == []
    change(tidb)
    found: dict[str, list[Any]] = {}
    with opened(tidb, tmp_path) as feed:
        batches = read(feed)
    for batch in batches:
        assert isinstance(batch, tidemill.ArrowBatch)
        assert isinstance(batch.data, pa.RecordBatch)
        batch.data.validate(full=True)
        for row in batch.data.to_pylist():
            assert row["commit_ts"] >> 18 == round(row["commit_time"].timestamp() * 1000)
            images = [row[name] and tuple(row[name].values()) for name in ("before", "after")]
            found.setdefault(batch.table.name, []).append((row["sequence"], row["op"], *images))
    one, two = (1, Decimal("1.50"), "one"), (2, None, "two")
    assert found["item"] == [
        (0, "insert", None, one),
        (1, "insert", None, two),
        (0, "delete", two, None),
        (1, "update", one, (1, Decimal("1.50"), "uno")),
    ]
    assert found["note"] == [(2, "insert", None, ("a", "first"))]


def test_the_rows_that_are_there_come_first(tidb: Tidb, tmp_path: Path) -> None:
    change(tidb)
    with opened(tidb, tmp_path) as feed:
        batches = read(feed)
    rows = [row["after"] for batch in batches for row in batch.data.to_pylist()]
    assert rows == [{"id": 1, "price": Decimal("1.50"), "name": "uno"}, {"id": "a", "text": "first"}]
    assert batches[-1].last


@pytest.mark.parametrize("decoder", ["native"], indirect=True)  # that in Python makes tuples first
def test_raw_rows_are_never_made_into_objects(tidb: Tidb, tmp_path: Path, monkeypatch: Any) -> None:
    change(tidb)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a row was decoded to a tuple")

    monkeypatch.setattr("tidemill.codec.tidb.changes.ChangesDecoder.read", refuse)
    with opened(tidb, tmp_path) as feed:
        assert sum(batch.data.num_rows for batch in read(feed)) == 2  # the existing rows
    with tidb.transaction() as txn:
        txn.insert("shop.item", (3, "3", "three"))
        txn.update("shop.item", 1, {"name": "one"})
    with opened(tidb, tmp_path) as feed:
        assert sum(batch.data.num_rows for batch in read(feed)) == 2


def test_async_for_and_schema_changes(tidb: Tidb, tmp_path: Path) -> None:
    with opened(tidb, tmp_path, source_options={"snapshot": False}) as feed:
        assert read(feed) == []
    change(tidb)
    tidb.execute("alter table shop.item add column n int")
    with tidb.transaction() as txn:
        txn.update("shop.item", 1, {"n": 5})

    async def read_all() -> list[Any]:
        found: list[Any] = []
        async with opened(tidb, tmp_path, ddl=True) as feed:
            async for batch in feed.arrow_batches():
                found.append(batch)
                feed.ack(batch)
        return found

    found = asyncio.run(read_all())
    place = next(i for i, one in enumerate(found) if isinstance(one, tidemill.Ddl))
    assert found[place - 1].last
    assert len(found[place - 1].table.columns) in (2, 3)
    assert found[-1].data.column("before").to_pylist()[0]["n"] is None
    assert found[-1].data.column("after").to_pylist()[0]["n"] == 5


def test_the_program_is_told_of_its_mistakes(tidb: Tidb, tmp_path: Path) -> None:
    change(tidb)
    with (
        tidemill.open(f"tikv://{tidb.pd_address}", ["shop.*"], data_dir=tmp_path) as feed,
        pytest.raises(tidemill.UsageError, match="open the feed with arrow=True"),
    ):
        feed.arrow_batches()
    feed = opened(tidb, tmp_path)
    with pytest.raises(tidemill.UsageError, match="'nul' is neither 'fail' nor 'null'"):
        feed.arrow_batches(invalid_dates="nul")  # type: ignore[arg-type]
    with pytest.raises(tidemill.UsageError, match="inside `with"):
        iter(feed.arrow_batches())
    with feed:
        batch = next(iter(feed.arrow_batches()))
        later = tidemill.ArrowBatch(batch.table, batch.data, 1 << 62, 0, batch.source, last=True)
        with pytest.raises(tidemill.UsageError, match="didn't come from this feed"):
            feed.ack(later)


def test_what_was_not_acknowledged_before_a_kill_comes_again_and_nothing_else(
    tidb: Tidb, tmp_path: Path
) -> None:
    state, file = tmp_path / "state", tmp_path / "lines"
    follower = Path(__file__).with_name("arrow_follower.py")
    url = f"tikv://{tidb.pd_address}"

    def follow(batches: int) -> Child:
        command = [sys.executable, follower, url, "shop.*", state, file, str(batches)]
        return Child(command, tmp_path / "log")

    with follow(0) as child:
        assert child.exit_status() == 0, child.output()
    committed = []
    for number in range(40):
        with tidb.transaction() as txn:
            txn.insert("shop.item", (number, "1", f"item {number}"))
            txn.insert("shop.note", (str(number), f"note {number}"))
        committed.append(number)
    with follow(2) as child:
        child.dies()
    at_kill = file.read_text().splitlines()
    assert at_kill
    with follow(0) as child:
        assert child.exit_status() == 0, child.output()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for table, first in (("item", [*range(40)]), ("note", [str(number) for number in range(40)])):
        rows = [line for line in lines if line[3] == table]
        assert {line[5][0] for line in rows} == set(first)
        again = lines[len(at_kill) :]
        stamps = [tuple(line[:3]) for line in again if line[3] == table]
        assert stamps == sorted(set(stamps))
    for again in (json.loads(line) for line in at_kill):
        assert lines.count(again) <= 2
