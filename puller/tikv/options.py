"""Options of a TiKV source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ...config.url import redacted
from ...errors import ConfigError
from ..grpc.security import Security


@dataclass(frozen=True, slots=True, kw_only=True)
class TikvOptions:
    """A TiKV cluster to follow. Raises ConfigError naming the field and the accepted values.

    The defaults are those of TiCDC (its puller document and code) if it has the option.
    """

    pd: tuple[str, ...]
    """Addresses of placement drivers, "host:port"; one reachable address is enough, the others are
    discovered."""
    cluster_id: Annotated[int, Meta(ge=0)] = 0
    """Required cluster id: the feed refuses any other cluster. 0 accepts any cluster."""
    ca_path: Path | None = None
    """PEM file of the cluster's certificate authority; without it, connections are not encrypted."""
    cert_path: Path | None = None
    """PEM file of the client certificate, if the cluster requires one; with `key_path`."""
    key_path: Path | None = None
    """PEM file of its key."""
    snapshot: bool = True
    """Load the tables before following them. False follows only changes from now on."""
    start_ts: Annotated[int, Meta(ge=0)] = 0
    """Start ts without a snapshot or checkpoint: the feed begins just after this TSO."""
    region_scan_limit: Annotated[int, Meta(ge=1)] = 40
    """Maximum number of concurrent incremental scans per store."""
    region_batch: Annotated[int, Meta(ge=1)] = 20
    """Regions per request to PD when a span is divided."""
    region_retry_seconds: Annotated[float, Meta(ge=0)] = 60.0
    """Retry deadline for PD's regions of a span to cover it without gaps."""
    dial_seconds: Annotated[float, Meta(ge=0.1)] = 10.0
    """Timeout for connecting."""
    timeout_seconds: Annotated[float, Meta(ge=0.1)] = 10.0
    """Timeout for an answer of PD or a store."""
    pd_retry_seconds: Annotated[float, Meta(ge=0)] = 9.0
    """Retry deadline for finding PD's leader: an election takes 3 s."""
    store_retry_seconds: Annotated[float, Meta(ge=0)] = 20.0
    """Retry deadline of one read while its region moves, its store is unavailable or a lock blocks it."""
    gc_ttl_seconds: Annotated[int, Meta(ge=1)] = 24 * 3600
    """Time for which PD keeps old versions after a feed has last renewed its safe point."""
    gc_interval_seconds: Annotated[float, Meta(ge=0.01)] = 60.0
    """Interval at which a running feed renews its safe point."""
    stream_window_bytes: Annotated[int, Meta(ge=65_535)] = 8 << 20  # 8 MiB
    """HTTP/2 flow-control window of one stream: about a message. (TiCDC has 64 KiB, and waits for each part
    of a message. The window of a whole connection is set by gRPC's core.)"""
    max_receive_bytes: Annotated[int, Meta(ge=1 << 20)] = 256 << 20  # 256 MiB
    """Maximum size of a message from a store."""
    streams_per_connection: Annotated[int, Meta(ge=1)] = 1000
    """Maximum number of streams per connection to a store; beyond it another connection is opened."""
    idle_seconds: Annotated[float, Meta(ge=1)] = 600.0
    """Idle time after which a connection without streams and calls is closed."""
    max_prewrite_bytes: Annotated[int, Meta(ge=1 << 16)] = 128 << 20  # 128 MiB
    """Memory for prewrites that wait for their commit, over all tables; beyond it they go to disk."""
    scan_page: Annotated[int, Meta(ge=1)] = 256
    """Keys per request to a store when a table or the schema is read."""

    def __post_init__(self) -> None:
        if not self.pd:
            raise ConfigError("source.pd: at least one address of a placement driver, such as pd1:2379")
        for address in self.pd:
            check_address("pd", address)

    @property
    def loads(self) -> bool:
        """True if a feed without a checkpoint begins with a snapshot."""
        return self.snapshot and not self.start_ts

    @property
    def address(self) -> str:
        return ",".join(self.pd)

    @property
    def security(self) -> Security:
        return Security(ca_path=self.ca_path, cert_path=self.cert_path, key_path=self.key_path)


def endpoints(text: str) -> tuple[str, ...]:
    """Return the addresses of `tikv://pd1:2379,pd2:2379`, of the part after `://`, or of PD's own http URLs.

    Raises ConfigError naming a part that isn't an address.
    """
    rest = text.strip().removeprefix("tikv://").rstrip("/")
    reject_login("pd", rest)
    addresses = tuple(address_of(part) for part in rest.split(",") if part.strip())
    if not addresses:
        raise ConfigError(f"source.pd = {text!r}: at least one address, such as tikv://pd1:2379,pd2:2379")
    for address in addresses:
        check_address("pd", address)
    return tuple(dict.fromkeys(addresses))


def address_of(url: str) -> str:
    """Return the "host:port" of a member's URL: PD lists itself as http://host:port or https://host:port."""
    return url.strip().removeprefix("http://").removeprefix("https://").rstrip("/")


def reject_login(name: str, text: str) -> None:
    """Raise ConfigError, naming the option, for a user or a password, which isn't shown."""
    if "@" in text:
        raise ConfigError(
            f"source.{name} = {redacted(text)!r}: it has no user and no password: addresses are host:port, "
            "separated by commas"
        )


def check_address(name: str, address: str) -> None:
    """Raise ConfigError, naming the option, unless it is host:port."""
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or any(c in host for c in "/@? ") or (":" in host and not bracketed):
        raise ConfigError(f"source.{name} = {address!r}: an address is host:port, such as pd1:2379")
    if not (port.isascii() and port.isdecimal() and 1 <= int(port) <= 65_535):
        raise ConfigError(f"source.{name} = {address!r}: the port is a number from 1 to 65535")
