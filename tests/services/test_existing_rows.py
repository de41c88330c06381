"""Values of a new column's default in existing rows: the same in the source and all targets.

The cases are in existing_rows.txt, each run on a table of its own.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pymysql
import pytest
from msgspec.structs import replace

from tidemill.errors import NotReproducible, SinkError
from tidemill.events import AddColumn, Batch, ChangeColumn, Checkpoint, Column, CreateTable, Ddl
from tidemill.puller.puller import Connected
from tidemill.sink import Sink, open_sink
from tidemill.testing import cases
from tidemill.testing.changes import MemoryStore
from tidemill.testing.compare import quoted
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.postgres_values import as_printed

from .pulling import Pulling

CASES = Path(__file__).with_name("existing_rows.txt")
TZINFO = shutil.which("mariadb-tzinfo-to-sql") or ""
SECOND = 1_700_000_000.123456  # 2023-11-14 22:13:20.123456


class Case(NamedTuple):
    number: int
    text: str

    @property
    def table(self) -> str:
        return f"t{self.number}"

    @property
    def settings(self) -> str:
        before, found, _ = self.text.partition(" | ")
        return before if found else ""

    @property
    def clauses(self) -> str:
        return self.text.rpartition(" | ")[2]


def test_the_cases(own: Client, postgres_url: str, tmp_path: Path, rewrite: bool) -> None:
    """Each is an ALTER TABLE; what stands in front of "|" is set in its session."""
    changes = [Case(block.number, block.given) for block in cases.load(CASES)]
    found = outcomes(own, postgres_url, tmp_path, changes)
    cases.expect_all(CASES, [(change.text, found[change.table]) for change in changes], rewrite)


@pytest.mark.parametrize(("zone", "hours"), [("Asia/Kolkata", "03:43:20"), ("Europe/Berlin", "loaded again")])
def test_a_session_in_the_server_s_own_time_zone(
    private_mariadb: MariaDb,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
    hours: str,
) -> None:
    """Where that has summer time, it is known only for about a year."""
    monkeypatch.setenv("TZ", zone)
    with private_mariadb as server:
        server.execute("CREATE DATABASE shop")
        changes = [
            Case(0, "ADD a DATETIME DEFAULT NOW()"),
            Case(1, "ADD a TIMESTAMP DEFAULT NOW()"),
            Case(2, "ADD a TIMESTAMP DEFAULT '2020-01-01'"),
            Case(3, "ADD a TIMESTAMP DEFAULT 0, ADD b DATE DEFAULT '2020-01-01'"),
            Case(4, "timestamp=DEFAULT | ADD a DATE DEFAULT NOW(), ADD b DATETIME DEFAULT CURDATE()"),
        ]
        found = outcomes(Client(server, "shop"), postgres_url, tmp_path, changes)
    assert hours in found["t0"]
    assert found["t1"] == "a='2023-11-14 22:13:20'"
    assert found["t2"] == "loaded again: DEFAULT '2020-01-01' in the time zone SYSTEM"
    assert found["t3"] == "a='0000-00-00 00:00:00' b='2020-01-01'"
    assert "WRONG" not in found["t0"] + found["t4"]


@pytest.mark.skipif(not TZINFO, reason="mariadb-tzinfo-to-sql not found")
def test_a_session_in_a_named_time_zone(own: Client, postgres_url: str, tmp_path: Path) -> None:
    script = subprocess.run(
        [TZINFO, "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    inserts = [part for part in script.split(";\n") if part.startswith(("INSERT", "SET @time_zone_id"))]
    own("USE mysql", *inserts)
    own.reconnect()
    berlin = "time_zone='Europe/Berlin'"
    changes = [
        Case(0, f"{berlin} | ADD a DATETIME DEFAULT NOW(), ADD b TIMESTAMP DEFAULT '2020-01-01 12:00:00'"),
        Case(1, f"{berlin} | ADD b TIMESTAMP DEFAULT '2020-07-01 12:00:00'"),
        Case(
            2,
            f"{berlin}, timestamp=1690000000 | "
            "ADD a DATETIME DEFAULT NOW(), ADD b TIMESTAMP DEFAULT '2020-07-01 12:00:00'",
        ),
    ]
    found = outcomes(own, postgres_url, tmp_path, changes)
    assert list(found.values()) == [
        "a='2023-11-14 23:13:20' b='2020-01-01 11:00:00'",
        "loaded again: DEFAULT '2020-07-01 12:00:00' in the time zone Europe/Berlin",
        "a='2023-07-22 06:26:40' b='2020-07-01 10:00:00'",
    ]


@pytest.fixture
def postgres_url(postgresql: PostgreSql, postgres_database: str) -> str:
    return postgresql.url(postgres_database)


def outcomes(source: Client, postgres: str, directory: Path, alterations: list[Case]) -> dict[str, str]:
    """By table."""
    for case in alterations:
        source(f"CREATE TABLE {case.table} (id INT PRIMARY KEY, had INT)")
        source(f"INSERT INTO {case.table} VALUES (1, 5)")
    found: dict[str, str] = {}
    changes: dict[str, Ddl] = {}
    copies = Copies(source, postgres, directory)
    with Pulling(source.server, "shop.*") as pulling:
        pulling.wait_until_told(Connected)
        pulling.wait_for(lambda: sum(is_creation(item) for item in pulling.items) == len(alterations))
        for case in alterations:
            try:
                run(source, case)
            except pymysql.err.MySQLError as error:
                found[case.table] = f"source: {error.args[1]}"
        source("CREATE TABLE last (id INT)")
        pulling.wait_for(
            lambda: any(isinstance(item, Ddl) and item.table == "last" for item in pulling.items)
        )
        for item in pulling.items:
            if not isinstance(item, Ddl) or item.table == "last":
                continue
            if is_creation(item):
                copies.create(item)
            else:
                changes[item.table] = replace(item, source="mariadb server 1")
    for case in alterations:
        if case.table not in found:
            found[case.table] = copies.outcome(case.table, changes.get(case.table))
    copies.close()
    return {case.table: found[case.table] for case in alterations}


def is_creation(item: Any) -> bool:
    return isinstance(item, Ddl) and any(isinstance(action, CreateTable) for action in item.actions)


def run(source: Client, case: Case) -> None:
    source.reconnect()
    source(f"SET timestamp={SECOND}")
    if case.settings:
        source(f"SET {case.settings}")
    source(f"ALTER TABLE {case.table} {case.clauses}")
    source.reconnect()


class Copies:
    """One in each kind of SQL target, in which every table has the row that it has in the source."""

    def __init__(self, source: Client, postgres: str, directory: Path) -> None:
        self._source = source
        self._postgres = postgres
        self._columns: dict[str, dict[str, Column]] = {}
        self._file = directory / "copy.db"
        self._ts = 0
        self._sinks = {
            "mysql": open_sink("copy", source.server.url("copy"), feed="test", store=MemoryStore()),
            "sqlite": open_sink("copy", f"sqlite:///{self._file}", feed="test", store=MemoryStore()),
            "postgres": open_sink(
                "copy", postgres, feed="test", store=MemoryStore(), options={"dates": "text"}
            ),
        }

    def create(self, ddl: Ddl) -> None:
        for sink in self._sinks.values():
            self._apply(sink, ddl)
        self._source(f"INSERT INTO copy.{ddl.table} VALUES (1, 5)")
        with closing(sqlite3.connect(self._file)) as connection:
            connection.execute(f'INSERT INTO "shop.{ddl.table}" VALUES (1, 5)')
            connection.commit()
        with psycopg.connect(self._postgres) as server:
            server.execute(f"INSERT INTO shop.{ddl.table} VALUES (1, 5)")

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()

    def outcome(self, table: str, ddl: Ddl | None) -> str:
        """Describe the values in the source, and those that differ in a target.

        There is no `ddl` if the source knows that the statement changed nothing.
        """
        if ddl and ddl.refusal:
            return "refused: " + ddl.refusal.partition(" (")[2].partition("), only")[0]
        if ddl and ddl.reload and not ddl.actions:
            return "loaded again: " + ddl.reload.partition(" (")[2].partition("): ")[0]
        types = dict(
            self._source(
                "SELECT column_name, data_type FROM information_schema.columns "
                f"WHERE table_schema='shop' AND table_name='{table}' ORDER BY ordinal_position"
            )
        )
        source = self._in_mariadb("shop", table, types)
        lines = [" ".join(f"{name}={value}" for name, value in source.items() if name not in ("id", "had"))]
        lines[0] = lines[0] or "nothing"
        looks: dict[str, Callable[[str, dict[str, str]], dict[str, str]]] = {
            "mysql": lambda table, types: self._in_mariadb("copy", table, types),
            "sqlite": self._in_sqlite,
            "postgres": self._in_postgres,
        }
        actions = ddl.actions if ddl else ()
        self._columns[table] = {
            one.column.name: one.column for one in actions if isinstance(one, (AddColumn, ChangeColumn))
        }
        for name, sink in self._sinks.items():
            try:
                if ddl:
                    self._apply(sink, ddl)
                found = looks[name](table, types)
                if found != source:
                    lines.append(f"{name} WRONG: {found}")
            except NotReproducible as error:
                lines.append(f"{name} loads it again: {error.reason}")
            except SinkError as error:
                lines.append(f"{name} can't: {error}")
        return "\n".join(lines)

    def _apply(self, sink: Sink, ddl: Ddl) -> None:
        self._ts += 1
        sink.write(Batch([ddl], Checkpoint(ddl.commit_ts, "log:1", None, "src")))
        sink.flush()

    def _in_mariadb(self, schema: str, table: str, types: dict[str, str]) -> dict[str, str]:
        names = {row[0] for row in self._source(f"SHOW COLUMNS FROM {schema}.{table}")}
        parts = [printed(f"`{name}`", types.get(name, "")) for name in types if name in names]
        self._source("SET time_zone='+00:00'")
        ((*values,),) = self._source(f"SELECT {', '.join(parts)} FROM {schema}.{table}")
        found = dict(zip([name for name in types if name in names], map(shown, values), strict=True))
        return found | dict.fromkeys(names - set(types), "is there")

    def _in_sqlite(self, table: str, types: dict[str, str]) -> dict[str, str]:
        with closing(sqlite3.connect(self._file)) as connection:
            cursor = connection.execute(f'SELECT * FROM "shop.{table}"')
            names = [part[0] for part in cursor.description]
            values = [
                int(value) if isinstance(value, str) and types.get(name) in ("bigint", "bit") else value
                for name, value in zip(names, cursor.fetchone(), strict=True)
            ]
            found = dict(zip(names, map(shown, values), strict=True))
        return {name: found[name] for name in [*types, *(set(found) - set(types))] if name in found}

    def _in_postgres(self, table: str, types: dict[str, str]) -> dict[str, str]:
        with psycopg.connect(self._postgres, options="-c TimeZone=UTC") as connection:
            cursor = connection.execute(f"SELECT * FROM shop.{table} LIMIT 0")
            names = [part.name for part in cursor.description or ()]
            parts = ", ".join(f"{quoted(name)}::text" for name in names)
            (row,) = connection.execute(f"SELECT {parts} FROM shop.{table}").fetchall()
        columns = [self._columns[table].get(name, Column(name, "int")) for name in names]
        found = dict(zip(names, map(shown, map(as_printed, columns, row)), strict=True))
        return {name: found[name] for name in [*types, *(set(found) - set(types))] if name in found}


def printed(name: str, type_: str) -> str:
    """An expression whose value is what SQLite holds."""
    if type_ in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"):
        return name
    if type_ in ("float", "double"):
        return f"CAST({name} AS DOUBLE)"
    if type_ in ("bit", "year") or type_.endswith("int"):
        return f"{name}+0"
    return f"CAST({name} AS CHAR)"


def shown(value: Any) -> str:
    return repr(value)
