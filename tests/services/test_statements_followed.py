"""Statements that change a schema, run on a live server: both copies are then as the source is.

The cases are in statements_followed.txt. Each begins with the tables `t` and `u`, which are loaded first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.cases import Case, load, title
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.schema_copies import SchemaCopies

CASES = load(Path(__file__).with_name("statements_followed.txt"))
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT DEFAULT 7, at DATETIME) CHARSET utf8mb4",
    "CREATE TABLE u (id INT PRIMARY KEY, t_id INT, note TEXT) CHARSET utf8mb4",
    "INSERT INTO t VALUES (1, 'one', 10, '2024-02-29 12:00:00'), (2, 'zwölf', NULL, NULL), (3, '', -3, NULL)",
    "INSERT INTO u VALUES (1, 1, 'note'), (2, 2, NULL)",
)


@pytest.fixture
def copies(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path)
    copies.execute(*TABLES)
    copies.follow()
    yield copies
    copies.execute(f"DROP DATABASE IF EXISTS {copies.copy}")


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_statement_is_followed(case: Case, copies: SchemaCopies, rewrite: bool) -> None:
    commands = case.commands.replace("{schema}", copies.schema)
    copies.execute(*commands.rstrip(";").split(";\n"))
    copies.follow()
    assert copies.differences() == []
    loads = [text.partition(": table")[0] for text in copies.loads]
    found = [f"{sink}: {'loaded again' if sink in loads else 'applied'}" for sink in ("mariadb", "sqlite")]
    case.expect("\n".join(found), rewrite)
