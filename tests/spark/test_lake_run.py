"""A feed into the tables of a lake with `--engine spark`, killed at the points of its commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import feed_ended

from ..services.test_lake_feeds import changes
from ..sink.storage.lakes import LAKES, Lake, RestLake
from .test_run import SMALL, SOON_SECONDS, feed, running

POINTS = [
    "sink.before_commit",
    "sink.committed",
    "storage.publishing",
    "lake.adding",
    "lake.telling",
    "storage.published",
]


def rebuilt(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    """Apply each change once, and return the rows."""
    rows: dict[int, tuple[Any, ...]] = {}
    for change in changes(lake.arrow(table).to_pylist()):
        if change["before"] is not None:
            del rows[change["before"]["id"]]
        if change["after"] is not None:
            assert change["after"]["id"] not in rows
            rows[change["after"]["id"]] = tuple(change["after"].values())
    return [rows[key] for key in sorted(rows)]


@pytest.fixture(params=[*LAKES, pytest.param("rest", marks=pytest.mark.soak)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "rest":
        port = request.getfixturevalue("iceberg_rest").port
        return RestLake(tmp_path / "lake", port, credential="feed:secret")
    return LAKES[request.param](tmp_path / "lake")


@pytest.mark.parametrize("points", [POINTS[1:4:2], pytest.param(POINTS, marks=pytest.mark.soak)])
def test_a_driver_is_killed_between_the_steps_of_its_commits(
    sql: Client, mariadb: MariaDb, tmp_path: Path, lake: Lake, points: list[str]
) -> None:
    """The local engine loads the feed. The first kill ends the driver as it takes over, the others end the
    process that commits its batches."""
    sql("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40))", "INSERT INTO item VALUES (-1, 'there')")
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.item", {"url": lake.url(), **lake.options})
    options = feed_options(found)
    local = Feed(options, open_sinks(options))
    local.start()
    feed_ended(local)
    sql("SET timestamp = UNIX_TIMESTAMP() - 100")  # the log's time is before the load's
    for number, point in enumerate(points):
        sql(f"INSERT INTO item (id, name) VALUES ({number}, 'new'), ({number + 100}, 'to be deleted')")
        sql(
            f"UPDATE item SET name = 'later' WHERE id = {number}",
            f"DELETE FROM item WHERE id = {number + 100}",
        )
        sql(f"ALTER TABLE item ADD COLUMN more_{number} INT DEFAULT {number}")
        with running(found, tmp_path / "log", point, config=SMALL) as driver:
            assert driver.exit_status(SOON_SECONDS) != 0, f"{point} wasn't reached: {driver.output()}"
    with running(found, tmp_path / "log", config=SMALL) as driver:
        assert driver.exit_status(SOON_SECONDS) == 0, driver.output()
    table = f"{sql.database}.item"
    present = [row[:2] for row in sql("SELECT * FROM item ORDER BY id")]
    assert [row[:2] for row in rebuilt(lake, table)] == present
    named = lake.arrow(table).column_names
    assert named[-3:] == ["before", "after", "date"]
    statements = [one["op"] for one in changes(lake.arrow("ddl").to_pylist())]
    assert statements == ["create", *["alter"] * len(points)]
