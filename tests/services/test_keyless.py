"""Tables without a primary key, from a real MariaDB into both kinds of SQL targets."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb


@pytest.fixture(params=["sqlite", "mariadb"])
def place(
    request: pytest.FixtureRequest, mariadb: MariaDb, database: str, tmp_path: Path
) -> Iterator[CopiedTable]:
    """A feed that wasn't started yet."""
    place = CopiedTable(tmp_path, mariadb, database)
    if request.param == "mariadb":
        place.copy_server, place.copy_schema = mariadb, f"{database}_copy"
        place.configure(sinks=[mariadb.url(place.copy_schema)], source="chunk_rows = 10")
    yield place
    place.execute(f"DROP DATABASE IF EXISTS {database}_copy")


def key_of_copy(place: CopiedTable) -> list[str]:
    if place.copy_server is None:
        with closing(sqlite3.connect(place.copy)) as connection:
            sql = f"SELECT name FROM pragma_table_info('{place.schema}.item') WHERE pk ORDER BY pk"
            return [name for (name,) in connection.execute(sql)]
    return [row[4] for row in place.execute(f"SHOW INDEX FROM {place.copy_schema}.item")]


def test_a_unique_key_is_the_copy_s_primary_key(place: CopiedTable) -> None:
    place.execute(
        f"USE {place.schema}",
        "DROP TABLE item",
        "CREATE TABLE item (name VARCHAR(40), id INT NOT NULL, at INT NOT NULL, "
        "UNIQUE (name), UNIQUE (at, id))",
        "INSERT INTO item SELECT CONCAT('item ', seq), seq, seq % 7 FROM seq_1_to_500",
    )
    place.continues()
    place.execute(
        f"USE {place.schema}",
        "DELETE FROM item WHERE at = 3",
        "UPDATE item SET at = at + 10, name = NULL WHERE id > 300",
        "INSERT INTO item VALUES ('new', 1, 8)",
    )
    place.continues()
    assert key_of_copy(place) == ["at", "id"]


@pytest.mark.parametrize("passes", [1, 2])
def test_a_large_transaction_without_a_key_survives_a_kill(place: CopiedTable, passes: int) -> None:
    place.execute(
        f"USE {place.schema}",
        "DROP TABLE item",
        "CREATE TABLE item (id INT, name VARCHAR(40))",
        "INSERT INTO item SELECT seq DIV 2, IF(seq % 3, 'x', NULL) FROM seq_1_to_15000",
    )
    place.continues()
    place.execute(
        f"USE {place.schema}",
        "BEGIN",
        "UPDATE item SET name = 'y' WHERE id < 1000 LIMIT 1500",
        "DELETE FROM item LIMIT 12500",
        "COMMIT",
    )
    with place.start(failpoint=f"sink.mid_batch:{passes}") as running:
        running.dies()
    done = place.run()
    assert done.status == 0, done
    assert Counter(place.copied()) == Counter(place.present())
