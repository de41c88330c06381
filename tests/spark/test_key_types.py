"""Tables with each type of key, through everything that reads chunks of tables, while their rows change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.position import Position
from tidemill.codec.mysql.result_rows import ResultRowsDecoder
from tidemill.compare import TableResult, open_diff
from tidemill.dialects.mysql.client import Session, connect, disconnect
from tidemill.dialects.mysql.key_range import chunk_query
from tidemill.dialects.mysql.result import Result
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.events import KeyRange, OrderedKey, Row
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.snapshot.key_bytes import decode_key, encode_key
from tidemill.snapshot.mysql.bounds import bounds
from tidemill.snapshot.mysql.definitions import read_table
from tidemill.snapshot.mysql.packet_keys import PacketKeys
from tidemill.snapshot.mysql.tables import FoundTable, SourceTable
from tidemill.spark.backfill.catch_up import collect
from tidemill.spark.backfill.chunk_file import ChunkFiles
from tidemill.spark.backfill.directory import MERGED, READ, BackfillDirectory
from tidemill.spark.backfill.mysql_chunk import plan_mysql, read_mysql
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.spark.backfill.records import Manifest
from tidemill.spark.backfill.replay import Replay
from tidemill.spark.backfill.retry_deadline import RetryDeadline
from tidemill.spark.backfill.tasks import MergeChunks
from tidemill.spark.snapshot import plan as snapshot_plan
from tidemill.testing.mariadb_client import Client
from tidemill.testing.private_server import PASSWORD
from tidemill.testing.progress import feed_ended

from ..key_types import ORDINARY, TYPES
from .snapshot.test_snapshot import Snapshot


def each(*left_out: str) -> pytest.MarkDecorator:
    """Run a test for each type; some only as soaks."""
    names = [name for name in TYPES if name not in left_out]
    return pytest.mark.parametrize(
        "kind", [name if name in ORDINARY else pytest.param(name, marks=pytest.mark.soak) for name in names]
    )


EACH = each()
EACH_OF_SPARK = each("INET4", "INET6")
"""A binlog doesn't tell the others."""
CHUNK_ROWS = 7


class Item:
    """The table `item`, whose key has a column of the type, and an integer. Its rows change at random."""

    def __init__(self, sql: Client, kind: str) -> None:
        self.sql = sql
        self.options = MysqlOptions(port=sql.server.port, password=PASSWORD)
        self._kind = kind
        self._random = Random(kind)
        ids = [self.id(number) for number in range(1, 13)]
        rows = ", ".join(f"({key}, {number}, 'first')" for key in ids for number in range(1, 6))
        sql(
            "SET sql_mode = ''",
            f"CREATE TABLE item (id {kind}, n INT, note VARCHAR(20), PRIMARY KEY (id, n))",
            f"INSERT INTO item VALUES {rows}",
        )

    def id(self, number: int) -> str:
        return TYPES[self._kind].format(number)

    def change(self, number: int) -> None:
        random = self._random
        key, other = self.id(random.randint(1, 12)), self.id(random.randint(1, 12))
        self.sql(
            random.choice(
                (
                    f"UPDATE item SET note = 'later {number}' WHERE id = {key}",
                    f"DELETE FROM item WHERE id = {key} AND n < 3",
                    f"INSERT INTO item VALUES ({key}, {100 + number}, 'new')",
                    f"UPDATE item SET id = {other}, n = {-number} WHERE id = {key} AND n = 4",
                )
            )
        )

    def table(self, session: Session) -> SourceTable:
        found = read_table(session, FoundTable(self.sql.database, "item"))
        assert found is not None
        return found


@pytest.fixture
def item(sql: Client, request: pytest.FixtureRequest) -> Item:
    return Item(sql, request.getfixturevalue("kind"))


def chunks_of(item: Item, session: Session) -> Iterator[tuple[KeyRange, list[OrderedKey], list[Row]]]:
    """Yield the ranges of the table with their keys and rows."""
    table = item.table(session).table
    found = bounds(session, item.options, table, CHUNK_ROWS, KeyRange())
    for edge in pairwise([None, *found, None]):
        result = Result(session, item.options, table, chunk_query(table, KeyRange(*edge)))
        packets = b""
        while not result.done:
            packets += result.read()
        rows = [change.after or () for change in ResultRowsDecoder(table).decode(packets, 0, 0)]
        yield KeyRange(*edge), [key for key, _, _ in PacketKeys(table).rows(packets)], rows


def present(item: Item) -> list[Row]:
    session = connect(item.options)
    try:
        return [row for _, _, rows in chunks_of(item, session) for row in rows]
    finally:
        disconnect(session)


@EACH
def test_the_bounds_divide_it(item: Item, kind: str) -> None:
    session = connect(item.options)
    try:
        assert item.table(session).has_chunks
        found = list(chunks_of(item, session))
    finally:
        disconnect(session)
    keys = [key for _, some, _ in found for key in some]
    assert len(found) > 5
    assert max(len(some) for _, some, _ in found) <= 2 * CHUNK_ROWS
    assert len({*keys}) == len(keys) == 60
    assert keys == sorted(keys)
    assert [decode_key(data) for data in sorted(map(encode_key, keys))] == keys
    for within, some, _ in found:
        assert [key for key in keys if within.has(key)] == some


def test_many_rows_of_one_integer_are_divided(sql: Client) -> None:
    item = Item(sql, "INT")
    sql("INSERT INTO item SELECT 7, seq, 'more' FROM seq_100_to_199")
    session = connect(item.options)
    try:
        found = list(chunks_of(item, session))
    finally:
        disconnect(session)
    assert max(len(keys) for _, keys, _ in found) <= 2 * CHUNK_ROWS
    keys = [key for _, some, _ in found for key in some]
    assert len(keys) == 160
    assert keys == sorted(keys)
    assert all(within.has(key) for within, some, _ in found for key in some)


def test_bounds_are_those_of_utc(sql: Client) -> None:
    item = Item(sql, "TIMESTAMP")

    def found() -> list[OrderedKey]:
        session = connect(item.options)
        try:
            return bounds(session, item.options, item.table(session).table, CHUNK_ROWS, KeyRange())
        finally:
            disconnect(session)

    wanted = found()
    sql("SET GLOBAL time_zone = '+05:00'")
    try:
        assert found() == wanted
    finally:
        sql("SET GLOBAL time_zone = 'SYSTEM'")


@EACH_OF_SPARK
def test_spark_reads_it_as_of_one_position(item: Item, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_plan, "_LEAST_ROWS", CHUNK_ROWS)
    wanted = sorted(Snapshot(item.sql).rows(), key=repr)
    found = Snapshot(item.sql, partitions=3)
    assert len(found.parts) == 3
    for number in range(30):
        item.change(number)
    assert sorted(Snapshot(item.sql).rows(), key=repr) != wanted
    assert sorted(found.rows(), key=repr) == wanted


@EACH_OF_SPARK
def test_a_backfill_brings_it_to_one_position(item: Item, kind: str, tmp_path: Path) -> None:
    wanted = TablePatterns.parse([f"{item.sql.database}.item"])
    place = BackfillDirectory(tmp_path)
    with place.held():
        plan = plan_mysql(item.options, wanted, BackfillOptions(chunk_rows=CHUNK_ROWS))
        (table,) = plan.tables
        assert table.by_key
        numbers = [chunk.number for chunk in table.chunks]
        assert len(numbers) > 5
        place.save_plan(plan)
        for number in numbers[::-1]:
            for change in range(5):
                item.change(10 * number + change)
            read_mysql(item.options, place, plan, number)
        read = place.records(READ, numbers)
        until = max([record.high for record in read.values()], key=lambda text: Position.parse(text).rank)
        changes = collect(item.options, place, plan, read, until, RetryDeadline(10))
        assert len(changes.chunks) > 3
        lines = pq.read_table(place.path / changes.file)
        lines = lines.sort_by([(name, "ascending") for name in ("chunk", "key", "number")])
        said = [row for batch in MergeChunks(place, until)(lines.to_batches()) for row in batch.to_pylist()]
        assert said == [{"kind": "", "text": ""}]
        merged = place.records(MERGED, list(changes.chunks))
        records = tuple({**read, **merged}[number] for number in numbers)
        (scratch := tmp_path / "opened").mkdir()
        with ChunkFiles(place, records, scratch) as files:
            replay = Replay(Manifest(plan, until, records), files)
            pieces = [piece for chunk in table.chunks for piece in replay.chunk(table, chunk)]
            found = [row.after for piece in pieces for row in piece.rows]
    assert found == present(item)


@EACH
def test_a_feed_loads_it_and_a_comparison_finds_what_differs(item: Item, kind: str, tmp_path: Path) -> None:
    given = {
        "data_dir": str(tmp_path / "state"),
        "source": {"url": item.sql.server.url(), "tables": [f"{item.sql.database}.item"], "chunk_rows": 7},
        "sink": [{"url": f"sqlite:///{tmp_path}/copy.db"}],
    }
    options = feed_options(given | {"until": "now"})
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    assert feed.error is None
    with open_diff(given) as found:
        assert list(found) == [TableResult(f"{item.sql.database}.item", "compared", 60)]
