"""A binlog that rotates while a snapshot looks at the tables."""

from __future__ import annotations

from contextlib import closing

import pytest

from tidemill.actors.clock import ManualClock
from tidemill.codec.mysql.layout import Layouts
from tidemill.dialects.mysql.client import Session
from tidemill.emulator import Mysql
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.probe import probe
from tidemill.puller.mysql.pull import Pull
from tidemill.snapshot.mysql.tables import FoundTable, find_tables
from tidemill.testing.progress import eventually


@pytest.mark.parametrize("workers", [0, 1])
def test_a_log_that_rotates_before_the_view_begins_is_followed(workers):
    clock = ManualClock()
    with Mysql(clock=clock) as mysql:
        mysql.execute("create database shop")
        mysql.execute("create table shop.item (id int primary key)")

        def follows(*_name: str) -> bool:
            clock.advance(10)
            mysql.rotate()
            return True

        options = MysqlOptions(port=mysql.port, password=mysql.server.password, snapshot_workers=workers)
        pull = Pull(options, follows, Layouts(), None, (), clock.now)
        with closing(pull.steps()) as steps:
            eventually(lambda: (next(steps), pull.statistics().state == "following")[1], 20)
            next(steps)


def test_the_time_of_a_probe_is_not_before_its_end_of_the_log(monkeypatch):
    clock = ManualClock()
    with Mysql(clock=clock) as mysql:

        def find(session: Session) -> list[FoundTable]:
            clock.advance(10)
            mysql.rotate()
            return find_tables(session)

        monkeypatch.setattr("tidemill.puller.mysql.probe.find_tables", find)
        found = probe(MysqlOptions(port=mysql.port, password=mysql.server.password))
        assert str(found.end).startswith(mysql.position)
        assert found.server.epoch_seconds == clock.time()
