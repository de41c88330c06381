"""A stream merged into a table of Delta Lake, by a Python environment of its own (`tests/services/delta`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from . import delta_copy

HOME = Path(__file__).parents[3] / "build/delta"


@pytest.mark.soak
def test_a_table_of_delta_lake_follows_inserts_updates_deletes_and_moved_keys(
    sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    if not (HOME / ".installed").exists():
        pytest.skip(f"{HOME} doesn't hold Delta Lake: run tests/services/delta, which says why it can't")
    sql(
        "CREATE TABLE item (a INT, b VARCHAR(9), note TEXT, price DECIMAL(10,2), PRIMARY KEY (a, b))",
        "INSERT INTO item SELECT seq, 'x', CONCAT('note ', seq), seq / 4 FROM seq_1_to_20",
    )
    position = ":".join(str(part) for part in sql("SHOW MASTER STATUS")[0][:2])
    sql(
        "INSERT INTO item VALUES (100, 'n', 'new', 1.25), (101, 'n', NULL, NULL)",
        "UPDATE item SET note = 'changed' WHERE a % 3 = 0",
        "DELETE FROM item WHERE a % 5 = 0",
        "UPDATE item SET a = a + 1000 WHERE a % 7 = 0",
        "INSERT INTO item VALUES (5, 'x', 'again', 0)",
    )
    command = [HOME / "bin/python", delta_copy.__file__]
    arguments = [mariadb.url(), f"{sql.database}.item", str(tmp_path), position, str(HOME / "jars")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == sorted([str(value) for value in row] for row in sql("SELECT * FROM item"))
    assert found["versions"] > 4, "the changes came in one batch"
