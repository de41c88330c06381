"""A stream merged into a table of Delta Lake, by a Python environment of its own (`tests/services/delta`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from . import delta_copy

HOME = Path(__file__).parents[3] / "build/delta"


@pytest.mark.soak
def test_a_table_of_delta_lake_follows_rows_and_schema_changes(
    sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    if not (HOME / ".installed").exists():
        pytest.skip(f"{HOME} doesn't hold Delta Lake: run tests/services/delta, which says why it can't")
    sql(
        "CREATE TABLE item (a INT, b VARCHAR(9), note TEXT, price DECIMAL(10,2), PRIMARY KEY (a, b))",
        "INSERT INTO item SELECT seq, 'x', CONCAT('note ', seq), seq / 4 FROM seq_1_to_20",
    )
    position = ":".join(str(part) for part in sql("SHOW MASTER STATUS")[0][:2])
    command = [HOME / "bin/python", delta_copy.__file__]
    arguments = [mariadb.url(), f"{sql.database}.item", str(tmp_path), position, str(HOME / "jars")]
    errors = tmp_path / "errors"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [*command, *arguments], stdin=PIPE, stdout=PIPE, stderr=stderr, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert any(line == "loaded\n" for line in process.stdout), errors.read_text()
        sql(
            "INSERT INTO item VALUES (100, 'n', 'new', 1.25), (101, 'n', NULL, NULL)",
            "UPDATE item SET note = 'changed' WHERE a % 3 = 0",
            "DELETE FROM item WHERE a % 5 = 0",
            "UPDATE item SET a = a + 1000 WHERE a % 7 = 0",
            "INSERT INTO item VALUES (5, 'x', 'again', 0)",
            "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7",
            "INSERT INTO item VALUES (6, 'y', 'more', 0, 9)",
            "ALTER TABLE item MODIFY b VARCHAR(40)",
            "UPDATE item SET note = 'after' WHERE a = 3",
            "ALTER TABLE item DROP COLUMN price",
            "DELETE FROM item WHERE a = 4",
        )
        process.stdin.write("\n")
        process.stdin.flush()
        lines = process.stdout.readlines()
    assert not process.returncode, errors.read_text()
    found = json.loads(lines[-1])
    assert found["rows"] == sorted([str(value) for value in row] for row in sql("SELECT * FROM item"))
    assert len(found["refusals"]) > 1, "the changes came in one batch"
    assert all("and this is batch 1 with other changes" in one for one in found["refusals"])
