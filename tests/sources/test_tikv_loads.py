"""The steps of a load: what its keyspace gets, while the schema is known later than rows are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from itertools import count
from typing import Any

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.tidb.key import decode_record_key, record_key
from tidemill.codec.tidb.load_entry import LOAD_KEY, GoneTable, LoadedRows, NewTable, read_load
from tidemill.events import WHOLE, Changes, OrderedKey
from tidemill.mounter import SchemaHistory
from tidemill.sources import tikv_loads
from tidemill.sources.tikv_loads import TikvLoads
from tidemill.store.store import Store
from tidemill.testing.tidb_model import Tidb


class Client:
    """PD, whose clock begins at 100, and TiKV with the same rows at every ts."""

    def __init__(self) -> None:
        self.keys: dict[int, range] = {}
        """Handles by table id."""
        self.now = 0
        self._clock = count(100)
        self._loop = asyncio.new_event_loop()
        self.pd = self.kv = self

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self._loop.close()

    async def tso(self) -> int:
        self.now = next(self._clock)
        return self.now

    def begin(self, work: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(self.run(work))
        return done

    async def pages(
        self, start: bytes, end: bytes, ts: int, _growth: int
    ) -> AsyncIterator[tuple[list[bytes], list[bytes]]]:
        assert ts == self.now
        for table_id, handles in self.keys.items():
            for handle in handles:
                if start <= (key := record_key(table_id, handle)) < end:
                    yield [key], [b""]


class Bench:
    """A load of shop.a, which has the rows 1 to 5; the feed follows shop.*."""

    def __init__(self, history: SchemaHistory) -> None:
        self.history = history
        self.tidb = Tidb()
        self.client = Client()
        history.apply(self.tidb.create_database("shop"), 1)
        history.apply(self.tidb.create_database("depot"), 2)
        self.ends: list[int] = []

    def create(self, partitions: int = 0) -> None:
        self.history.apply(self.tidb.create_table("shop", "a", partitions), 3)
        self.fill(range(1, 6))

    def fill(self, keys: range) -> None:
        info = self.tidb.tables["shop", "a"]
        self.client.keys[info.partition.definitions[0].id if info.partition else info.id] = keys

    def begin(self, after: OrderedKey = ()) -> None:
        client: Any = self.client
        wanted = TablePatterns.parse(["shop.*"])
        self.loads = TikvLoads(client, self.history, wanted, {"shop.a": after}, self.ends.append, 50)
        self._steps = self.loads.steps()

    def goes(self, known_ts: int = 0) -> list[str]:
        """Return what is sent until the load waits, once the schema is known up to this ts."""
        if known_ts:
            self.loads.known(known_ts)
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        for step in self._steps:
            if step is None:
                return
            if isinstance(step, Changes):
                yield " ".join(filter(None, [*map(told, step.changes), f"up to {step.resolved}"]))


def told(change: Any) -> str:
    if change.key != LOAD_KEY:
        return str(decode_record_key(change.key)[1])
    match read_load(change):
        case NewTable():
            return f"{change.commit_ts}: new"
        case GoneTable(schema, table):
            return f"{change.commit_ts}: {schema}.{table} is gone"
        case LoadedRows(chunk) if not chunk.table:
            return f"{change.commit_ts}: the end"
        case LoadedRows(chunk):
            loaded = "all" if chunk.loaded == WHOLE else f"to {chunk.loaded.last}"
            return f"{change.commit_ts}: {chunk.table} after {chunk.after} {loaded}:"


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Iterator[Bench]:
    monkeypatch.setattr(tikv_loads, "CHUNK_ROWS", 2)
    store = Store(tmp_path / "store")
    made = Bench(SchemaHistory(store, 0))
    yield made
    made.client.close()
    store.close()


def test_chunks_are_sent_once_the_schema_at_their_ts_is_known(bench):
    """Nothing above a chunk that isn't sent yet is resolved."""
    bench.create()
    bench.begin()
    assert bench.goes() == ["up to 99"]
    assert bench.goes(100) == ["100: new up to 100", "up to 100"]
    assert bench.goes(101) == ["up to 101", "up to 101"]
    assert bench.goes(102) == ["102: shop.a after () to (2,): 1 2 up to 102", "up to 102"]
    assert bench.goes(200) == [
        "103: shop.a after (2,) to (4,): 3 4 up to 103",
        "up to 103",
        "104: shop.a after (4,) all: 5 up to 104",
        "105: the end up to 105",
    ]
    assert bench.ends == [105]


def test_a_table_that_has_changed_is_read_again_after_the_last_chunk(bench):
    """Chunks that were read before are dropped; those of the new table come after the key that is there."""
    bench.create()
    bench.begin()
    bench.goes()
    bench.goes(101)
    assert bench.goes(102) == ["102: shop.a after () to (2,): 1 2 up to 102", "up to 102"]
    bench.history.apply(bench.tidb.truncate_table("shop", "a"), 103)
    bench.fill(range(1, 4))
    assert bench.goes(103) == ["up to 104"]
    assert bench.goes(200) == [
        "up to 105",
        "up to 105",
        "106: shop.a after (2,) all: 3 up to 106",
        "107: the end up to 107",
    ]


def test_a_restart_goes_on_after_the_key_that_every_sink_has(bench):
    bench.create()
    bench.begin((3,))
    bench.goes()
    assert bench.goes(200)[4:] == [
        "102: shop.a after (3,) to (5,): 4 5 up to 102",
        "up to 102",
        "103: shop.a after (5,) all: up to 103",
        "104: the end up to 104",
    ]


@pytest.mark.parametrize("statement", ["drop", "rename"])
def test_a_table_that_is_gone_is_dropped(bench, statement):
    bench.create()
    bench.begin()
    bench.goes()
    tidb = bench.tidb
    is_renamed = statement == "rename"
    job = tidb.rename_table(("shop", "a"), ("depot", "a")) if is_renamed else tidb.drop_table("shop", "a")
    bench.history.apply(job, 100)
    assert bench.goes(200) == ["100: shop.a is gone up to 100", "101: the end up to 101"]


def test_partitions_are_read_once_the_schema_is_known_and_are_one_transaction(bench):
    bench.create(partitions=2)
    bench.begin()
    assert bench.goes() == ["up to 99"]
    assert bench.goes(100) == ["100: new up to 100", "up to 100"]
    assert bench.goes(101) == [
        "101: shop.a after () all: up to 0",
        "1 2 up to 0",
        "3 4 up to 0",
        "5 up to 0",
        "up to 101",
        "102: the end up to 102",
    ]
