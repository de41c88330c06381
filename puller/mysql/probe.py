"""A first look at a server: who it is, and where its binlog ends."""

from __future__ import annotations

from msgspec import Struct

from .connection import connect, disconnect, identify, translated
from .options import MysqlOptions
from .position import Position
from .snapshot import begin


class Probe(Struct, frozen=True):
    source: str
    """Its identity: what belongs into `Checkpoint.source`."""
    end: Position


def probe(options: MysqlOptions) -> Probe:
    """Connect and look. Raises Retryable or SourceError."""
    session = connect(options)
    try:
        with translated(options):
            server = identify(session)
            return Probe(f"mariadb server {server.server_id}", begin(session))
    finally:
        disconnect(session)
