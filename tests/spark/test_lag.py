"""A stream's lag: the age of the oldest change that it hasn't read yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.engine.options import feed_options
from tidemill.events import Ts, compose_ts, physical_ms
from tidemill.spark.offsets.mysql import MysqlOffsets
from tidemill.spark.offsets.offset import Limit, Offset
from tidemill.spark.read.options import read_options
from tidemill.spark.run.queries import SinkQuery
from tidemill.spark.run.source import OLDEST
from tidemill.spark.run.start import Start
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

HOUR_MS = 3_600_000
TWENTY_MINUTES = 1200
NOW = 1_800_000_000.0


class AnHourLater(MysqlOffsets):
    """Advances the server's clock by an hour."""

    def latest(self) -> Offset:
        end = super().latest()
        return Offset(compose_ts(physical_ms(end.ts) + HOUR_MS), end.position, end.source)


@pytest.fixture
def offsets(sql: Client, mariadb: MariaDb) -> Iterator[MysqlOffsets]:
    """Offsets of the table `item`; there is another table."""
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    given = {"source": mariadb.url(), "tables": f"{sql.database}.item"}
    with closing(AnHourLater(read_options(given))) as found:
        yield found


def test_without_an_unread_change_there_is_no_lag(sql: Client, offsets: MysqlOffsets) -> None:
    at = offsets.at_position(offsets.latest().position)
    assert offsets.lag(at)["lagSeconds"] == 0
    sql("INSERT INTO other VALUES (1)")
    found = offsets.lag(at)
    assert found["backlogBytes"] > 0
    assert found["lagSeconds"] == 0


@pytest.mark.parametrize("limit", [Limit(), Limit(bytes=1)])
def test_lag_is_the_age_of_the_oldest_unread_change(sql: Client, offsets: MysqlOffsets, limit: Limit) -> None:
    at = offsets.at_position(offsets.latest().position)
    for number, minutes in enumerate((20, 40)):
        later = f"SET STATEMENT timestamp=UNIX_TIMESTAMP() + {60 * minutes} FOR"
        sql(f"{later} INSERT INTO item VALUES ({number})")
    assert 40 <= offsets.lag(at)["lagSeconds"] / 60 < 45
    end = offsets.following(at, None, limit)
    assert 40 <= offsets.lag(at)["lagSeconds"] / 60 < 45
    left = offsets.lag(end)["lagSeconds"] / 60
    assert 20 <= left < 25 if limit.bytes else left == 0


def query(directory: Path, offset: Offset) -> SinkQuery:
    """One that isn't started yet."""
    source = {"url": "mysql://localhost", "tables": ["*.*"]}
    sinks = [{"name": "a", "url": "sqlite:///a.db"}]
    options = feed_options({"name": "copy", "data_dir": str(directory), "source": source, "sink": sinks})
    return SinkQuery(options, options.sinks[0], Start(offset, 1), "a.db", {}, 7)


def log(directory: Path, number: int, offset: Offset, oldest: Ts, *, done: bool) -> None:
    """As Spark writes it."""
    text = f"v1\n{{}}\n{json.dumps({**offset.fields(), OLDEST: oldest})}"
    for kind, written in (("offsets", text), ("commits", "v1\n{}")):
        (directory / "spark" / "a" / kind).mkdir(parents=True, exist_ok=True)
        if kind == "offsets" or done:
            (directory / "spark" / "a" / kind / str(number)).write_text(written)


def ts(age_seconds: float) -> Ts:
    return compose_ts(int((NOW - age_seconds) * 1000))


FIRST = Offset(ts(9000), "binlog.000001:4", "mariadb server 7")
LAST = Offset(ts(5000), "binlog.000001:900", "mariadb server 7")
NEXT = Offset(ts(100), "binlog.000001:2000", "mariadb server 7")


def test_a_query_is_at_once_where_its_log_ends(tmp_path: Path) -> None:
    log(tmp_path, 0, LAST, ts(8000), done=True)
    found = query(tmp_path, FIRST)
    found.look(NOW)
    status = found.status
    assert (status.position, status.rows, status.detail) == (LAST.position, 7, "batch 0")
    assert status.lag_seconds is None, "nobody knows what the source has by now"


def test_a_batch_that_was_begun_says_how_old_its_changes_are(tmp_path: Path) -> None:
    log(tmp_path, 0, LAST, ts(8000), done=True)
    log(tmp_path, 1, NEXT, ts(TWENTY_MINUTES), done=False)
    found = query(tmp_path, FIRST)
    found.look(NOW)
    assert found.status.position == LAST.position
    assert found.status.lag_seconds == TWENTY_MINUTES


def test_a_cluster_may_have_changes_from_where_the_query_is(tmp_path: Path) -> None:
    at = ts(TWENTY_MINUTES)
    found = query(tmp_path, Offset(at, str(at), "tikv cluster 7"))
    found.look(NOW)
    assert found.status.lag_seconds == TWENTY_MINUTES
