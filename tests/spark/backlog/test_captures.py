"""Captures at size: bounded, and killed at random moments of a running query, under writes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tidemill.spark.capture import client
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually

from . import on_mariadb
from .captured import Captured
from .compared import Form, differences
from .peaks import peak
from .streams import SLACK_BYTES, Stream, streamed
from .workload import Workload

pytestmark = pytest.mark.soak

SCHEMA = "shop"
ROWS = 1_000_000


@pytest.fixture
def server(private_mariadb: MariaDb) -> MariaDb:
    server = private_mariadb.start()
    on_mariadb.create(server, SCHEMA)
    return server


def test_a_backlog_in_a_capture(server: MariaDb, tmp_path: Path) -> None:
    """All of two million changes come from it, and none from the source."""
    workload = Workload()
    with Captured(tmp_path, server.url()) as captured:
        running, sizes = captured.running, []
        start = on_mariadb.position(server)
        for rows in (500_000, 1_500_000):
            on_mariadb.write(server, SCHEMA, workload.transactions_of(rows))
            end = on_mariadb.position(server)
            held = eventually(lambda end=end: until(running.address, end))
            assert held.rows == workload.rows
            sizes.append(peak(running.process.pid))
        options = {"source": server.url(), "tables": f"{SCHEMA}.*", "startingPosition": start}
        options |= {"capture": running.address, "maxBytesPerBatch": "8MiB"}
        found = streamed(tmp_path / "stream", options)
        sizes.append(peak(running.process.pid))
        print(found, "capture:", *(f"{size >> 20} MiB" for size in sizes))
        assert client.status(running.address).answered == len(found.batches)
        assert not differences(found.rows, workload.changes(), Form())
        assert max(sizes) <= sizes[0] * 1.2 + SLACK_BYTES


def until(address: str, end: str):
    """Return the statistics of a capture that has come to a position."""
    held = client.status(address).held
    return held if held.reached is not None and held.reached.position.split()[0] == end else None


@pytest.mark.parametrize("seed", range(3))
def test_captures_are_killed_while_a_query_runs(server: MariaDb, tmp_path: Path, seed: int) -> None:
    random, workload = Random(seed), Workload(seed)
    transactions = workload.transactions_of(ROWS)
    with Captured(tmp_path, server.url()) as captured:
        options = {"source": server.url(), "tables": f"{SCHEMA}.*", "partitions": 1 + seed % 2}
        options |= {"startingPosition": on_mariadb.position(server), "capture": captured.running.address}
        options |= {"maxBytesPerBatch": "2MiB"}
        with Stream(tmp_path / "stream", options, is_endless=True) as stream:
            while some := list(islice(transactions, random.randrange(1, 2000))):
                on_mariadb.write(server, SCHEMA, some)
                eventually(stream.has_begun_another)
                on_mariadb.write(server, SCHEMA, islice(transactions, random.randrange(300)))
                if random.random() < 0.7:
                    captured.kill()
                if random.random() < 0.7:
                    captured.restart()
            captured.restart()
            begin = captured.running.begun
            eventually(lambda: begin() and answers_again(server, workload, stream, captured))
            found = stream.finished()
            captured.note()
        print(found, f"{captured.kills} kills, {captured.answered} answers of captures")
    assert not differences(found.rows, workload.changes(), Form(whole=seed % 2 == 0))
    assert captured.kills >= 5


def answers_again(server: MariaDb, workload: Workload, stream: Stream, captured: Captured) -> bool:
    """Write a little, for another batch."""
    on_mariadb.write(server, SCHEMA, workload.transactions_of(1_000))
    eventually(stream.has_begun_another)
    return client.status(captured.running.address).answered > 0
