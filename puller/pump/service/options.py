"""Options of a drainer as a node of its cluster."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from typing import Final

from ....errors import ConfigError
from ...grpc.security import Security

DEFAULT_PORT: Final = 8249
_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainerOptions:
    """Raises ConfigError that names the accepted values.

    The defaults are TiDB-Binlog's if it has the option.
    """

    registry: str
    """URL of the registry: binlog://pd1:2379,pd2:2379 or sqlite:///file."""
    node_id: str = ""
    """Id of this drainer, unique in its cluster; empty: this machine's name and the port."""
    listen: str = f"127.0.0.1:{DEFAULT_PORT}"
    """Address "host:port" of the port for gRPC and HTTP. Pumps of other machines must reach it; on the
    default, loopback, only those of this machine do."""
    advertise: str = ""
    """Address in the registry, by which pumps and tools reach this drainer; empty: `listen`."""
    detect_seconds: float = 5.0
    """Interval at which the list of pumps is read from the registry."""
    registry_timeout_seconds: float = 5.0
    """Timeout for an answer of the registry."""
    heartbeat_seconds: float = 1.0
    """Interval of heartbeats; 20 failures in a row end the drainer."""
    synced_check_seconds: float = 300.0
    """Time without a new transaction after which the status says that everything is synced."""
    pushgateway: str = ""
    """URL of a Prometheus Pushgateway that gets the metrics; empty: none."""
    push_seconds: float = 15.0
    """Interval of pushes."""
    security: Security = field(default_factory=Security)
    """TLS of the registry and, with a CA, of the port: clients must then have a certificate of that CA."""

    def __post_init__(self) -> None:
        for name, value in (("listen", self.listen), ("advertise", self.advertise or self.listen)):
            found = _ADDRESS.fullmatch(value)
            if found is None or int(found[1]) > 65_535:
                raise ConfigError(f'source.{name} = {value!r}: an address is "host:port", such as h1:8249')
        if "/" in self.node_id or any(c.isspace() for c in self.node_id):
            raise ConfigError(f"source.node_id = {self.node_id!r}: it is part of a key: no spaces, no slash")
        for name in ("detect_seconds", "registry_timeout_seconds", "heartbeat_seconds", "push_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"source.{name} = {getattr(self, name)}: a number above 0")
        security = self.security
        if security.ca_path is not None and security.cert_path is None:
            raise ConfigError("source.cert_path is missing: with ca_path the drainer's port uses TLS")


def node_id(options: DrainerOptions) -> str:
    """Return the id of the drainer with these options."""
    return options.node_id or f"{socket.gethostname()}:{options.listen.rpartition(':')[2]}"
