"""The target: SQLite files on a simulated server, whose connections fail."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from ...codec.checkpoint import decode_checkpoint
from ...dialects.address import Address, parsed
from ...dialects.database import CHECKPOINT_TABLE
from ...dialects.options import SqliteOptions
from ...dialects.sqlite.session import SqliteSession
from ...dialects.sqlite.sqlite import SqliteDatabase
from ...errors import Retryable
from ...events import Checkpoint, Row
from ...sink.sql.sql import SqlSink
from .machine import Machine
from .scheduler import Scheduler

TargetFault: TypeAlias = Literal["busy", "lost", "lost_reply", "late_commit", "slow", "down"]
TARGET_FAULTS: Final[tuple[TargetFault, ...]] = get_args(TargetFault)
"""busy: a statement is refused for now. lost: the connection breaks before a statement. lost_reply: it breaks
after a commit, which the client doesn't learn. late_commit: it breaks at a commit, which is done a while
later. slow: a statement takes seconds. down: no connection for seconds."""

LATE_SECONDS: Final = 2.0
SLOW_SECONDS: Final = 4.0
DOWN_SECONDS: Final = 3.0


class ConnectionLost(Exception):
    """The client's end of a connection that broke."""


class Snapshot(Struct, frozen=True):
    """All that the target has after a commit."""

    time: float
    checkpoint: Checkpoint | None
    tables: dict[str, tuple[tuple[str, ...], list[Row]]]
    """Columns and rows, sorted, by the table's name."""


class TargetServer:
    """The database, and who is connected. It outlives the machines of the feed."""

    def __init__(
        self,
        path: Path,
        scheduler: Scheduler,
        latency_seconds: float,
        note: Callable[[str, str], None],
        *,
        merges: bool = False,
    ) -> None:
        """With `merges`, sinks apply the changes of a row in a batch as one."""
        self.path = path
        self.scheduler = scheduler
        self.latency_seconds = latency_seconds
        self.note = note
        self.merges = merges
        self.faults: deque[TargetFault] = deque()
        """Faults of the next statements that they concern."""
        self.down_until = 0.0
        self.snapshots: list[Snapshot] = []
        self.sessions: list[TargetSession] = []
        self._reader: sqlite3.Connection | None = None

    def new_sink(self, machine: Machine, feed: str) -> SqlSink:
        def connect(address: Address, _busy_seconds: float | None) -> SqliteSession:
            return TargetSession(address, self, machine)

        address = parsed(f"sqlite:///{self.path}")
        database = SqliteDatabase(address, SqliteOptions(), feed, None, connect)
        return SqlSink("copy", database, merges=self.merges)

    def calm(self) -> None:
        self.faults.clear()
        self.down_until = 0.0

    def leave(self, machine: Machine) -> None:
        """A client was killed: its connections are rolled back, at once or after a while."""
        for session in [one for one in self.sessions if one.machine is machine]:
            seconds = self.scheduler.random.choice((0.0, self.scheduler.random.random() * 2))
            self._later(seconds, session.drop)

    def take(self, *faults: TargetFault) -> TargetFault | None:
        if self.faults and self.faults[0] in faults:
            return self.faults.popleft()
        return None

    def commit_late(self, connection: sqlite3.Connection) -> None:
        def commit() -> None:
            connection.execute("COMMIT")
            connection.close()
            self.committed("a commit whose connection is gone")

        self._later(self.scheduler.random.random() * LATE_SECONDS, commit)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        if seconds:
            self.scheduler.clock.call_at(self.scheduler.clock.now() + seconds, work)
        else:
            work()

    def committed(self, what: str = "a commit") -> None:
        snapshot = self._read()
        if self.snapshots and self.snapshots[-1] == snapshot:
            return
        self.snapshots.append(snapshot)
        checkpoint = snapshot.checkpoint
        ts = "none" if checkpoint is None else f"{checkpoint.ts}"
        rows = ", ".join(f"{name.partition('.')[2]} {len(t[1])}" for name, t in snapshot.tables.items())
        self.note("target", f"{what}: checkpoint {ts}; rows: {rows or 'none'}")

    def _read(self) -> Snapshot:
        if self._reader is None:
            self._reader = sqlite3.connect(self.path, isolation_level=None)
        run = self._reader.execute
        names = [
            name
            for (name,) in run("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
            if not name.startswith(("tidemill", "sqlite_"))
        ]
        tables = {}
        for name in names:
            cursor = run(f'SELECT * FROM "{name}"')
            columns = tuple(column[0] for column in cursor.description)
            tables[name] = columns, sorted(cursor.fetchall(), key=repr)
        checkpoint = None
        with suppress(sqlite3.OperationalError):  # the table isn't there yet
            for (text,) in run(f"SELECT checkpoint FROM {CHECKPOINT_TABLE}"):
                checkpoint = decode_checkpoint(text, str(self.path))[0]
        return Snapshot(self.scheduler.clock.now(), checkpoint, tables)

    def close(self) -> None:
        for session in list(self.sessions):
            session.drop()
        if self._reader is not None:
            self._reader.close()


class TargetSession(SqliteSession):
    """A connection of a machine."""

    def __init__(self, address: Address, server: TargetServer, machine: Machine) -> None:
        super().__init__(address, 1e-6)
        self.machine = machine
        self._server = server

    def connect(self) -> None:
        self._check_machine()
        server = self._server
        server.scheduler.sleep(server.latency_seconds)
        if server.take("down"):
            server.down_until = server.scheduler.clock.now() + DOWN_SECONDS
            server.note("target", f"is down for {DOWN_SECONDS:g} s")
        if server.scheduler.clock.now() < server.down_until:
            raise ConnectionLost("connection refused")
        super().connect()
        server.sessions.append(self)

    def drop(self) -> None:
        """Roll back, as a server does when a connection has broken."""
        if self in self._server.sessions:
            self._server.sessions.remove(self)
        super().close()

    def close(self) -> None:
        if not self.machine.is_dead:  # else it is the server that notices it
            self.drop()

    @property
    def connection(self) -> sqlite3.Connection:
        self._pass("a statement")
        return self._alive()

    def _alive(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ConnectionLost("the connection is closed")
        return self._connection

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self._pass(statement)
        connection = self._alive()
        if statement == "COMMIT":
            return self._commit(connection)
        return connection.execute(statement, values)

    def _commit(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        server = self._server
        if fault := server.take("lost_reply", "late_commit"):
            server.note("target", f"fault {fault}")
        if fault == "late_commit":
            self._connection = None
            server.sessions.remove(self)
            server.commit_late(connection)
            raise ConnectionLost("no answer to COMMIT")
        cursor = connection.execute("COMMIT")
        server.committed()
        if fault == "lost_reply":
            self.drop()
            raise ConnectionLost("no answer to COMMIT")
        return cursor

    def _pass(self, statement: str) -> None:
        """Let a statement take its time, or meet a fault."""
        self._check_machine()
        server = self._server
        if server.latency_seconds:
            server.scheduler.sleep(server.scheduler.random.random() * server.latency_seconds)
            self._check_machine()
        fault = server.take("busy", "lost", "slow")
        if fault is None:
            return
        server.note("target", f"fault {fault} at {statement.split('(')[0].strip()[:40]}")
        if fault == "busy":
            raise ConnectionLost("too busy now")
        if fault == "lost":
            self.drop()
            raise ConnectionLost("the connection is lost")
        server.scheduler.sleep(server.scheduler.random.random() * SLOW_SECONDS)
        self._check_machine()

    def _check_machine(self) -> None:
        if self.machine.is_dead:
            raise ConnectionLost("the machine is dead")

    def explain(self, error: Exception, doing: str) -> Any:
        if isinstance(error, ConnectionLost):
            return Retryable(f"{self.identity}: {doing}: {error}")
        return super().explain(error, doing)
