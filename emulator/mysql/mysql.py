"""A MariaDB or MySQL in this process: a script makes its tables and rows, and feeds follow it.

with Mysql() as mysql:
    mysql.execute("create database shop")
    mysql.execute("create table shop.orders (id bigint primary key, price decimal(10,2))")
    with mysql.transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "price": "9.99"})
    ...  # a client connects to mysql.url
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from threading import RLock
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias
from urllib.parse import quote

from ...actors.clock import Clock, SystemClock
from ...events import Row
from ..loop import LoopThread
from .changes import Change
from .connection import Connection, Fault, Faults
from .log import Vendor
from .server import MysqlServer
from .session import Session
from .transaction import MysqlTransaction

_HOST: Final = "127.0.0.1"


class Listener(Protocol):
    """Accepts connections until it is closed."""

    def close(self) -> None: ...


Listen: TypeAlias = Callable[[Callable[[], Connection], int], Coroutine[object, None, tuple[Listener, int]]]
"""Has a function called for each connection to a port, 0 for any; returns the listener and its port."""


async def _listen(connected: Callable[[], Connection], port: int) -> tuple[Listener, int]:
    listener = await asyncio.get_running_loop().create_server(connected, _HOST, port)
    return listener, listener.sockets[0].getsockname()[1]


class Mysql:
    """An emulated MariaDB 10.11, or MySQL 8.4, on loopback: definitions by statements, rows by transactions,
    a binlog.

    It starts when created or entered; `close` (or leaving) ends its thread and frees its port. All methods
    are thread-safe; a transaction belongs to one thread.
    """

    def __init__(
        self,
        *,
        server_id: int = 1,
        user: str = "root",
        password: str = "tidemill",
        clock: Clock | None = None,
        loop: LoopThread | None = None,
        listen: Listen = _listen,
        log_name: str = "binlog",
        replica_of: Mysql | None = None,
        vendor: Vendor = "MariaDB",
        visible_seconds: float = 0.0,
        seek_seconds: float = 0.0,
    ) -> None:
        """`loop` runs the connections, by default a new one; `listen` makes the listener. `log_name` begins
        the names of the binlog's files. With `replica_of`, to which nothing may be written before, both
        servers have the same tables, and each logs the other's transactions, under the same GTIDs, in files
        of its own. Servers of MySQL are of one group, and take their GTIDs from blocks of their own.

        A transaction is visible to new views `visible_seconds` after it is in the binlog. A client that
        requests the binlog gets nothing for `seek_seconds`."""
        self.clock: Final = clock or SystemClock()
        self.server: Final[MysqlServer] = MysqlServer(
            self.clock.time,
            server_id=server_id,
            user=user,
            password=password,
            log_name=log_name,
            replica_of=None if replica_of is None else replica_of.server,
            vendor=vendor,
            visible_seconds=visible_seconds,
        )
        """The server without its connections; to be used while `lock` is held."""
        self.lock: Final[RLock] = RLock() if replica_of is None else replica_of.lock
        self.port = 0
        self._replicas: list[Mysql] = []
        if replica_of is not None:
            for other in [replica_of, *replica_of._replicas]:
                other._replicas.append(self)
                self._replicas.append(other)
        self._seek_seconds: Final = seek_seconds
        self._faults = Faults()
        self._connections: dict[Connection, None] = {}
        self._threads = count(1)
        self._listen: Final = listen
        self._listener: Listener | None = None
        self._owns_loop: Final = loop is None
        self._loop = loop or LoopThread("emulated mysql")
        self._loop.run(self._begin())

    @property
    def url(self) -> str:
        """The source's URL for a feed."""
        return f"mysql://{quote(self.server.user)}:{quote(self.server.password)}@{_HOST}:{self.port}"

    @property
    def position(self) -> str:
        """The end of the binlog, as a feed shows it: "binlog.000001:4711"."""
        with self.lock:
            file, offset = self.server.log.end
        return f"{file}:{offset}"

    @property
    def gtid(self) -> str:
        """The GTID of the last transaction; empty before the first."""
        with self.lock:
            return self.server.log.gtid

    @property
    def followers(self) -> int:
        """Number of connections that get the binlog now."""
        return self._loop.call(lambda: sum(one.session.is_following for one in self._connections))

    # --- contents --------------------------------------------------------------------------------

    def execute(self, statement: str, *, domain: int | None = 0) -> None:
        """Run and log a statement that changes definitions: CREATE, ALTER, DROP, RENAME, TRUNCATE; or USE.

        `domain` is that of a MariaDB's GTID; None: without a GTID, which a MySQL allows. Raises ValueError
        for a statement whose effect the emulator doesn't know, or that has none.
        """
        with self._changing() as server:
            server.execute(statement, domain)

    def transaction(self, *, domain: int | None = 0) -> MysqlTransaction:
        """Return a transaction; `domain` is that of `execute`."""
        return MysqlTransaction(self.server, self.lock, partial(self._commit, domain=domain))

    def rows(self, name: str) -> list[Row]:
        """Return the present rows of a table by its qualified name."""
        with self.lock:
            return [*self.server.schema.table(name).rows.values()]

    def rotate(self) -> None:
        """Begin a new binlog file, as FLUSH BINARY LOGS does."""
        with self._changing() as server:
            server.log.rotate()

    def purge(self) -> None:
        """Remove all binlog files but the last, as PURGE BINARY LOGS does."""
        with self._changing() as server:
            server.log.purge(server.log.end[0])

    # --- faults ----------------------------------------------------------------------------------

    def cut(self) -> None:
        """End every connection that gets the binlog in the middle of its next packet."""
        self._loop.call(self._cut)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Send nothing on any connection meanwhile, as a server that hangs."""
        with self._faulty(self._faults.now._replace(is_silent=True)):
            yield

    @contextmanager
    def slow(self, bytes_per_second: float) -> Iterator[None]:
        """Send no more than this on each connection meanwhile."""
        with self._faulty(self._faults.now._replace(bytes_per_second=bytes_per_second)):
            yield

    @contextmanager
    def down(self) -> Iterator[None]:
        """End all connections, and refuse others meanwhile; the port stays the same."""
        self._loop.run(self._stop_listening())
        try:
            yield
        finally:
            self._loop.run(self._begin())

    # --- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all connections, and the thread of a loop of its own. Idempotent."""
        if not self._loop.stopped:
            self._loop.run(self._stop_listening())
            if self._owns_loop:
                self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _commit(self, changes: Sequence[Change], domain: int | None) -> None:
        with self._changing() as server:
            server.commit(changes, domain)

    @contextmanager
    def _changing(self) -> Iterator[MysqlServer]:
        """Change the server, then send its replicas what was logged."""
        with self.lock:
            yield self.server
        for mysql in (self, *self._replicas):
            mysql._loop.loop.call_soon_threadsafe(mysql._pump)

    def _pump(self) -> None:
        for connection in [*self._connections]:
            connection.pump()

    def _cut(self) -> None:
        for connection in [*self._connections]:
            if connection.session.is_following:
                connection.cut()

    @contextmanager
    def _faulty(self, fault: Fault) -> Iterator[None]:
        before = self._faults.now
        self._loop.call(self._set_fault, fault)
        try:
            yield
        finally:
            self._loop.call(self._set_fault, before)

    def _set_fault(self, fault: Fault) -> None:
        self._faults.now = fault
        self._pump()

    async def _begin(self) -> None:
        self._listener, self.port = await self._listen(self._connected, self.port)

    def _connected(self) -> Connection:
        with self.lock:
            session = Session(self.server, next(self._threads))
        connection = Connection(session, self.lock, self._faults, self._seek_seconds)
        self._connections[connection] = None
        ended = asyncio.ensure_future(connection.ended.wait())
        ended.add_done_callback(lambda _: self._connections.pop(connection, None))
        return connection

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        connections = [*self._connections]
        for connection in connections:
            connection.end()
        await asyncio.gather(*(connection.ended.wait() for connection in connections))
