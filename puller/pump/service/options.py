"""Options of a drainer as a node of its cluster."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from typing import Annotated, Final

from msgspec import Meta

from ....config import INTERNAL
from ....errors import ConfigError
from ...grpc.security import Security

DEFAULT_PORT: Final = 8249
_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """A drainer in the registry of its cluster. The defaults are TiDB-Binlog's if it has the option."""

    node_id: str = ""
    """Id of this drainer, unique in its cluster; empty: this machine's name and the port."""
    listen: str = f"127.0.0.1:{DEFAULT_PORT}"
    """Address "host:port" of the drainer's port for gRPC and HTTP. Pumps of other machines must reach it; on
    the default, loopback, only those of this machine do."""
    advertise: str = ""
    """Address in the registry, by which pumps and tools reach this drainer; empty: `listen`."""
    detect_seconds: Annotated[float, Meta(ge=0.01)] = 5.0
    """Interval at which the states of the pumps are read from the registry."""
    registry_timeout_seconds: Annotated[float, Meta(ge=0.01)] = 5.0
    """Timeout for an answer of the registry."""
    heartbeat_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Interval of heartbeats; 20 failures in a row end the feed."""
    synced_check_seconds: Annotated[float, Meta(ge=0)] = 300.0
    """Time without a new transaction after which the drainer's status says that everything is synced."""
    pushgateway: str = ""
    """URL of a Prometheus Pushgateway that gets the drainer's metrics; empty: none."""
    push_seconds: Annotated[float, Meta(ge=0.01)] = 15.0
    """Interval of pushes."""


@dataclass(frozen=True, kw_only=True)
class DrainerOptions(NodeOptions):
    """A drainer. Raises ConfigError that names the accepted values."""

    registry: str
    """URL of the registry: binlog://pd1:2379,pd2:2379 or sqlite:///file."""
    security: Annotated[Security, INTERNAL] = field(default_factory=Security)
    """TLS of the registry and, with a CA, of the port: clients must then have a certificate of that CA."""

    def __post_init__(self) -> None:
        for name, value in (("listen", self.listen), ("advertise", self.advertise or self.listen)):
            match = _ADDRESS.fullmatch(value)
            if match is None or int(match[1]) > 65_535:
                raise ConfigError(f'source.{name} = {value!r}: an address is "host:port", such as h1:8249')
        if "/" in self.node_id or any(c.isspace() for c in self.node_id):
            raise ConfigError(f"source.node_id = {self.node_id!r}: it is part of a key: no spaces, no slash")
        if self.security.ca_path is not None and self.security.cert_path is None:
            raise ConfigError("source.cert_path is missing: with ca_path the drainer's port uses TLS")


def node_id(options: DrainerOptions) -> str:
    """Return the id of the drainer with these options."""
    return options.node_id or f"{socket.gethostname()}:{options.listen.rpartition(':')[2]}"
