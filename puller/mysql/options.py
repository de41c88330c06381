"""Options of a MariaDB or MySQL source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta

from ...dialects.mysql.server import ServerOptions
from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions(ServerOptions):
    """A MariaDB or MySQL server to follow."""

    server_id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """Server id of this replica; two replicas with the same id disconnect each other. 0 derives one from the
    process id and host name that is unlikely to collide."""
    failover: tuple[str, ...] = ()
    """Further servers of the same replication topology, "host:port". When the connection to one server is
    lost, the next one is tried, and the feed goes on there after the same GTIDs."""
    snapshot: bool = True
    """Load the tables before following them. False follows only changes from now on."""
    position: str = ""
    """Start position without a snapshot or checkpoint: "mysql-bin.000003:4711", or a set of GTIDs such as
    "0-1-100" (MariaDB) or "uuid:1-100" (MySQL)."""
    cascades: Literal["refuse", "ignore"] = "refuse"
    """Treatment of a foreign key that changes rows of a followed table (CASCADE or SET NULL) on a server that
    doesn't log these changes. "refuse" is an error at the start. With "ignore" the copies keep such rows
    as they were, and the feed fails at the first logged change that finds a row missing, or in its way."""
    generated_columns: Literal["copy", "leave_out"] = "copy"
    """"copy" follows generated columns like others, by the values that the server logs; MariaDB doesn't log
    them since 11.8.9, where tables with generated columns are refused. With "leave_out", generated columns
    aren't columns of the followed tables; a key that contains one isn't a key."""
    chunk_rows: Annotated[int, Meta(ge=1)] = 20_000
    """Maximum number of rows per transaction when a table is loaded whose primary key can be compared here as
    the server compares it (docs/reference/mysql.md); other tables are loaded in one transaction."""
    snapshot_workers: Annotated[int, Meta(ge=0, le=64)] = 2
    """Number of connections that load tables with such a key while the log is followed. With 0, all tables
    are loaded as of one moment on one connection, and the log waits."""
    max_batch_bytes: Annotated[int, Meta(ge=1)] = 1 << 20  # 1 MiB
    """A transaction larger than this is sent in parts while it is received."""
    heartbeat_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Interval of an idle server's heartbeats; after three missed heartbeats the connection is considered
    lost."""
    retry_first_seconds: Annotated[float, Meta(ge=0.01)] = 0.2
    """Pause before the first reconnection attempt; doubled for each further one, up to
    `retry_longest_seconds`."""
    retry_longest_seconds: Annotated[float, Meta(ge=0.01)] = 15.0
    """Maximum pause between reconnection attempts."""

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        try:
            _ = self.tls
        except ConfigError as error:
            raise ConfigError(f"source.{error}") from None
        for address in self.failover:
            _host_and_port(address)

    @property
    def servers(self) -> list[MysqlOptions]:
        """The options of each server, in the order in which they are tried."""
        others = [_host_and_port(address) for address in self.failover]
        return [self, *(replace(self, host=host, port=port) for host, port in others)]

    @property
    def loads(self) -> bool:
        """True if a feed without a checkpoint begins with a snapshot."""
        return self.snapshot and not self.position

    @property
    def copies_generated(self) -> bool:
        """True if generated columns are copied."""
        return self.generated_columns == "copy"


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"source.failover: {address!r} is not a server like 'replica1:3306'")
    return host.removeprefix("[").removesuffix("]"), int(port)
