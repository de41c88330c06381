"""A feed from MariaDB into copies in a lake: killed at every step of a commit."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.progress import eventually

POINTS = [point for point in ALL_POINTS if point.startswith(("storage.", "copy.", "sink."))]
POINTS.remove("sink.altered")
STATEMENTS = [
    "ALTER TABLE {} ADD COLUMN more_{} INT NOT NULL DEFAULT 7",
    "ALTER TABLE {} ADD COLUMN more_{} DATETIME(3) NULL AFTER id",
    "ALTER TABLE {} CHANGE name name VARCHAR({}0)",
    "TRUNCATE TABLE {}",
    "ALTER TABLE {} MODIFY id BIGINT",
    "ALTER TABLE {} ADD COLUMN more_{} DECIMAL(8,2) UNSIGNED DEFAULT 1.5",
    "ALTER TABLE {} MODIFY more_0 VARCHAR(9)",
]


@pytest.fixture
def place(mariadb, database, tmp_path):
    return CopiedTable(tmp_path, mariadb, database)


class Copy:
    """A table of a lake, as its own library reads it."""

    def __init__(self, folder: Path, name: str) -> None:
        if (folder / "catalog.db").exists():
            with SqlCatalog("tidemill", uri=f"sqlite:///{folder}/catalog.db") as catalog:
                table = catalog.load_table(name)
            rows = table.scan().to_arrow()
            self.columns = [(one.name, not one.required) for one in table.schema().fields]
        else:
            delta = DeltaTable(folder / name)
            rows = pa.table(QueryBuilder().register("t", delta).execute("SELECT * FROM t"))
            self.columns = [(one.name, one.nullable) for one in delta.schema().fields]
        self.rows = sorted(tuple(row.values()) for row in rows.to_pylist())


def present(place: CopiedTable, name: str = "item") -> list[tuple]:
    """Return the rows of the source as a copy shows them."""
    rows = place.execute(f"SELECT * FROM {place.schema}.{name}")
    return sorted(tuple(f"{one}.000" if hasattr(one, "hour") else one for one in row) for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delta", "iceberg+sql"])
def test_a_feed_is_killed_at_every_step_of_a_commit(place, tmp_path, kind):
    folder = tmp_path / "lake"
    name = f"{place.schema}.item"
    place.configure(sinks=[f"{kind}://{folder}?mode=copy&flush_seconds=0.1&journal_seconds=0.1"])
    ids = count(10)
    for number, point in enumerate(POINTS):
        with place.start(failpoint=f"{point}:2") as running:
            place.execute(STATEMENTS[number % len(STATEMENTS)].format(name, number))

            def changed(running=running):
                number = next(ids)
                place.execute(
                    f"INSERT INTO {name} (id, name) VALUES ({number}, 'item {number}')",
                    f"UPDATE {name} SET name = 'other' WHERE id = {number - 1}",
                    f"UPDATE {name} SET id = -id WHERE id = {number - 3}",
                    f"DELETE FROM {name} WHERE id = {number - 5}",
                )
                return running.process.poll() is not None

            eventually(changed, sign=lambda: next(ids))
            running.dies()
    place.execute(
        f"RENAME TABLE {name} TO {place.schema}.kept", f"CREATE TABLE {name} LIKE {place.schema}.kept"
    )
    assert place.run().status == 0
    kept = Copy(folder, f"{place.schema}.kept")
    assert kept.rows == present(place, "kept")
    columns = place.execute(f"SHOW COLUMNS FROM {place.schema}.kept")
    assert kept.columns == [(column[0], column[2] == "YES") for column in columns]
    assert Copy(folder, name).rows == []


@pytest.mark.parametrize("kind", ["delta", "iceberg+sql"])
def test_a_table_without_a_key_is_refused_by_its_name(place, tmp_path, kind):
    place.execute(f"CREATE TABLE {place.schema}.loose (n INT)")
    place.configure(sinks=[f"{kind}://{tmp_path / 'lake'}?mode=copy"])
    assert (
        f"{place.schema}.loose has no primary key, by which its copy's rows are found"
        in place.call("check", str(place.config)).out
    )
    ended = place.run()
    assert ended.status == 1
    assert f"{place.schema}.loose has no primary key" in ended.err
