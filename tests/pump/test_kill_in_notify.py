"""kill -9 of a drainer while a pump notifies it: no pump is missed, nothing is lost, nothing comes twice."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from sqlite3 import OperationalError

import pytest

from tidemill.emulator.pump import Pump
from tidemill.emulator.sql.sql import Tidb
from tidemill.failpoint import POINTS
from tidemill.puller.pump.registry.node import NodeStatus
from tidemill.testing.child import Child
from tidemill.testing.private_server import reserve
from tidemill.testing.repeated import repeated

from ..puller.pump.service.pump_side import NotNotified, join, notify
from .cluster import Cluster
from .test_kill import Copy, Writer

FEED = """\
name = "kill"
data_dir = "{directory}/state"
{until}

[source]
url = "binlog://{pd}"
registry = "{registry}"
node_id = "d1"
listen = "{listen}"
tables = ["many.*"]
heartbeat_seconds = 0.1
detect_seconds = 3600
retry_seconds = 0.05

[[sink]]
url = "sqlite:///{directory}/copy.db"
"""


class DrainedCopy(Copy):
    """A copy by a drainer whose address stays the same."""

    def __init__(self, directory: Path, cluster: Cluster, port: int) -> None:
        super().__init__(directory, cluster.tidb)
        self._cluster = cluster
        self._address = "127.0.0.1", port

    @property
    def address(self) -> str:
        return "{}:{}".format(*self._address)

    def config(self, until: str) -> str:
        return FEED.format(
            directory=self._directory,
            pd=self._tidb.pd_address,
            registry=self._cluster.url,
            listen=self.address,
            until=until,
        )

    def listens(self, feed: Child) -> None:
        """Wait until a feed answers on its port."""

        def is_open() -> bool:
            with closing(socket.socket()) as connection:
                return connection.connect_ex(self._address) == 0

        feed.wait_until(is_open)

    def has_its_table(self) -> bool:
        with suppress(OperationalError):
            return self.rows() == {}
        return False

    def copies(self, feed: Child) -> None:
        """Wait until a feed has applied something new."""
        before = self.counted()
        feed.wait_until(lambda: self.counted() != before)


@pytest.fixture
def copy(tmp_path, cluster):
    with closing(reserve(0)) as held:
        yield DrainedCopy(tmp_path, cluster, held.getsockname()[1])


def new_pump(tidb: Tidb) -> tuple[Pump, NodeStatus]:
    pump = tidb.add_pump(serving=False)
    return pump, NodeStatus(node_id=pump.node_id, host=pump.server.address, state="online")


def test_the_points_are_known():
    assert {"drainer.notified", "drainer.accepted"} <= {*POINTS}


def test_killed_while_a_pump_notifies_it(cluster, copy, tidb):
    tidb.execute("create database many")
    tidb.execute("create table many.t (id int primary key, note varchar(40))")
    writer = Writer(tidb, Random(1))
    started: list[Child] = []

    def start(point: str = "") -> Child:
        started.append(copy.run(point))
        copy.listens(started[-1])
        return started[-1]

    def restart(_seconds: float) -> None:
        """Between two tries of a pump."""
        if len(started) == 1:
            started[0].dies()
            start("drainer.accepted:2")

    try:
        start("drainer.notified").wait_until(copy.has_its_table)
        copy.count_changes()
        with repeated(writer.write):
            copy.copies(started[0])
            patient, status = new_pump(tidb)
            join(cluster.registry, status, restart)
            patient.serving = True
            copy.copies(started[1])
            hasty, status = new_pump(tidb)
            with pytest.raises(NotNotified, match="UNAVAILABLE"):
                join(cluster.registry, status, lambda _seconds: None)
            started[1].dies()
            copy.copies(start())
            cluster.set_pump(hasty.node_id, "online")  # started again by its operator
            notify(copy.address, lambda _seconds: None)
            hasty.serving = True
            copy.copies(started[2])
            started[2].wait_until(lambda: patient.sent and hasty.sent)
        started[2].wait_until(lambda: copy.rows() == writer.rows)
        assert copy.counted() == writer.changes
    finally:
        for feed in started:
            feed.kill()
