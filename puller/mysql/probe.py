"""A first look at a server: its identity, its tables, and the end of its binlog."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.position import Position
from ...dialects.mysql.client import Server, Unavailable, connect, disconnect, identify, translated
from ...snapshot.mysql.tables import FoundTable, find_tables
from ...snapshot.mysql.view import current_end
from .cascades import logs_cascades
from .failover import written_gtids
from .options import MysqlOptions


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
    *others, last = options.servers
    for server in others:
        with suppress(Unavailable):
            return probe(server)
    return probe(last)


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
