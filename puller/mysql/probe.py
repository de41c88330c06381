"""A first look at a server: its identity, its tables, and the end of its binlog."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.position import Position
from ...dialects.mysql.client import (
    Server,
    Unavailable,
    connect,
    disconnect,
    identify,
    is_mariadb,
    translated,
)
from ...errors import Retryable
from ...snapshot.mysql.tables import FoundTable, find_tables
from ...snapshot.mysql.view import current_end
from .cascades import logs_cascades
from .failover import gtids_at, written_gtids
from .options import MysqlOptions

_VISIBLE_SECONDS: Final = 0.1
_T = TypeVar("_T")


class Probe(Struct, frozen=True):
    server: Server
    tables: list[FoundTable]
    """Tables that this user may see."""
    end: Position
    """The binlog's end, with its GTIDs if they are known exactly."""
    gtids: str
    """The GTIDs in the binlog, or some fewer than at its end."""
    logs_cascades: bool = False
    """True if the server logs the rows that its foreign keys change."""

    @property
    def source(self) -> str:
        """The server's identity, for `Checkpoint.source`."""
        return self.server.source


def probe_any(options: MysqlOptions) -> Probe:
    """Probe the first server that is available. Raises Retryable or SourceError."""
    return _of_any(options, probe)


def wait_if_logged(options: MysqlOptions, position: Position) -> None:
    """Raise Retryable if the log of the first server that is available has this position, which was after
    the end that it told: a MariaDB tells that of a view, and a commit is in the log before it is in views,
    with a semi-synchronous replica for as long as this takes to answer."""
    _of_any(options, lambda server: _wait_if_logged(server, position))


def _wait_if_logged(options: MysqlOptions, position: Position) -> None:
    session = connect(options)
    try:
        with translated(options):
            is_logged = is_mariadb(session) and gtids_at(session, position) is not None
    finally:
        disconnect(session)
    if is_logged:
        raise Retryable(
            f"{options.address}: the log has {position}, and a commit before it hasn't ended yet",
            _VISIBLE_SECONDS,
        )


def _of_any(options: MysqlOptions, ask: Callable[[MysqlOptions], _T]) -> _T:
    """Ask the first server that is available."""
    *others, last = options.servers
    for server in others:
        with suppress(Unavailable):
            return ask(server)
    return ask(last)


def probe(options: MysqlOptions) -> Probe:
    """Connect and probe the server. Raises Retryable or SourceError."""
    session = connect(options)
    try:
        with translated(options):
            tables, gtids, end = find_tables(session), written_gtids(session), current_end(session)
            server = identify(session)  # after the end, so its clock isn't before the file's creation
            return Probe(server, tables, _with_server(end, server), gtids, logs_cascades(session))
    finally:
        disconnect(session)


def _with_server(position: Position, server: Server) -> Position:
    return replace(position, server=server.identity) if position.gtid else position
