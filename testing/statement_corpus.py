"""A corpus of statements, run on a server and followed into another of its kind by one feed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from .cases import Case
from .compare import compare, mariadb_rows, source_columns
from .feed_run import run_to_end
from .information_schema import definitions
from .private_server import PrivateServer

SCHEMA: Final = "corpus"
TABLE: Final = (
    "CREATE TABLE {t} (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 5, b VARCHAR(40) "
    "DEFAULT 'x', c TEXT, n INT, KEY by_a (a), UNIQUE u (b)) CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "INSERT INTO {t} VALUES (1, 1, 'one', 'first', 10), (2, 2, 'zwölf', NULL, NULL), (3, 3, NULL, '', -3)",
)
"""The table {t} of a case that doesn't create it."""
_CREATES: Final = re.compile(r"^CREATE (OR REPLACE )?TABLE (IF NOT EXISTS )?\{t\} ", re.MULTILINE)
_NAME: Final = re.compile(r"\bt(\d+)(?:_\w+)?\b")


class StatementCorpus:
    """Each case has tables and databases whose names begin with its own; all are followed by one feed."""

    def __init__(
        self, source: PrivateServer, target: PrivateServer, cases: Sequence[Case], directory: Path
    ) -> None:
        self.source = source
        self.target = target
        self.cases = {case.number: case for case in cases}
        self.loads: list[str] = []
        self._directory = directory
        source.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")

    def config(self, name: str, **sink: object) -> dict[str, object]:
        """Return the configuration of a feed with this name."""
        return {
            "name": name,
            "data_dir": str(self._directory / name),
            "source": {
                "url": self.source.url(),
                "tables": ["*.t*"],
                "retry_longest_seconds": 1,
                "cascades": "ignore",
            },
            "sink": [{"name": "copy", "url": self.target.url(), "copy": "definition", **sink}],
        }

    def begin(self) -> None:
        """Create the tables that cases begin with, and load them."""
        with self.source.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
            for number, case in self.cases.items():
                if not _CREATES.search(case.commands):
                    for statement in TABLE:
                        cursor.execute(statement.replace("{t}", f"t{number}"))
        self.follow()

    def execute(self, case: Case) -> None:
        """Run the statements of a case in a session of its own."""
        commands = case.commands.replace("{t}", f"t{case.number}").rstrip(";")
        self.source.execute(*commands.split(";\n"), database=SCHEMA)

    def follow(self) -> None:
        """Run the feed up to the source's present end. Raises its error."""
        run_to_end(self.config("corpus"), self.loads)

    def load(self) -> None:
        """Load all tables, as they are now, by a feed of its own into a schema of its own."""
        run_to_end(self.config("loaded", schema="loaded"), [])

    def outcomes(self) -> dict[int, str]:
        """Return each case's outcome: "applied", or "loaded again" if a table of it was, and the differences
        of the copies."""
        lines_of: dict[int, list[str]] = {number: ["applied"] for number in self.cases}
        for text in self.loads:
            for number in map(int, _NAME.findall(text)[:1]):
                lines_of[number][0] = "loaded again"
        databases = self._databases()
        for where, schemas in (("copy", databases), ("loaded", ["loaded"])):
            for table, differences in self._differences(databases, schemas).items():
                lines_of[_number(table)] += [f"{where}: {one}" for one in differences]
        return {number: "\n".join(lines) for number, lines in lines_of.items()}

    def drop(self) -> None:
        databases = [*self._databases(), "loaded", "tidemill"]
        for server in (self.source, self.target):
            server.execute(
                "SET foreign_key_checks = 0",
                *(f"DROP DATABASE IF EXISTS {database}" for database in databases),
            )

    def _databases(self) -> list[str]:
        with self.source.connect() as connection, connection.cursor() as cursor:
            cursor.execute(r"SHOW DATABASES WHERE `Database` = %s OR `Database` LIKE 't%%\_db'", (SCHEMA,))
            return [name for (name,) in cursor.fetchall()]

    def _differences(self, databases: Sequence[str], copies: Sequence[str]) -> dict[str, list[str]]:
        """Return the differences of each table that has any."""
        lines_of: dict[str, list[str]] = defaultdict(list)
        with self.source.connect() as source, self.target.connect() as target:
            wanted, has = definitions(source, databases), definitions(target, copies)
            for table in sorted(wanted.keys() | has.keys()):
                if table.startswith("tidemill_"):
                    continue
                if table not in wanted or table not in has:
                    lines_of[table].append("isn't there" if table in wanted else "is there")
                    continue
                lacking = Counter(wanted.get(table, [])) - Counter(has.get(table, []))
                more = Counter(has.get(table, [])) - Counter(wanted.get(table, []))
                lines_of[table] += [f"lacks {one}" for one in sorted(lacking)]
                lines_of[table] += [f"has {one}" for one in sorted(more)]
            places = {table: database for database in databases for table in definitions(source, [database])}
            places_of = {table: database for database in copies for table in definitions(target, [database])}
            self._compare_rows(source, places, places_of, lines_of)
        return {table: differences for table, differences in lines_of.items() if differences}

    def _compare_rows(
        self,
        source: pymysql.Connection[Cursor],
        places: dict[str, str],
        places_of: dict[str, str],
        lines_of: dict[str, list[str]],
    ) -> None:
        with self.source.connect(conv={}) as printed, self.target.connect(conv={}) as copied:
            for table in sorted(places.keys() & places_of.keys()):
                if any(line.startswith("lacks COLUMNS") for line in lines_of[table]):
                    continue
                columns = source_columns(source, places[table], table)
                rows = mariadb_rows(lambda **_: nullcontext(printed), places[table], table, columns)
                copy = mariadb_rows(lambda **_: nullcontext(copied), places_of[table], table, columns)
                lines_of[table] += compare({table: (rows, copy)}).differences


def _number(table: str) -> int:
    match = _NAME.fullmatch(table)
    assert match is not None, table
    return int(match[1])
