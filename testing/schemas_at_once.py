"""Many schemas in one feed, each with statements of its own, from one server into others and SQLite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ..dialects.mysql.client import Session
from .compare import PrintedColumn, Rows, compare, mariadb_rows, source_columns, sqlite_rows
from .feed_run import run_to_end
from .information_schema import definition
from .private_server import PrivateServer


class SchemasAtOnce:
    """The schemas `{prefix}_0`, `{prefix}_1`, …; a server's copies have the same names."""

    def __init__(
        self,
        source: PrivateServer,
        prefix: str,
        directory: Path,
        servers: dict[str, PrivateServer],
        options: dict[str, dict[str, object]] | None = None,
        **source_options: object,
    ) -> None:
        """`servers` are the targets by the names of their sinks, besides `sqlite`; `options` are those of
        sinks."""
        self.source = source
        self._generated = source_options.get("generated_columns") != "leave_out"
        self.prefix = prefix
        self.servers = servers
        self.file = directory / "copy.db"
        self.loads: list[str] = []
        """Loads of tables after the first: the sink and the reason."""
        self._connections: dict[PrivateServer, Session] = {}
        self._printing: dict[PrivateServer, Session] = {}
        """Connections that return values as the server prints them."""
        of_sinks = options or {}
        sinks = [
            {"name": name, "url": server.url(), **of_sinks.get(name, {})} for name, server in servers.items()
        ]
        self._config: dict[str, object] = {
            "name": prefix,
            "data_dir": str(directory / "state"),
            "source": {
                "url": source.url(),
                "tables": [f"{prefix}_*.*"],
                "retry_longest_seconds": 1,
                **source_options,
            },
            "sink": [*sinks, {"name": "sqlite", "url": f"sqlite:///{self.file}"}],
        }

    def schema(self, number: int) -> str:
        return f"{self.prefix}_{number}"

    def create(self, count: int, statements: Sequence[str]) -> None:
        """Create the schemas, each by these statements, and load them."""
        with self.source.connect() as connection, connection.cursor() as cursor:
            for number in range(count):
                cursor.execute(f"CREATE DATABASE {self.schema(number)}")
                cursor.execute(f"USE {self.schema(number)}")
                for statement in statements:
                    cursor.execute(statement)
        self.follow()

    def execute(self, number: int, commands: str) -> None:
        """Run a case's statements in a session of its own, in its schema."""
        schema = self.schema(number)
        self.source.execute(*commands.replace("{schema}", schema).rstrip(";").split(";\n"), database=schema)

    def follow(self) -> None:
        """Run the feed up to the source's present end. Raises its error."""
        run_to_end(self._config, self.loads)

    def effect(self, sink: str, number: int) -> str:
        """Return "loaded again" if the sink has loaded a table of this schema again, else "applied"."""
        schema = self.schema(number)
        is_loaded = any(text.startswith(f"{sink}: ") and f"{schema}." in text for text in self.loads)
        return "loaded again" if is_loaded else "applied"

    def differences(self, number: int) -> list[str]:
        """Return the differences of all copies of a schema in tables and rows."""
        schema = self.schema(number)
        tables = self._tables(self.source, schema)
        lines = [
            f"{name}: has {present} in place of {tables}"
            for name, server in self.servers.items()
            if (present := self._tables(server, schema)) != tables
        ]
        if lines:
            return lines
        pairs: dict[str, tuple[Rows, Rows]] = {}
        for table in tables:
            columns = source_columns(self._connection(self.source), schema, table, generated=self._generated)
            rows = self._rows(self.source, schema, table, columns)
            for name, server in self.servers.items():
                pairs[f"{name}: {table}"] = rows, self._rows(server, schema, table, columns)
            pairs[f"sqlite: {table}"] = rows, sqlite_rows(self.file, f"{schema}.{table}", columns)
        return compare(pairs).differences

    def definition_differences(self, sink: str, number: int) -> list[str]:
        """Return the differences of definitions, as far as they are copied, of a target of the source's
        kind."""
        schema = self.schema(number)
        source, copy = self._connection(self.source), self._connection(self.servers[sink])
        lines = []
        for table in self._tables(self.source, schema):
            copied = {one.name for one in source_columns(source, schema, table, generated=self._generated)}
            left_out = [one.name for one in source_columns(source, schema, table) if one.name not in copied]
            wanted, has = definition(source, schema, table), definition(copy, schema, table)
            wanted = [line for line in wanted if not any(f"`{name}`" in line for name in left_out)]
            if wanted != has:
                lacking, more = Counter(wanted) - Counter(has), Counter(has) - Counter(wanted)
                lines.append(f"{table} lacks {[*lacking.elements()]}, has {[*more.elements()]}")
        return lines

    def drop(self, count: int) -> None:
        """Drop this many schemas on all servers, and close the connections."""
        for connection in (*self._connections.values(), *self._printing.values()):
            connection.close()
        for server in (self.source, *self.servers.values()):
            server.execute(
                *(f"DROP DATABASE IF EXISTS {self.schema(number)}" for number in range(count)),
                "DROP DATABASE IF EXISTS tidemill",
            )

    def _tables(self, server: PrivateServer, schema: str) -> list[str]:
        with self._connection(server).cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = %s "
                "AND table_type = 'BASE TABLE' ORDER BY BINARY table_name",
                (schema,),
            )
            return [name for (name,) in cursor.fetchall()]

    def _rows(self, server: PrivateServer, schema: str, table: str, columns: Sequence[PrintedColumn]) -> Rows:
        def connect(**options: Any) -> AbstractContextManager[Session]:
            if server not in self._printing:
                self._printing[server] = server.connect(**options)
            return nullcontext(self._printing[server])

        return mariadb_rows(connect, schema, table, columns)

    def _connection(self, server: PrivateServer) -> Session:
        # One for all queries: a login at MySQL takes as long as many of them.
        if server not in self._connections:
            self._connections[server] = server.connect()
        return self._connections[server]
