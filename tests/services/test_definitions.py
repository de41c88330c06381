"""Whole definitions of tables are copied (copy = "definition"): loaded, and then changed by statements.

The cases are in definitions.txt: each has a schema of its own, and one feed follows them all. A title says if
only one of the servers has its statements. The outcome says if the copy's tables were loaded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidemill.testing.cases import Case, expect_all, load
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.schemas_at_once import SchemasAtOnce

FILE = Path(__file__).with_name("definitions.txt")
TABLES = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL COMMENT 'it''s a', b VARCHAR(40) "
    "DEFAULT 'x', c TEXT, n INT DEFAULT 7, KEY by_a (a), UNIQUE u (b, a), FULLTEXT KEY words (c), "
    "CONSTRAINT positive CHECK (a > 0 AND b <> 'no one')) CHARSET utf8mb4 COMMENT 'the \"first\"'",
    "CREATE TABLE u (id INT PRIMARY KEY, a INT, note TEXT) CHARSET latin1 ROW_FORMAT=COMPACT",
    "CREATE TABLE v (id INT PRIMARY KEY, a VARBINARY(9) DEFAULT x'5ca601', b BINARY(3) DEFAULT x'27ff', "
    "c VARBINARY(9) DEFAULT 'why?')",
    "INSERT INTO t (a, b) VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    "INSERT INTO u VALUES (1, 1, 'note'), (2, 2, NULL)",
)


def play(
    source: PrivateServer, target: PrivateServer, cases: Sequence[Case], directory: Path
) -> dict[int, str]:
    """Return the outcome of each case by its number."""
    copies = SchemasAtOnce(
        source, "whole", directory, {"copy": target}, {"copy": {"copy": "definition"}}, cascades="ignore"
    )
    outcomes: dict[int, str] = {}
    try:
        copies.create(len(cases), TABLES)
        assert [copies.definition_differences("copy", number) for number in range(len(cases))] == [[]] * len(
            cases
        )
        for number, case in enumerate(cases):
            copies.execute(number, case.commands)
        copies.follow()
        for number, case in enumerate(cases):
            found = copies.definition_differences("copy", number) + copies.differences(number)
            outcomes[case.number] = "\n".join([copies.effect("copy", number), *found])
    finally:
        copies.drop(len(cases))
    return outcomes


def test_definitions_follow_a_mariadb(
    mariadb: MariaDb, private_mariadb: MariaDb, tmp_path: Path, rewrite: bool
) -> None:
    every = load(FILE)
    cases = [case for case in every if "(MySQL)" not in case.title]
    found = play(mariadb, private_mariadb.start(), cases, tmp_path)
    outcomes = [(case.given, found.get(case.number, case.wanted)) for case in every]
    expect_all(FILE, outcomes, rewrite)


def test_definitions_follow_a_mysql(
    mysql97: MySql, private_mysql: MySql, tmp_path: Path, rewrite: bool
) -> None:
    every = load(FILE)
    cases = [case for case in every if "(MariaDB)" not in case.title]
    found = play(mysql97, private_mysql.start(), cases, tmp_path)
    outcomes = [
        (case.given, found.get(case.number, case.wanted) if "(MySQL)" in case.title else case.wanted)
        for case in every
    ]
    expect_all(FILE, outcomes, rewrite)
    for number, outcome in found.items():
        assert outcome in ("applied", "loaded again"), every[number].title
