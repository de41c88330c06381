"""The statements of statements_followed.txt on MySQL, copied into MySQL, MariaDB and SQLite.

Each case has a schema of its own, and one feed follows them all. A title says if only MariaDB has the
statements.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.testing.cases import load
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.schemas_at_once import SchemasAtOnce

CASES = [
    case
    for case in load(Path(__file__).with_name("statements_followed.txt"))
    if "(MariaDB)" not in case.title
]
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT DEFAULT 7, at DATETIME) "
    "CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE u (id INT PRIMARY KEY, t_id INT, note TEXT) CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "INSERT INTO t VALUES (1, 'one', 10, '2024-02-29 12:00:00'), (2, 'zwölf', NULL, NULL), (3, '', -3, NULL)",
    "INSERT INTO u VALUES (1, 1, 'note'), (2, 2, NULL)",
)


@pytest.mark.long
def test_statements_of_mysql_are_followed(
    mysql97: MySql, private_mysql: MySql, mariadb: MariaDb, tmp_path: Path
) -> None:
    copies = SchemasAtOnce(
        mysql97,
        "statement",
        tmp_path,
        {"mysql": private_mysql.start(), "mariadb": mariadb},
        {
            "mysql": {"copy": "definition"},
            "mariadb": {"collations": {"utf8mb4_0900_ai_ci": "utf8mb4_nopad_bin"}},
        },
    )
    try:
        copies.create(len(CASES), TABLES)
        for number, case in enumerate(CASES):
            copies.execute(number, case.commands)
        copies.follow()
        found = {
            case.title: differences
            for number, case in enumerate(CASES)
            if (differences := copies.differences(number) + copies.definition_differences("mysql", number))
        }
        assert not found, "\n".join(f"{title}: {found[title]}" for title in found)
    finally:
        copies.drop(len(CASES))
