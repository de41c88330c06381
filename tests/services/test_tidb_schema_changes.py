"""Random schema changes of an emulated TiDB, copied into MariaDB through kill -9 and restarts."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import MariaDb

from ..pump.world import History

FEED = """\
name = "{target}"
data_dir = "{directory}/state"
until = "now"

[source]
url = "tikv://{pd}"
tables = ["shop.*"]

[[sink]]
url = "{url}"
"""
COLUMNS = """
    SELECT table_name, column_name, column_type, is_nullable, column_default, column_key = 'PRI'
    FROM information_schema.columns WHERE table_schema = %s AND table_name NOT LIKE 'tidemill%%'
    ORDER BY table_name, ordinal_position
"""


def run(tidb: Tidb, directory: Path, server: MariaDb, target: str, point: str = "") -> None:
    """Run until now, or until the process is killed at a failpoint that it reaches before."""
    config = directory / f"{target}.toml"
    url = server.url(target)
    config.write_text(FEED.format(directory=directory, pd=tidb.pd_address, target=target, url=url))
    with Child([*CLI, "run", config], directory / f"{target}.log", failpoint=point) as feed:
        status = feed.exit_status()
        assert status == 0 or (point and status == -signal.SIGKILL), feed.output()[-3000:]


def copied(server: MariaDb, schema: str) -> tuple[list[Any], dict[str, list[Any]]]:
    """The columns of all tables in their order, and the rows of each table."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(COLUMNS, (schema,))
        columns = [tuple(row) for row in cursor.fetchall()]
        rows = {}
        for table in dict.fromkeys(row[0] for row in columns):
            cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
            rows[table] = sorted(map(repr, cursor.fetchall()))
    return columns, rows


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.soak), pytest.param(3, marks=pytest.mark.soak)]
)
def test_a_copy_that_follows_random_schema_changes_is_the_same_as_a_new_one(
    mariadb, database, tmp_path, seed
):
    followed, fresh = f"{database}_followed", f"{database}_fresh"
    try:
        with Tidb(stores=1, tick_seconds=0.02) as tidb:
            history = History(tidb, seed)
            history.run(10)
            run(tidb, tmp_path, mariadb, followed)
            for number in range(4):
                for _ in range(5):
                    history.change_schema()
                    history.run(2)
                run(tidb, tmp_path, mariadb, followed, f"sink.altered:{1 + 4 * number}")
            run(tidb, tmp_path, mariadb, followed)
            run(tidb, tmp_path, mariadb, fresh)
        assert copied(mariadb, followed) == copied(mariadb, fresh)
    finally:
        mariadb.execute(*(f"DROP DATABASE IF EXISTS {schema}" for schema in (followed, fresh)))
