"""Statements that change a schema, run on a live server: all copies are then as the source is.

The cases are in statements_followed.txt. Each begins with the tables `t` and `u`, which are loaded first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.cases import Case, load, title
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb118 import MariaDb118
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.schema_copies import SchemaCopies

CASES = load(Path(__file__).with_name("statements_followed.txt"))
SAMPLE = CASES[::40]
"""The cases that the ordinary run has for MariaDB 11.8, too."""
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT DEFAULT 7, at DATETIME) CHARSET utf8mb4",
    "CREATE TABLE u (id INT PRIMARY KEY, t_id INT, note TEXT) CHARSET utf8mb4",
    "INSERT INTO t VALUES (1, 'one', 10, '2024-02-29 12:00:00'), (2, 'zwölf', NULL, NULL), (3, '', -3, NULL)",
    "INSERT INTO u VALUES (1, 1, 'note'), (2, 2, NULL)",
)


@pytest.fixture
def copies(mariadb: MariaDb, database: str, postgresql: PostgreSql, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path, postgres=postgresql)
    copies.execute(*TABLES)
    copies.follow()
    yield copies
    copies.drop()


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_statement_is_followed(case: Case, copies: SchemaCopies, rewrite: bool) -> None:
    commands = case.commands.replace("{schema}", copies.schema)
    copies.execute(*commands.rstrip(";").split(";\n"))
    copies.follow()
    assert copies.differences() == []
    loads = [text.partition(": ")[0] for text in copies.loads]
    found = [
        f"{sink}: {'loaded again' if sink in loads else 'applied'}"
        for sink in ("mariadb", "definition", "sqlite", "postgres")
    ]
    case.expect("\n".join(found), rewrite)


@pytest.fixture
def newer_copies(
    mariadb118: MariaDb118, mariadb118_database: str, postgresql: PostgreSql, tmp_path: Path
) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb118, mariadb118_database, tmp_path, postgres=postgresql)
    copies.execute(*TABLES)
    copies.follow()
    yield copies
    copies.drop()


@pytest.mark.parametrize("case", SAMPLE, ids=title)
def test_a_statement_of_mariadb_11_8_is_followed(case: Case, newer_copies: SchemaCopies) -> None:
    run_on_newer(case, newer_copies)


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=title)
def test_every_statement_of_mariadb_11_8_is_followed(case: Case, newer_copies: SchemaCopies) -> None:
    run_on_newer(case, newer_copies)


def run_on_newer(case: Case, copies: SchemaCopies) -> None:
    copies.execute(*case.commands.replace("{schema}", copies.schema).rstrip(";").split(";\n"))
    copies.follow()
    assert copies.differences() == []
