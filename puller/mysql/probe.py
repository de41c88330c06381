"""A first look at a server: who it is, which tables it has, and where its binlog ends."""

from __future__ import annotations

from msgspec import Struct

from .connection import Server, connect, disconnect, identify, translated
from .options import MysqlOptions
from .position import Position
from .snapshot import begin
from .tables import FoundTable, find_tables


class Probe(Struct, frozen=True):
    server: Server
    tables: list[FoundTable]
    """Those that this user may see."""
    end: Position

    @property
    def source(self) -> str:
        """The server's identity: what belongs into `Checkpoint.source`."""
        return self.server.source


def probe(options: MysqlOptions) -> Probe:
    """Connect and look. Raises Retryable or SourceError."""
    session = connect(options)
    try:
        with translated(options):
            return Probe(identify(session), find_tables(session), begin(session))
    finally:
        disconnect(session)
