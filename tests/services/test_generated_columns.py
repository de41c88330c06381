"""Statements about tables with generated columns: all copies are then as the source is, or as its other
columns are if generated ones are left out.

The cases are in generated_columns.txt; those that are about leaving columns out are in left_out_columns.txt.
Each begins with the tables `g`, with rows, and `e`, without, which are loaded first. A title names the
servers that have the statements, if not both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidemill.testing.cases import Case, load
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb118 import MariaDb118
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.schemas_at_once import SchemasAtOnce

CASES = load(Path(__file__).with_name("generated_columns.txt"))
LEFT_OUT = load(Path(__file__).with_name("left_out_columns.txt"))
TABLES = (
    "CREATE TABLE g (id INT PRIMARY KEY, n INT, price DECIMAL(9,2), name VARCHAR(20), free INT,"
    " v INT AS (IFNULL(n, -1) + 1) VIRTUAL, s INT AS (n * 2) STORED,"
    " total DECIMAL(9,2) AS (price * 3) STORED, size INT AS (LENGTH(name)) STORED) CHARSET latin1",
    "CREATE TABLE e (id INT PRIMARY KEY, n INT, name VARCHAR(20)) CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "INSERT INTO g (id, n, price, name) VALUES (1, 1, 1.23, 'ä'), (2, NULL, NULL, NULL), (3, -4, 0.5, '')",
)


def test_statements_of_mariadb_are_followed(mariadb: MariaDb, mariadb118: MariaDb118, tmp_path: Path) -> None:
    follow([case for case in CASES if "(MySQL)" not in case.title], mariadb, mariadb118, tmp_path)


def test_statements_of_mysql_are_followed(mysql97: MySql, private_mysql: MySql, tmp_path: Path) -> None:
    cases = [case for case in CASES if "(MariaDB)" not in case.title]
    follow(cases, mysql97, private_mysql.start(), tmp_path)


def test_statements_are_followed_without_generated_columns(
    mariadb: MariaDb, mariadb118: MariaDb118, tmp_path: Path
) -> None:
    """The first server doesn't log these columns of all rows, the second one does."""
    for name, source, alike in (("11.8", mariadb118, mariadb), ("10.11", mariadb, mariadb118)):
        (tmp_path / name).mkdir()
        follow(left_out("(MySQL)"), source, alike, tmp_path / name, generated_columns="leave_out")


def test_statements_of_mysql_are_followed_without_generated_columns(
    mysql97: MySql, private_mysql: MySql, tmp_path: Path
) -> None:
    cases = left_out("(MariaDB)")
    follow(cases, mysql97, private_mysql.start(), tmp_path, generated_columns="leave_out")


def left_out(other: str) -> list[Case]:
    """All cases but those of the other servers, with their effects if generated columns are left out."""
    cases = [
        case._replace(
            wanted="\n".join(
                f"{sink}: {effect(case, sink, of_mysql=other == '(MariaDB)')}"
                for sink in ("server", "sqlite")
            )
        )
        for case in CASES
    ]
    return [case for case in (*cases, *LEFT_OUT) if other not in case.title]


def effect(case: Case, sink: str, *, of_mysql: bool) -> str:
    if case.title == "a generated column becomes an ordinary one":
        return "loaded again"
    converts = case.title.endswith(("changes its type", "loses its NULLs"))
    return "loaded again" if converts and (sink == "sqlite" or of_mysql) else "applied"


def follow(
    cases: Sequence[Case], source: PrivateServer, alike: PrivateServer, directory: Path, **options: Any
) -> None:
    """Follow the statements into a server of the same kind and SQLite; each case has a schema of its own."""
    copies = SchemasAtOnce(
        source, "generated", directory, {"server": alike}, {"server": {"copy": "definition"}}, **options
    )
    try:
        copies.create(len(cases), TABLES)
        for number, case in enumerate(cases):
            copies.execute(number, case.commands)
        copies.follow()
        found: list[str] = []
        for number, case in enumerate(cases):
            effects = [f"{sink}: {copies.effect(sink, number)}" for sink in ("server", "sqlite")]
            differences = copies.differences(number) + copies.definition_differences("server", number)
            found.append("\n".join([f"# {case.title}", *effects, *differences]))
        assert found == [f"# {case.title}\n{case.wanted}" for case in cases]
    finally:
        copies.drop(len(cases))
