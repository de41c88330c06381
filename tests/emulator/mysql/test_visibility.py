"""Commits that are in the log, and that views don't have yet; and a server that looks for a position."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from tidemill.actors.clock import ManualClock
from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.layout import Layouts
from tidemill.emulator import Mysql
from tidemill.emulator.mysql.server import MysqlServer
from tidemill.errors import Retryable
from tidemill.events import PENDING, REST, WHOLE, Checkpoint
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.pull import Pull
from tidemill.sources.mysql import MysqlSource
from tidemill.testing import LiveFeed
from tidemill.testing.progress import eventually

HIDDEN_SECONDS = 10
NOT_ENDED = "a commit before it hasn't ended yet"


def filled(mysql: Mysql | MysqlServer) -> None:
    mysql.execute("create database shop")
    mysql.execute("create table shop.item (id int primary key)")
    with mysql.transaction() as txn:
        txn.insert("shop.item", (1,))


def options_of(mysql: Mysql, workers: int = 0) -> MysqlOptions:
    return MysqlOptions(port=mysql.port, password=mysql.server.password, snapshot_workers=workers)


def test_a_view_begins_before_the_commits_that_are_under_way() -> None:
    clock = ManualClock()
    server = MysqlServer(clock.time, server_id=1, user="", password="", visible_seconds=HIDDEN_SECONDS)
    filled(server)
    view, end = server.view(), server.log.end
    assert view.tables["shop", "item"][1] == []
    assert view.end < end
    clock.advance(HIDDEN_SECONDS)
    view = server.view()
    assert view.tables["shop", "item"][1] == [(1,)]
    assert view.end == end


def test_a_mysql_waits_for_commits_that_are_under_way() -> None:
    server = MysqlServer(
        lambda: 0.0, server_id=1, user="", password="", vendor="MySQL", visible_seconds=HIDDEN_SECONDS
    )
    filled(server)
    with server.transaction() as txn:
        txn.insert("shop.item", (2,))
    before, _, last = str(server.log.gtids).rpartition("-")
    assert server.waits_for(f"{before}-{int(last) - 1}")
    assert server.view().tables["shop", "item"][1] == [(1,)]
    assert not server.waits_for(f"{before}-{int(last) + 1}")
    assert server.view().tables["shop", "item"][1] == [(1,), (2,)]
    assert server.view(waits=True).end == server.log.end


@pytest.mark.parametrize("workers", [0, 1])
def test_a_load_waits_for_a_commit_that_the_log_has_already(workers: int) -> None:
    clock = ManualClock()
    with Mysql(clock=clock, visible_seconds=HIDDEN_SECONDS) as mysql:
        filled(mysql)
        position = f"{mysql.position} gtid={mysql.gtid} server=1"
        loading = {"shop.item": PENDING, REST: WHOLE} if workers == 0 else {"shop.item": PENDING}
        start = Checkpoint(1, position=position, source="mariadb server 1", loading=loading)
        pull = Pull(options_of(mysql, workers), lambda *_: True, Layouts(), start, (), clock.now)
        with closing(pull.steps()) as steps, pytest.raises(Retryable, match=NOT_ENDED):
            eventually(lambda: (next(steps), False)[1], 20)
        clock.advance(HIDDEN_SECONDS)
        with closing(pull.steps()) as steps:
            eventually(lambda: (next(steps), pull.statistics().state == "following")[1], 20)


def test_a_sink_that_is_ahead_of_views_is_not_ahead_of_the_log() -> None:
    clock = ManualClock()
    with Mysql(clock=clock, visible_seconds=HIDDEN_SECONDS) as mysql:
        filled(mysql)
        source = MysqlSource(options_of(mysql), TablePatterns.parse(["*.*"]))
        end = source.look().end
        assert source.rank(mysql.position) > source.rank(end)
        with pytest.raises(Retryable, match=NOT_ENDED):
            source.behind("copy", mysql.position, end)
        assert "was reset or restored" in source.behind("copy", "binlog.000009:4", end)


def test_a_server_that_looks_for_a_position_is_waited_for(tidemill_feed: Callable[..., LiveFeed]) -> None:
    with Mysql(seek_seconds=0.3) as mysql:
        filled(mysql)
        feed = tidemill_feed(mysql, ["shop.*"], source_options={"heartbeat_seconds": 0.2})
        feed.caught_up()
        assert [row.after for row in feed.rows] == [(1,)]
