"""One history, read by a local feed and by Spark in several ways: always the same rows.

A history is known by its seed, and so are its faults. Most are read by the readers of the data source, called
in this process as Spark calls them; some of them by queries. To see one again:

    pytest tests/spark/test_metamorphic.py -k tikv --seed 17
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from tidemill.emulator.faults.region_errors import WORDS as ERRORS
from tidemill.errors import SinkError
from tidemill.events import Item, Transaction
from tidemill.spark.capture import client
from tidemill.spark.capture.capture import opened
from tidemill.spark.envelope import ENVELOPE, EnvelopeEncoder
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.offsets.offsets import open_offsets
from tidemill.spark.read.options import read_options
from tidemill.spark.sections import capture_feed
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.progress import eventually

from ..puller.tikv.test_metamorphic import ORDINARY, SEEDS, SOAK
from . import history, queries, ways
from .maria_life import FOLLOWED, MariaLife, MysqlLife
from .tikv_life import WORDS, TikvLife, Written, feed_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Life: TypeAlias = TikvLife | MariaLife
SORTER_MEMORY = (0, 1 << 12, 1 << 26)
"""Memory quotas of the sorter; larger transactions are split."""
CAPTURE_MEMORY = (1 << 16, 1 << 26)


@pytest.fixture
def only(request: pytest.FixtureRequest) -> int | None:
    """Return the seed given by --seed."""
    seed: int | None = request.config.getoption("--seed")
    return seed


@contextmanager
def captured(life: Life, directory: Path) -> Iterator[str]:
    """Provide the address of a capture that buffers changes from now on."""
    source = {"url": life.url, "tables": [life.tables]}
    options = capture_feed(
        {
            "data_dir": str(directory / "capture"),
            "source": source,
            "sorter": {"memory_bytes": life.random.choice(SORTER_MEMORY)},
        },
        {"listen": "127.0.0.1:0", "memory_bytes": life.random.choice(CAPTURE_MEMORY)},
    )
    with opened(options, options.capture) as capture:
        address = f"127.0.0.1:{capture.port}"
        eventually(lambda: client.status(address).held.base)
        yield address


class Compared:
    """The items of a local feed, and the ways in which Spark gives the same. `batch` and `stream` read."""

    def __init__(
        self,
        life: Life,
        wanted: list[Item],
        capture: str,
        batch: Callable[[dict[str, Any]], ways.Found],
        stream: Callable[[dict[str, Any], list[Offset]], ways.Found],
    ) -> None:
        self._wanted = wanted
        self._batch = batch
        self._stream = stream
        self._key_of = life.key_of
        self._place = life.place
        self.borders = life.borders()
        self._bounds = life.bounds
        self._start = {"pollSeconds": 0.01, **life.beginning}
        self._whole = {"source": life.url, "tables": life.tables, "sorterMemory": SORTER_MEMORY[1]}
        self._parts = {"source": life.url, "tables": life.tables, "partitions": 3}
        self._table = f"{life.schema}.{life.typed_table}"
        self._typed = {"source": life.url, "table": self._table, "invalidDates": "null"}
        self._capture = {"capture": capture}

    def whole_batch(self) -> None:
        ways.check(self._batch(self._whole | self._bounds), self._ends, self._wanted)

    def batch_in_parts(self) -> None:
        found = self._batch(self._parts | self._bounds)
        ways.check_parts(found, self._ends, self._wanted, self._key_of)

    def typed_batch(self) -> None:
        ways.check_typed(self._batch(self._typed | self._bounds), self._ends, self._wanted, self._table)

    def whole_stream(self) -> None:
        ways.check(self._stream(self._whole | self._start, self.borders), self.borders, self._wanted)

    def stream_in_parts(self) -> None:
        found = self._stream(self._parts | self._start, self.borders)
        ways.check_parts(found, self.borders, self._wanted, self._key_of)

    def whole_by_capture(self) -> None:
        found = self._stream(self._whole | self._start | self._capture, self.borders)
        ways.check(found, self.borders, self._wanted, self._place)

    def parts_by_capture(self) -> None:
        found = self._stream(self._parts | self._start | self._capture, self.borders)
        ways.check_parts(found, self.borders, self._wanted, self._key_of, self._place)

    def typed_by_capture(self) -> None:
        if self.loses_columns:
            with pytest.raises(Exception, match="no such column any more when the query started"):
                self._stream(self._typed | self._start | self._capture, self.borders)
            return
        found = self._stream(self._typed | self._start | self._capture, self.borders)
        ways.check_typed(found, self.borders, self._wanted, self._table)

    @property
    def loses_columns(self) -> bool:
        """True if a row of the typed table has a column that its last layout lacks."""
        rows = [row for item in self._wanted if isinstance(item, Transaction) for row in item.rows]
        layouts = [row.table for row in rows if row.table.full_name == self._table]
        with closing(open_offsets(read_options({key: str(v) for key, v in self._typed.items()}))) as offsets:
            (last,) = offsets.tables()
        names = {column.name for column in last.columns}
        return any(column.name not in names for table in {*layouts} for column in table.columns)

    @property
    def _ends(self) -> list[Offset]:
        return [self.borders[0], self.borders[-1]]


def by_readers(life: Life, wanted: list[Item], capture: str) -> int:
    """In all ways, at the same time; how many tasks had captures at least."""
    compared = Compared(life, wanted, capture, ways.batch, ways.stream)
    todo = (
        *(compared.whole_batch, compared.batch_in_parts, compared.typed_batch),
        *(compared.whole_stream, compared.stream_in_parts),
        *(compared.whole_by_capture, compared.parts_by_capture, compared.typed_by_capture),
    )
    with ThreadPoolExecutor(len(todo)) as pool:
        for done in [pool.submit(way) for way in todo]:
            done.result()
    return (4 if compared.loses_columns else 5) * (len(compared.borders) - 1)


def by_queries(life: Life, wanted: list[Item], capture: str, spark: SparkSession, directory: Path) -> None:
    """In some, one after the other; one by the capture, which has one lease."""
    numbers = count()

    def stream(options: dict[str, Any], borders: list[Offset]) -> ways.Found:
        return queries.stream(spark, directory / f"query {next(numbers)}", options, borders)

    compared = Compared(life, wanted, capture, partial(queries.batch, spark), stream)
    compared.batch_in_parts()
    compared.whole_stream()
    compared.parts_by_capture()


def lived(life: TikvLife, directory: Path) -> list[Item]:
    """The items of a local feed that followed the history as it happened."""
    sorter = {"memory_bytes": life.random.choice(SORTER_MEMORY)}
    with history.Local(life.url, [life.tables], life.start, directory, sorter=sorter) as feed:
        life.live(feed.until_ts)
        feed.until_ts(life.end.ts)
    items = [item for item in feed.items if item.commit_ts <= life.end.ts]
    rows = [row for item in items for row in getattr(item, "rows", ())]
    assert sorted(map(Written.of, rows)) == sorted(life.written)
    return items


@pytest.fixture
def tikv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Provide a seeded cluster with faults, a local feed's items and a capture's address."""

    @contextmanager
    def play(seed: int) -> Iterator[tuple[TikvLife, list[Item], str]]:
        monkeypatch.setattr("tidemill.puller.tikv.puller.EventFeedOptions", feed_options(Random(seed)))
        directory = tmp_path / str(seed)
        try:
            with TikvLife(seed) as life, captured(life, directory) as capture:
                life.begin()
                wanted = lived(life, directory / "local")
                with life.turmoil():
                    yield life, wanted, capture
        except BaseException as error:
            error.add_note(f"with --seed {seed}")
            raise

    return play


def play_tikv(tikv: Any, seed: int) -> Counter[str]:
    with tikv(seed) as (life, wanted, capture):
        before = client.status(capture).answered
        tasks = by_readers(life, wanted, capture)
        assert client.status(capture).answered - before >= tasks
    hits: Counter[str] = life.hits
    return hits


def play(life: MariaLife, directory: Path) -> None:
    with life, captured(life, directory) as capture:
        life.live()
        wanted = history.local(life.url, [life.tables], life.start, life.end, directory / "local")
        by_readers(life, wanted, capture)


def play_queries(life: MariaLife, directory: Path, spark: SparkSession) -> None:
    with life, captured(life, directory) as capture:
        life.live()
        wanted = history.local(life.url, [life.tables], life.start, life.end, directory / "local")
        by_queries(life, wanted, capture, spark, directory)


@pytest.mark.parametrize("seed", [6])
def test_tikv_by_readers(seed: int, tikv: Any, only: int | None) -> None:
    print("faults hit:", play_tikv(tikv, seed if only is None else only))


@pytest.mark.soak
@pytest.mark.parametrize("first", [*ORDINARY, *SOAK])
def test_tikv_by_readers_many_times(first: int, tikv: Any) -> None:
    hits: Counter[str] = Counter()
    for seed in range(first, first + SEEDS):
        hits += play_tikv(tikv, seed)
    hits["fail_next"] += sum(hits[error] for error in ERRORS)
    assert [word for word in WORDS if not hits[word]] == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEEDS))
def test_tikv_by_queries(seed: int, tikv: Any, spark: SparkSession, tmp_path: Path, only: int | None) -> None:
    with tikv(seed if only is None else only) as (life, wanted, capture):
        by_queries(life, wanted, capture, spark, tmp_path)


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 100))])
def test_mariadb_by_readers(
    seed: int, tmp_path: Path, mariadb: MariaDb, database: str, only: int | None
) -> None:
    play(MariaLife(seed if only is None else only, mariadb, database), tmp_path)


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 50))])
def test_mysql_by_readers(
    seed: int, tmp_path: Path, mysql97: MySql, mysql_database: str, only: int | None
) -> None:
    play(MysqlLife(seed if only is None else only, mysql97, mysql_database), tmp_path)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 20))])
def test_mariadb_by_queries(
    seed: int, tmp_path: Path, mariadb: MariaDb, database: str, spark: SparkSession, only: int | None
) -> None:
    play_queries(MariaLife(seed if only is None else only, mariadb, database), tmp_path, spark)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 10))])
def test_mysql_by_queries(
    seed: int, tmp_path: Path, mysql97: MySql, mysql_database: str, spark: SparkSession, only: int | None
) -> None:
    play_queries(MysqlLife(seed if only is None else only, mysql97, mysql_database), tmp_path, spark)


def test_spark_goes_on_where_a_local_feed_is_refused(tmp_path: Path, mariadb: MariaDb, database: str) -> None:
    with MariaLife(7, mariadb, database) as life:
        life.live()
        ends_with(life, "TRUNCATE TABLE order_lines")
        until = life.end.position
        rule = {"tables": [life.tables], "kinds": ["truncate"], "action": "stop"}
        with (
            history.Local(life.url, [life.tables], life.start, tmp_path, until, on_ddl=[rule]) as feed,
            pytest.raises(SinkError, match="as on_ddl says"),
        ):
            feed.until_end()
        ((found,),) = ways.batch({"source": life.url, "tables": life.tables, **life.bounds})
        wanted = EnvelopeEncoder().encode(feed.items).to_pylist()
        rows = found.select(ENVELOPE.names).to_pylist()
        assert rows[: len(wanted)] == wanted
        check_end(rows[len(wanted) :], "TRUNCATE TABLE order_lines")


SOAKED = [pytest.param(statement, marks=pytest.mark.soak) for statement in FOLLOWED[1:]]


@pytest.mark.parametrize("statement", [FOLLOWED[0], *SOAKED])
def test_spark_gives_every_schema_change_as_a_row(statement: str, mariadb: MariaDb, database: str) -> None:
    with MariaLife(7, mariadb, database) as life:
        ends_with(life, statement)
        ((found,),) = ways.batch({"source": life.url, "tables": life.tables, **life.bounds})
        check_end(found.to_pylist(), statement)


def test_an_index_is_no_row(mariadb: MariaDb, database: str) -> None:
    with MariaLife(7, mariadb, database) as life:
        ends_with(life, "CREATE INDEX made ON orders (total)")
        ((found,),) = ways.batch({"source": life.url, "tables": life.tables, **life.bounds})
        assert [row["op"] for row in found.to_pylist()] == ["update"]


def ends_with(life: MariaLife, statement: str) -> None:
    """Run a schema change and change a row, which end the history."""
    life.execute(statement)
    life.execute("UPDATE stock SET amount = 77 WHERE sku = 'sku-00007'")
    life.until_now()


def check_end(rows: list[dict[str, Any]], statement: str) -> None:
    assert [row["op"] for row in rows] == ["ddl", "update"]
    assert statement.split()[0] in rows[0]["query"]
