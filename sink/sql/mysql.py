"""MySQL and MariaDB as a target, over PyMySQL.

Rows travel as literals in multi-row statements, many statements a packet. Each statement is sent with
the number of rows that it must touch; FOUND_ROWS makes the server count rows it found, changed or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import URL, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ...errors import InvariantViolated, Retryable, SinkError
from ...events import Action, AddColumn, CreateTable, Ddl, DropColumn, Table
from ...failpoint import reach
from ..per_table import PerTable
from . import mysql_text as text
from .defaults import LOAD_ANEW, needs_clock
from .mysql_plan import Plan, Statement
from .runs import Run
from .target import CHECKPOINT_TABLE, MISSING, OWN_SCHEMA, StatementRejected, check_columns, effective

INTENT_TABLE: Final = "tidemill_ddl"
"""One row a feed, while a statement runs that commits by itself: what it is to change."""

_FEED: Final = "feed VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY"
_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
_HOME_TABLES: Final = {
    CHECKPOINT_TABLE: f"{_FEED}, ts BIGINT NOT NULL, checkpoint {_TEXT}",
    INTENT_TABLE: f"{_FEED}, table_name {_TEXT}, query {_TEXT}, columns_before {_TEXT}",
}

_UTC: Final = "+00:00"
_LEAST_OFFSET, _MOST_OFFSET = -(12 * 60 + 59) * 60, 13 * 3600
"""What MariaDB takes for a time zone."""

_MODES: Final = "NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""Values are stored as they are (a zero date, an id of 0) or not at all."""

_PACKET_CHARS: Final = 1 << 20
"""About the size at which larger packets stop being faster."""
_PACKET_SHARE: Final = 8
"""A statement of many rows has so small a share of what the server takes in characters: each is up to four
bytes."""

_WAITING_HELPS: Final = {
    1020,  # a row has changed since the transaction first looked (innodb_snapshot_isolation)
    1040,  # too many connections
    1053,  # server shutdown in progress
    1203,  # too many connections of this user
    1205,  # lock wait timeout
    1213,  # deadlock
    1226,  # as much as this user may for now: connections, statements an hour
    1317,  # query killed
    1927,  # connection killed
    2002,  # can't connect through the socket
    2003,  # can't connect to the host
    2006,  # server has gone away
    2013,  # connection lost during a query
    2055,  # connection lost
    4031,  # disconnected for idleness
}
_ABOUT_A_ROW: Final = {
    1022, 1048, 1062, 1169, 1264, 1265, 1292, 1366, 1406, 1411, 1452, 1525, 1586, 1644,
    1690, 3140, 3819, 4025,
}  # fmt: skip
"""Duplicate key, out of range, truncated, a constraint, a trigger's signal: some row doesn't fit."""


class MySqlTarget:
    """`schema` is where all tables go; without it each goes to its own schema, made if missing."""

    max_rows = 1000
    ddl_commits = True

    def __init__(self, url: URL, feed: str, schema: str | None = None) -> None:
        self.feed = feed
        self._schema = schema or url.database
        self._home = text.name(self._schema or OWN_SCHEMA)
        host = "127.0.0.1" if url.host in (None, "localhost") else url.host
        server = url.query.get("unix_socket") or f"{host}:{url.port or 3306}"
        self.identity = f"mysql://{server}/{self._schema or ''}"
        self._engine = create_engine(
            url.set(drivername="mysql+pymysql", database=""),  # which is made if missing
            poolclass=NullPool,
            connect_args={
                "client_flag": CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS,
                "charset": "utf8mb4",
                "autocommit": True,  # transactions are explicit; nothing is ever open by accident
                "connect_timeout": 10,
            },
        )
        self._connection: pymysql.connections.Connection[pymysql.cursors.Cursor] | None = None
        self._packet_bytes = 0
        self._plans = PerTable(self._plan)
        self._intended = False
        self._is_mariadb = False
        self.folds_names = False

    def connect(self) -> None:
        try:
            pooled = self._engine.raw_connection()
        except RuntimeError as error:  # PyMySQL lacks a package that the server's login needs
            raise SinkError(f"{self.identity}: {error}") from error
        self._connection = pooled.driver_connection
        pooled.detach()
        ((version, packet_bytes, lower_case),) = self._rows(
            "SELECT VERSION(), @@max_allowed_packet, @@lower_case_table_names"
        )
        self._is_mariadb = "mariadb" in version.lower()
        self._packet_bytes = int(packet_bytes)
        self.folds_names = bool(lower_case)
        self._execute(f"SET time_zone='{_UTC}', foreign_key_checks=0, sql_safe_updates=0")
        self._set_modes(backslash_escapes=False)
        self._create_home()

    def _create_home(self) -> None:
        """The tables of this feed's own; what is there needs no right to be made."""
        schema = self._schema or OWN_SCHEMA
        self._create_schema(schema)
        there = f"SELECT table_name FROM information_schema.tables WHERE table_schema={_quoted(schema)}"
        known = {name for (name,) in self._rows(there)}
        for table, columns in _HOME_TABLES.items():
            if table not in known:
                self._execute(f"CREATE TABLE IF NOT EXISTS {self._home}.{table} ({columns}) ENGINE=InnoDB")

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._plans.clear()
        if connection is not None and connection.open:
            connection.close()

    def begin(self) -> None:
        self._execute("START TRANSACTION")

    def commit(self) -> None:
        self._execute("COMMIT")

    def savepoint(self) -> None:
        self._execute("SAVEPOINT tidemill")

    def rollback_to_savepoint(self) -> None:
        self._execute("ROLLBACK TO SAVEPOINT tidemill")

    # --- rows

    def apply(self, runs: Sequence[Run]) -> None:
        most = min(_PACKET_CHARS, self._packet_bytes // _PACKET_SHARE)
        waiting: list[Statement] = []
        size = 0
        for run in runs:
            for statement in self._plans[run.table].statements(run, most):
                if waiting and size + len(statement.text) > most:
                    self._send(waiting)
                    waiting, size = [], 0
                waiting.append(statement)
                size += len(statement.text) + 1
        if waiting:
            self._send(waiting)

    def _send(self, statements: list[Statement]) -> None:
        packet = ";".join([statement.text for statement in statements])
        if len(packet) * 4 >= self._packet_bytes and (size := len(packet.encode())) >= self._packet_bytes:
            if len(statements) > 1:
                for statement in statements:
                    self._send([statement])
                return
            raise SinkError(
                f"a statement of {size} bytes is more than the server takes: "
                f"raise its max_allowed_packet (now {self._packet_bytes}) to at least {size + 1}"
            )
        with self._cursor() as cursor:
            cursor.execute(packet)
            touched = [cursor.rowcount]
            while cursor.nextset():
                touched.append(cursor.rowcount)
        if touched != [statement.rows for statement in statements]:
            raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def _plan(self, table: Table) -> Plan:
        check_columns(self, table)
        return Plan(table, self._qualified(table))

    # --- checkpoint

    def load_checkpoint(self) -> str | None:
        rows = self._rows(
            f"SELECT checkpoint FROM {self._home}.{CHECKPOINT_TABLE} WHERE feed={_quoted(self.feed)}"
        )
        return rows[0][0] if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        table, key, content = f"{self._home}.{CHECKPOINT_TABLE}", _quoted(self.feed), _quoted(content)
        if previous_ts is None:
            absent = f"NOT EXISTS (SELECT 1 FROM {table} WHERE feed={key})"
            saved = self._execute(f"INSERT INTO {table} SELECT {key},{ts},{content} FROM DUAL WHERE {absent}")
        else:
            saved = self._execute(
                f"UPDATE {table} SET ts={ts},checkpoint={content} WHERE feed={key} AND ts={previous_ts}"
            )
        if self._intended:
            self._execute(f"DELETE FROM {self._home}.{INTENT_TABLE} WHERE feed={key}")
            self._intended = False
        return saved == 1

    # --- tables

    def name_of(self, schema: str, table: str) -> str:
        return f"{self._schema or schema}.{table}"

    def columns(self, table: Table) -> dict[str, str] | None:
        rows = self._rows(
            "SELECT column_name, column_type, column_key FROM information_schema.columns "
            f"WHERE table_schema={_quoted(self._schema or table.schema)} "
            f"AND table_name={_quoted(table.name)} ORDER BY ordinal_position"
        )
        return {
            name: _plain_type(type_) + (" key" if key == "PRI" else "") for name, type_, key in rows
        } or None

    def wanted_columns(self, table: Table) -> dict[str, str]:
        types = [text.type_text(column) for column in table.columns]
        if self._is_mariadb:
            types = ["longtext" if type_ == "json" else type_ for type_ in types]
        return {
            column.name: type_ + (" key" if index in table.key else "")
            for index, (column, type_) in enumerate(zip(table.columns, types, strict=True))
        }

    def is_empty(self, table: Table) -> bool:
        return not self._rows(f"SELECT 1 FROM {self._qualified(table)} LIMIT 1")

    def create_table(self, table: Table) -> None:
        self._create_schema(self._schema or table.schema)
        self._define(text.create_table(table, self._qualified(table)))

    def alter(self, ddl: Ddl) -> None:
        table = Table(ddl.schema, ddl.table, ())
        have = self.columns(table)
        before = self._intent(ddl)
        # Columns that are the same before and after (one is dropped and added again) can't tell
        # whether it was done: then it is done again, which changes nothing.
        if before is not None and before != have and have is not None:
            done = _altered(before, effective(ddl.actions, before)) == {name.lower() for name in have}
            if done:
                self._intended = True  # before a crash, which left the intent
                return
        actions = effective(ddl.actions, have or ())
        if not actions:
            return
        changes = ", ".join(map(_alteration, actions))
        zone = self._zone(ddl, actions)
        self._intend(ddl, have or {})
        # What defaults put into the rows that are there is by the clock of the statement's session.
        self._execute(f"SET timestamp={ddl.epoch_seconds:.6f}, time_zone='{zone}'")
        self._define(f"ALTER TABLE {self._qualified(table)} {changes}")
        self._execute(f"SET timestamp=DEFAULT, time_zone='{_UTC}'")

    def _zone(self, ddl: Ddl, actions: Iterable[Action]) -> str:
        """Its session's, as far as it counts. Raises SinkError for one that no server knows."""
        clocks = [
            action.column.name
            for action in actions
            if isinstance(action, AddColumn) and needs_clock(action.column)
        ]
        if not clocks:
            return _UTC
        ahead = ddl.utc_offset_seconds
        if ahead % 60 or not _LEAST_OFFSET <= ahead <= _MOST_OFFSET:
            raise SinkError(
                f"{self.identity}: what the default of {ddl.full_name}, column {clocks[0]}, put into the "
                f"existing rows can't be computed here, {ahead} s ahead of UTC; {LOAD_ANEW}"
            )
        hours, minutes = divmod(abs(ahead) // 60, 60)
        return f"{'-' if ahead < 0 else '+'}{hours:02}:{minutes:02}"

    def _intent(self, ddl: Ddl) -> dict[str, str] | None:
        """The columns before this very statement, if it may have run before a crash."""
        rows = self._rows(
            f"SELECT columns_before FROM {self._home}.{INTENT_TABLE} WHERE feed={_quoted(self.feed)} "
            f"AND table_name={_quoted(ddl.full_name)} AND query={_quoted(ddl.query)}"
        )
        return json.loads(rows[0][0]) if rows else None

    def _intend(self, ddl: Ddl, columns: dict[str, str]) -> None:
        values = ",".join(map(_quoted, (self.feed, ddl.full_name, ddl.query, json.dumps(columns))))
        self._execute(f"REPLACE INTO {self._home}.{INTENT_TABLE} VALUES ({values})")
        self._intended = True

    def _define(self, statement: str) -> None:
        """Run a statement that holds text of the source, whose strings escape with backslashes."""
        self._set_modes(backslash_escapes=True)
        self._execute(statement)
        self._set_modes(backslash_escapes=False)

    def _set_modes(self, *, backslash_escapes: bool) -> None:
        self._execute(f"SET sql_mode='{_MODES}{'' if backslash_escapes else ',NO_BACKSLASH_ESCAPES'}'")

    def _create_schema(self, schema: str) -> None:
        if not self._rows(f"SELECT 1 FROM information_schema.schemata WHERE schema_name={_quoted(schema)}"):
            self._execute(f"CREATE DATABASE IF NOT EXISTS {text.name(schema)}")

    def _qualified(self, table: Table) -> str:
        return f"{text.name(self._schema or table.schema)}.{text.name(table.name)}"

    # --- the driver

    def _cursor(self) -> pymysql.cursors.Cursor:
        assert self._connection is not None
        return self._connection.cursor()

    def _execute(self, statement: str) -> int:
        with self._cursor() as cursor:
            return cursor.execute(statement)

    def _rows(self, statement: str) -> list[Any]:
        with self._cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
            error = error.orig
        if not isinstance(error, pymysql.MySQLError):
            return None
        code = error.args[0] if error.args else 0
        said = f"{self.identity}: {doing}: {error.args[-1] if error.args else error}"
        if code in _WAITING_HELPS or isinstance(error, pymysql.InterfaceError):
            return Retryable(said)
        if code in _ABOUT_A_ROW:
            return StatementRejected(str(error.args[-1]))
        return SinkError(said)


def _alteration(action: Action) -> str:
    match action:
        case AddColumn(column, after):
            place = "" if after is None else " FIRST" if after == "" else f" AFTER {text.name(after)}"
            definition = text.define(column)
            if column.kind == "timestamp" and not column.nullable and column.default is None:
                # A server with explicit_defaults_for_timestamp=OFF would put the present time in.
                definition += " DEFAULT '0000-00-00 00:00:00'"
            return f"ADD COLUMN {definition}{place}"
        case DropColumn(name):
            return f"DROP COLUMN {text.name(name)}"
        case CreateTable():
            raise InvariantViolated("a table is created among changes of its columns")


def _altered(before: Iterable[str], actions: Iterable[Action]) -> set[str]:
    """The names of the columns after the statement, in small letters."""
    names = {name.lower() for name in before}
    for action in actions:
        if isinstance(action, AddColumn):
            names.add(action.column.name.lower())
        elif isinstance(action, DropColumn):
            names.discard(action.name.lower())
    return names


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _plain_type(column_type: str) -> str:
    """Without the display width that MariaDB and older MySQL print for integers and years."""
    return re.sub(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", column_type)
