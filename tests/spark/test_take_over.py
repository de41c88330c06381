"""A target that Spark takes over from the local engine."""

from __future__ import annotations

from contextlib import closing

import pytest

from tidemill.errors import SinkError
from tidemill.events import Chunk
from tidemill.sink import Delivery, Sink, SinkFactory, open_sink
from tidemill.spark.run.start import find_start, take_over
from tidemill.testing.changes import ORDERS, MemoryStore, chunk, create, insert, transaction, update
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually


def factory_of(mariadb: MariaDb, database: str) -> SinkFactory:
    return SinkFactory(lambda: sink_of(mariadb, database))


def sink_of(mariadb: MariaDb, database: str) -> Sink:
    return open_sink("copy", mariadb.url(database), feed="copy", store=MemoryStore(), options={"workers": 2})


def test_transactions_that_workers_applied_after_the_checkpoint_are_not_repeated_by_spark(
    mariadb: MariaDb, database: str
) -> None:
    changes = [
        transaction(30, update(ORDERS, (1, "a"), (1, "x"))),
        transaction(31, update(ORDERS, (2, "b"), (2, "y"))),
    ]
    with (
        closing(sink := sink_of(mariadb, database)),
        mariadb.connect(database=database) as other,
        other.cursor() as cursor,
    ):
        work = Delivery(sink, sink.open(), "src")
        existing = chunk(11, ORDERS, None, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b"))
        work.accept([create(10, ORDERS), existing, transaction(20, chunk=Chunk(""))])
        work.run(0)
        work.flush(0)
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT * FROM orders WHERE id = 1 FOR UPDATE")
        for change in changes:
            work.accept([change])
        work.run(0)

        def has_overtaken() -> bool:
            with mariadb.connect(database=database) as looks, looks.cursor() as look:
                look.execute("SELECT note FROM orders WHERE id = 2")
                return look.fetchall() == (("y",),)

        eventually(has_overtaken)
        sink.close()

    with pytest.raises(
        SinkError, match=r'1 of the transactions after .* run the feed once with engine = "local"'
    ):
        take_over(factory_of(mariadb, database), 2)
    with closing(sink := sink_of(mariadb, database)):
        work = Delivery(sink, sink.open(), "src")
        work.accept(changes)
        work.run(0)
        work.flush(0)
    start = take_over(factory_of(mariadb, database), 2)
    assert start.offset.ts == 31
    assert find_start(factory_of(mariadb, database)) == start
