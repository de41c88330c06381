"""A first look at a server: its identity, its tables, and the end of its binlog."""

from __future__ import annotations

from msgspec import Struct

from .connection import Server, connect, disconnect, identify, translated
from .options import MysqlOptions
from .position import Position
from .snapshot import current_end
from .tables import FoundTable, find_tables


class Probe(Struct, frozen=True):
    server: Server
    tables: list[FoundTable]
    """Tables that this user may see."""
    end: Position

    @property
    def source(self) -> str:
        """The server's identity, for `Checkpoint.source`."""
        return self.server.source


def probe(options: MysqlOptions) -> Probe:
    """Connect and probe the server. Raises Retryable or SourceError."""
    session = connect(options)
    try:
        with translated(options):
            return Probe(identify(session), find_tables(session), current_end(session))
    finally:
        disconnect(session)
