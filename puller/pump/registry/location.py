"""Opening a registry from its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ....config.url import redacted
from ....errors import ConfigError
from ...grpc.security import Security
from ...tikv.options import endpoints
from .registry import NodeRegistry
from .sqlite import SqliteRegistry

ACCEPTED: Final = "binlog://pd1:2379,pd2:2379 or sqlite:///path/registry.db"


def open_registry(url: str, security: Security | None = None, timeout_seconds: float = 5.0) -> NodeRegistry:
    """Return a connection to the registry: PD's etcd, or the SQLite file of one machine.

    Nothing is connected yet. Raises ConfigError that names what is accepted.
    """
    scheme, _, rest = url.partition("://")
    match scheme:
        case "sqlite" if rest.startswith("/") and len(rest) > 1:
            return SqliteRegistry(Path(rest.removeprefix("/")), timeout_seconds)
        case "binlog":
            addresses = endpoints(rest)
            try:
                from .etcd import EtcdRegistry
            except ImportError as error:
                raise ConfigError(f"{redacted(url)} needs: pip install 'tidemill[etcd]'") from error
            return EtcdRegistry(addresses, security, timeout_seconds)
    raise ConfigError(f"{redacted(url)!r} is not the URL of a registry; accepted: {ACCEPTED}")
