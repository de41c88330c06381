"""Schema changes that a real server runs, applied to all SQL targets: copies that equal the source, or an
error that the table must be loaded again. The cases are in schema_changes.txt.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tidemill.errors import NotReproducible
from tidemill.events import (
    AddColumn,
    Batch,
    ChangeColumn,
    ChangeKey,
    Checkpoint,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
)
from tidemill.sink import Sink, open_sink
from tidemill.snapshot.mysql.definitions import read_table
from tidemill.snapshot.mysql.tables import FoundTable
from tidemill.testing import cases
from tidemill.testing.changes import MemoryStore, create
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.postgres_values import as_printed

from .test_existing_rows import printed

CASES = cases.load(Path(__file__).with_name("schema_changes.txt"))
GENERATED = re.compile(r"GENERATED ALWAYS AS \(.*\) (VIRTUAL|STORED)")
SECOND = 1_700_000_000.25
MODES = {"STRICT_TRANS_TABLES": 1 << 21, "NO_ZERO_DATE": 1 << 24, "TIME_ROUND_FRACTIONAL": 1 << 34}


class Killed(Exception):
    pass


class Source:
    """A schema of the server, and its tables as the source of a feed."""

    def __init__(self, server: MariaDb, schema: str) -> None:
        self.client = Client(server, schema)
        self.schema = schema
        self._settings = server.connect(database=schema)

    def tables(self) -> dict[str, Table]:
        names = [name for (name,) in self.client(f"SHOW TABLES FROM {self.schema}")]
        found = [read_table(self._settings, FoundTable(self.schema, name)) for name in names]
        return {one.table.name: one.table for one in found if one is not None}

    def contents(self, schema: str) -> dict[str, tuple[str, list[str]]]:
        """Return definition and rows of a schema's tables, without tidemill's own. A generated column is as
        an ordinary one."""
        names = [name for (name,) in self.client(f"SHOW TABLES FROM {schema}")]
        return {
            name: (
                GENERATED.sub("DEFAULT NULL", self.client(f"SHOW CREATE TABLE {schema}.{name}")[0][1]),
                sorted(map(repr, self.client(f"SELECT * FROM {schema}.{name}"))),
            )
            for name in names
            if name not in ("tidemill_applied", "tidemill_checkpoint", "tidemill_ddl")
        }

    def stored(self, table: Table) -> list[tuple[Any, ...]]:
        """Return the rows as SQLite stores them."""
        types = dict(
            self.client(
                "SELECT column_name, data_type FROM information_schema.columns "
                f"WHERE table_schema='{table.schema}' AND table_name='{table.name}'"
            )
        )
        parts = ", ".join(printed(f"`{column.name}`", types[column.name]) for column in table.columns)
        rows = self.client(f"SELECT {parts} FROM {table.schema}.`{table.name}`")
        return [tuple(f"{v:020}" if isinstance(v, int) and v >= 1 << 63 else v for v in row) for row in rows]

    def close(self) -> None:
        self.client.close()
        self._settings.close()


class Change:
    """A case: statements, the last of which is the change, and its actions."""

    def __init__(self, text: str, source: Source) -> None:
        lines = text.splitlines()
        self._source = source
        self._actions = [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]
        *self._before, self.statement = [line for line in lines if not line.startswith(("-> ", "source "))]
        named = [line.removeprefix("source ") for line in lines if line.startswith("source ")]
        self._name = named[0] if named else "mariadb server 1"

    def run(self) -> tuple[dict[str, Table], Ddl]:
        """Run the statements; return the tables before the change, and the change."""
        client = self._source.client
        client.reconnect()
        client(*self._before)
        before = self._source.tables()
        self.rows = {name: self._source.stored(table) for name, table in before.items()}
        client("DROP DATABASE IF EXISTS " + self.copy, "CREATE DATABASE " + self.copy)
        for name in before:
            client(
                f"CREATE TABLE {self.copy}.{name} LIKE {name}",
                f"INSERT INTO {self.copy}.{name} SELECT * FROM {name}",
            )
        (modes,) = client("SELECT @@sql_mode")[0]
        bits = sum(bit for name, bit in MODES.items() if name in modes.split(","))
        client(f"SET timestamp={SECOND}", self.statement)
        after = self._source.tables()
        name = re.findall(r"TABLE (?:IF EXISTS )?(\w+)", self.statement)[0]
        actions = tuple(self._action(line, before.get(name), after) for line in self._actions)
        ddl = Ddl(
            30, 0, self._name, self._source.schema, name, self.statement, actions, "log:30", sql_mode=bits,
            epoch_seconds=SECOND,
        )  # fmt: skip
        return before, ddl

    @property
    def copy(self) -> str:
        return f"{self._source.schema}_before"

    def _action(self, text: str, before: Table | None, after: dict[str, Table]) -> Any:
        text, _, expression = text.partition(" as ")
        word, *names = ["" if part == "FIRST" else part for part in text.split()]
        schema = self._source.schema
        table = next(iter(after.values()), None)
        match word, names:
            case "create", [name, *rest]:
                return CreateTable(after[name], replaces=rest == ["replaces"])
            case "drop-table", []:
                return DropTable()
            case "truncate", []:
                return TruncateTable()
            case "rename", _:
                pairs = zip(names[::2], names[1::2], strict=True)
                return RenameTables(tuple(((schema, old), (schema, new)) for old, new in pairs))
            case "add", [name, *place]:
                return AddColumn(column(table, name), *place, expression=expression)
            case "drop", [name, *rest]:
                return DropColumn(name, if_exists=bool(rest))
            case "change", [old, *new]:
                name, *place = new or [old]
                return ChangeColumn(old, column(table, name), column(before, old), *place)
            case "key", []:
                return ChangeKey(tuple(table.columns[index].name for index in table.key))
        raise AssertionError(text)


def column(table: Table | None, name: str) -> Any:
    return next((column for column in table.columns if column.name == name), None) if table else None


class MariaDbCopy:
    def __init__(self, source: Source, schema: str) -> None:
        self.source, self.schema = source, schema
        self._url = source.client.server.url(schema)

    def sink(self) -> Sink:
        return open_sink("copy", self._url, feed="test", store=MemoryStore())

    def begin(self, tables: dict[str, Table], change: Change) -> None:
        self.source.client(f"DROP DATABASE IF EXISTS {self.schema}")
        created(self.sink(), tables)
        for name in tables:
            self.source.client(f"INSERT INTO {self.schema}.{name} SELECT * FROM {change.copy}.{name}")

    def difference(self) -> str:
        wanted, found = self.source.contents(self.source.schema), self.source.contents(self.schema)
        left = self.source.client(f"SELECT * FROM {self.schema}.tidemill_ddl")
        return "" if found == wanted and not left else f"WRONG: {found} {left}, not {wanted}"


class SqliteCopy:
    def __init__(self, source: Source, file: Path) -> None:
        self.source, self.file = source, file

    def sink(self) -> Sink:
        options = {"table_name": "{table}"}
        return open_sink("copy", f"sqlite:///{self.file}", feed="test", store=MemoryStore(), options=options)

    def begin(self, tables: dict[str, Table], change: Change) -> None:
        self.file.unlink(missing_ok=True)
        created(self.sink(), tables)
        with closing(sqlite3.connect(self.file)) as connection:
            for name, rows in change.rows.items():
                marks = ",".join("?" * len(tables[name].columns))
                connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
            connection.commit()

    def difference(self) -> str:
        tables = self.source.tables()
        with closing(sqlite3.connect(self.file)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            found = {}
            for table in tables.values():
                if table.name not in names:
                    return f"WRONG: {table.name} isn't there"
                columns = ", ".join(f'"{column.name}"' for column in table.columns)
                found[table.name] = sorted(
                    map(repr, connection.execute(f'SELECT {columns} FROM "{table.name}"'))
                )
                wanted_key = {table.columns[index].name: place for place, index in enumerate(table.key, 1)}
                key = connection.execute(f"SELECT name, pk FROM pragma_table_info('{table.name}') WHERE pk")
                if dict(key) != wanted_key:
                    return "WRONG: its key"
        wanted = {table.name: sorted(map(repr, self.source.stored(table))) for table in tables.values()}
        more = {name for name in names if not name.startswith(("tidemill_", "sqlite_"))} - set(tables)
        return "" if found == wanted and not more else f"WRONG: {found} {more}, not {wanted}"


class PostgresCopy:
    def __init__(self, source: Source, server: PostgreSql, database: str) -> None:
        self.source = source
        self._server = server
        self._database = database

    def sink(self) -> Sink:
        options = {"schema": "copy", "dates": "text"}
        url = self._server.url(self._database)
        return open_sink("copy", url, feed="test", store=MemoryStore(), options=options)

    def begin(self, tables: dict[str, Table], change: Change) -> None:
        with self._connected() as connection:
            connection.execute("DROP SCHEMA IF EXISTS copy CASCADE")
            created(self.sink(), tables)
            for name, rows in change.rows.items():
                marks = ",".join("%s" for _ in tables[name].columns)
                for row in rows:
                    values = [
                        f"{int(value):0{column.length}b}"
                        if column.kind == "bit" and value is not None
                        else value
                        for column, value in zip(tables[name].columns, row, strict=True)
                    ]
                    connection.execute(f'INSERT INTO copy."{name}" VALUES ({marks})', values)

    def difference(self) -> str:
        tables = {table.name: table for table in self.source.tables().values()}
        with self._connected() as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'copy'").fetchall()
            there = {name for (name,) in names if not name.startswith("tidemill_")}
            if there != set(tables):
                return f"WRONG: the tables are {there}"
            for table in tables.values():
                columns = ", ".join(f'"{column.name}"::text' for column in table.columns)
                rows = connection.execute(f'SELECT {columns} FROM copy."{table.name}"').fetchall()
                found = sorted(repr(tuple(map(wide, table.columns, row))) for row in rows)
                wanted = sorted(map(repr, self.source.stored(table)))
                if found != wanted:
                    return f"WRONG: {found}, not {wanted}"
                key = connection.execute(_KEY, [f'copy."{table.name}"']).fetchall()
                if [name for (name,) in key] != [table.columns[index].name for index in table.key]:
                    return f"WRONG: its key is {key}"
        return ""

    def _connected(self) -> Any:
        return self._server.connect(dbname=self._database, options="-c TimeZone=UTC")


_KEY = """
SELECT attname FROM pg_index, unnest(indkey) WITH ORDINALITY AS k (number, place), pg_attribute
WHERE indrelid = %s::regclass AND indisprimary AND attrelid = indrelid AND attnum = number ORDER BY place
"""


def wide(column: Column, text: str | None) -> Any:
    """Return a value of PostgreSQL as `Source.stored` does."""
    value = as_printed(column, text)
    return f"{value:020}" if isinstance(value, int) and value >= 1 << 63 else value


def created(sink: Sink, tables: dict[str, Table]) -> None:
    for number, table in enumerate(tables.values(), 1):
        apply(sink, create(number, table))
    sink.close()


def apply(sink: Sink, ddl: Ddl) -> None:
    sink.write(Batch([ddl], Checkpoint(ddl.commit_ts, ddl.position, None, "src")))
    sink.flush()


@pytest.fixture
def source(mariadb: MariaDb, database: str) -> Iterator[Source]:
    source = Source(mariadb, database)
    yield source
    source.client(f"DROP DATABASE IF EXISTS {database}_before", f"DROP DATABASE IF EXISTS {database}_copy")
    source.close()


@pytest.fixture
def copies(source: Source, tmp_path: Path, postgresql: PostgreSql, postgres_database: str) -> dict[str, Any]:
    return {
        "mariadb": MariaDbCopy(source, f"{source.schema}_copy"),
        "sqlite": SqliteCopy(source, tmp_path / "copy.db"),
        "postgres": PostgresCopy(source, postgresql, postgres_database),
    }


@pytest.mark.parametrize("case", CASES, ids=cases.title)
def test_a_schema_change(
    case: cases.Case, source: Source, copies: dict[str, Any], rewrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the same in each copy, also after a crash at any point."""
    change = Change(case.commands, source)
    tables, ddl = change.run()
    case.expect("\n".join(outcome(name, copy, tables, ddl, change) for name, copy in copies.items()), rewrite)
    if "mariadb: the same" in case.wanted:
        points = dies_everywhere(copies["mariadb"], tables, ddl, change, monkeypatch)
        assert points >= 3


def outcome(name: str, copy: Any, tables: dict[str, Table], ddl: Ddl, change: Change) -> str:
    copy.begin(tables, change)
    sink = copy.sink()
    sink.open()
    try:
        apply(sink, ddl)
    except NotReproducible as error:
        return f"{name}: loads {error.table.partition('.')[2]} again: {error.reason}"
    finally:
        sink.close()
    return f"{name}: {copy.difference() or 'the same'}"


def dies_everywhere(
    copy: Any, tables: dict[str, Table], ddl: Ddl, change: Change, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Crash at each point in turn, and twice in a row; return the number of points."""
    for nth in count(1):
        copy.begin(tables, change)
        if not crashes(copy, ddl, nth, monkeypatch):
            return nth - 1
        crashes(copy, ddl, 1, monkeypatch)
        sink = copy.sink()
        sink.open()
        apply(sink, ddl)
        sink.close()
        assert copy.difference() == "", f"after a crash at point {nth}"
    raise AssertionError


def crashes(copy: Any, ddl: Ddl, nth: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Apply the change up to the nth point; return False if it has fewer."""
    passes = count(1)

    def reach(_point: str) -> None:
        if next(passes) == nth:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("tidemill.dialects.mysql.changes.reach", reach)
        patched.setattr("tidemill.sink.sql.definitions.reach", reach)
        patched.setattr("tidemill.sink.sql.sql.reach", reach)
        sink = copy.sink()
        sink.open()
        try:
            apply(sink, ddl)
        except Killed:
            return True
        finally:
            sink.close()
    return False
