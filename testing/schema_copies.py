"""Copies of a schema that change with it: one feed into MariaDB, SQLite and PostgreSQL."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ..engine.requests import RequestFile
from ..events import Row
from .child import CLI, Child
from .compare import Rows, compare, mariadb_rows, postgres_rows, source_columns, sqlite_rows
from .feed_run import run_to_end
from .information_schema import definition
from .postgres import PostgreSql
from .private_server import PrivateServer

_DEFINITIONS = """
SELECT table_name, column_name, column_type, is_nullable, column_default, character_set_name, collation_name,
       column_key = 'PRI'
FROM information_schema.columns WHERE table_schema = %s AND table_name NOT LIKE 'tidemill\\_%%'
ORDER BY table_name, ordinal_position
"""


class SchemaCopies:
    """A feed of a schema's tables into the sinks `mariadb` and `sqlite`; if wanted `definition`, `postgres`.

    The copies in MariaDB are in the schemas `{schema}_copy` and `{schema}_whole` of the same server, the
    second one with the tables' whole definitions; that in PostgreSQL is in `{schema}`.
    """

    def __init__(
        self,
        server: PrivateServer,
        schema: str,
        directory: Path,
        *,
        postgres: PostgreSql | None = None,
        **source: object,
    ) -> None:
        self.server = server
        self.schema = schema
        self.copy = f"{schema}_copy"
        self.whole = f"{schema}_whole"
        self.file = directory / "copy.db"
        self.loads: list[str] = []
        """Loads of tables after the first: the sink and the reason."""
        self._directory = directory
        self._config: dict[str, Any] = {
            "name": "copies",
            "data_dir": str(directory / "state"),
            "source": {"url": server.url(), "tables": [f"{schema}.*"], "retry_longest_seconds": 1, **source},
            "sink": [
                {"name": "mariadb", "url": server.url(self.copy)},
                {"name": "definition", "url": server.url(self.whole), "copy": "definition"},
                {"name": "sqlite", "url": f"sqlite:///{self.file}"},
            ],
        }
        self.postgres = postgres
        if postgres is not None:
            postgres_sink = {"name": "postgres", "url": postgres.url(), "schema": schema, "dates": "text"}
            self._config["sink"].append(postgres_sink)

    @property
    def requests(self) -> RequestFile:
        """Requests to the feed."""
        return RequestFile(self._directory / "state")

    def choose(self, tables: Sequence[str], **of_sinks: Sequence[str]) -> None:
        """Have the next run follow these tables, by patterns, and give sinks, by name, only some of them."""
        self._config["source"]["tables"] = [*tables]
        for sink in self._config["sink"]:
            sink.pop("tables", None)
            if sink["name"] in of_sinks:
                sink["tables"] = [*of_sinks[sink["name"]]]

    def park_failed(self) -> None:
        """Have errors about a table park it."""
        self._config["on_table_error"] = "park"

    def execute(self, *statements: str) -> list[Row]:
        """Run statements in one session in the schema; return the rows of the last one."""
        return self.server.execute(*statements, database=self.schema)

    def follow(self) -> None:
        """Run the feed up to the source's present end. Raises its error."""
        run_to_end(self._config, self.loads)

    def follow_in_process(self, failpoint: str = "") -> bool:
        """Run the feed as a process, up to the source's present end; return False if the failpoint killed it.

        Raises AssertionError if it fails.
        """
        file = self._directory / "feed.toml"
        file.write_text("\n".join(_toml(self._config)))
        command = [*CLI, "run", str(file), "--until", "now"]
        with Child(command, self._directory / "log", failpoint=failpoint) as child:
            status = child.exit_status(sign=lambda: len(child.output()))
            assert status in (0, -signal.SIGKILL), child.output()[-5000:]
            return status == 0

    def differences(self) -> list[str]:
        """Return the differences of both copies from the source, in tables, columns and rows."""
        with self.server.connect() as connection:
            source = self._definitions(self.schema)
            tables = sorted({row[0] for row in source})
            lines = []
            if (copied := self._definitions(self.copy)) != source:
                more, less = set(copied) - set(source), set(source) - set(copied)
                lines.append(f"mariadb: lacks {sorted(map(str, less))}, has {sorted(map(str, more))}")
            if (present := self._sqlite_tables()) != [f"{self.schema}.{table}" for table in tables]:
                lines.append(f"sqlite: tables {present}")
            if self.postgres is not None and (present := self._postgres_tables(self.postgres)) != tables:
                lines.append(f"postgres: tables {present}")
            for table in tables:
                wanted = definition(connection, self.schema, table)
                has = definition(connection, self.whole, table)
                if wanted != has:
                    lines.append(f"definition: {table} is {has} in place of {wanted}")
            if lines:
                return lines
            pairs: dict[str, tuple[Rows, Rows]] = {}
            for table in tables:
                columns = source_columns(connection, self.schema, table)
                rows = mariadb_rows(self.server.connect, self.schema, table, columns)
                copy = mariadb_rows(self.server.connect, self.copy, table, columns)
                pairs[f"mariadb: {table}"] = rows, copy
                whole = mariadb_rows(self.server.connect, self.whole, table, columns)
                pairs[f"definition: {table}"] = rows, whole
                pairs[f"sqlite: {table}"] = rows, sqlite_rows(self.file, f"{self.schema}.{table}", columns)
                if self.postgres is not None:
                    there_rows = postgres_rows(self.postgres.connect, self.schema, table, columns)
                    pairs[f"postgres: {table}"] = rows, there_rows
            return compare(pairs).differences

    def _definitions(self, schema: str) -> Sequence[Row]:
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(_DEFINITIONS, (schema,))
            return list(cursor.fetchall())

    def _sqlite_tables(self) -> list[str]:
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=60)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            return [name for (name,) in names if "." in name]

    def _postgres_tables(self, postgres: PostgreSql) -> list[str]:
        with postgres.connect() as connection:
            query = 'SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename COLLATE "C"'
            names = [name for (name,) in connection.execute(query, [self.schema])]
        return [name for name in names if not name.startswith("tidemill_")]

    def drop(self) -> None:
        """Drop the copies on servers."""
        self.execute(f"DROP DATABASE IF EXISTS {self.copy}", f"DROP DATABASE IF EXISTS {self.whole}")
        if self.postgres is not None:
            with self.postgres.connect() as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


def _toml(config: dict[str, Any]) -> Iterator[str]:
    values = {key: value for key, value in config.items() if isinstance(value, str)}
    yield from (f"{key} = {json.dumps(value)}" for key, value in values.items())
    yield "[source]"
    yield from (f"{key} = {json.dumps(value)}" for key, value in config["source"].items())
    for sink in config["sink"]:
        yield "[[sink]]"
        yield from (f"{key} = {json.dumps(value)}" for key, value in sink.items())
