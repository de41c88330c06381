"""Options of a source of pumps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from msgspec import Meta

from ...errors import ConfigError
from ..tikv.options import TikvOptions, check_address, reject_login
from .service.options import DEFAULT_PORT, DrainerOptions

PUMP_PORT = 8250
"""Port of a pump whose address names none."""

DISORDER = ("stop", "drop")
COMPRESSION = ("none", "gzip")
_OF_DRAINER = tuple(
    field.name for field in fields(DrainerOptions) if field.name not in ("registry", "security")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpOptions(TikvOptions):
    """Pumps of a TiDB cluster, and its placement drivers, by which the schema is read.

    Raises ConfigError naming the field and the accepted values. The defaults are those of the original
    drainer.
    """

    pd: tuple[str, ...] = ()
    """Addresses of placement drivers; with `pump://` they must be given."""
    pumps: tuple[str, ...] = ()
    """Addresses of pumps, "host:port"; without any, they are found in the `registry`."""
    compression: str = "none"
    """Compression of the messages of pumps: `none` or `gzip`."""
    on_disorder: str = "stop"
    """Reaction to a binlog that comes below what was delivered already, so that it is lost: `stop` the
    feed, or `drop` it as the original drainer does; it is counted."""
    retry_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Pause before a pump is asked again after an error; it doubles up to `max_retry_seconds`."""
    max_retry_seconds: Annotated[float, Meta(ge=0.01)] = 10.0
    job_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Interval at which a DDL job is looked for in the cluster's job history until it is there."""
    registry: str = ""
    """URL of the registry, with `binlog://`: binlog://etcd1:2379 or sqlite:///file; empty: PD's etcd."""
    node_id: str = ""
    """Id of this drainer, unique in its cluster; empty: this machine's name and the port."""
    listen: str = f"127.0.0.1:{DEFAULT_PORT}"
    """Address "host:port" of the drainer's port for gRPC and HTTP, with `binlog://`."""
    advertise: str = ""
    """Address in the registry, by which pumps and tools reach this drainer; empty: `listen`."""
    detect_seconds: Annotated[float, Meta(ge=0.01)] = 5.0
    """Interval at which the states of the pumps are read from the registry."""
    heartbeat_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Interval of heartbeats; 20 failures in a row end the feed."""
    registry_timeout_seconds: Annotated[float, Meta(ge=0.01)] = 5.0
    """Timeout for an answer of the registry."""
    synced_check_seconds: Annotated[float, Meta(ge=0)] = 300.0
    """Time without a new transaction after which the drainer's status says that everything is synced."""
    pushgateway: str = ""
    """URL of a Prometheus Pushgateway that gets the drainer's metrics; empty: none."""
    push_seconds: Annotated[float, Meta(ge=0.01)] = 15.0
    """Interval of pushes."""

    def __post_init__(self) -> None:
        if not self.pd:
            raise ConfigError(
                "source.pd: missing: pump:// names the pumps only, and the schema is read from TiKV: give "
                'the addresses of the placement drivers, pd = ["pd1:2379"]'
            )
        TikvOptions.__post_init__(self)
        for address in self.pumps:
            check_address("pumps", address)
        for name, accepted in (("on_disorder", DISORDER), ("compression", COMPRESSION)):
            if getattr(self, name) not in accepted:
                given = getattr(self, name)
                raise ConfigError(f"source.{name} = {given!r}: one of {', '.join(accepted)}")
        for name in ("retry_seconds", "max_retry_seconds", "detect_seconds", "job_seconds"):
            if getattr(self, name) < 0.01:
                raise ConfigError(f"source.{name} = {getattr(self, name)}: at least 0.01")
        if not self.pumps:
            _ = self.drainer  # checks the rest
        elif self.registry:
            raise ConfigError(
                "source.registry: pump:// names the pumps; binlog://pd1:2379 finds them in a registry"
            )

    @property
    def drainer(self) -> DrainerOptions:
        """Return the options of the feed as a drainer. Raises ConfigError."""
        return DrainerOptions(
            registry=self.registry or f"binlog://{','.join(self.pd)}",
            security=self.security,
            **{name: getattr(self, name) for name in _OF_DRAINER},
        )

    @property
    def address(self) -> str:
        return ",".join(self.pumps or self.pd)


def pump_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses of `pump://host:8250,host`. Raises ConfigError naming a part that isn't one."""
    rest = url.strip().removeprefix("pump://").rstrip("/")
    reject_login("url", rest)
    found = []
    for part in filter(None, (part.strip() for part in rest.split(","))):
        last = part.rpartition("]")[2]
        address = part if ":" in last else f"{part}:{PUMP_PORT}"
        check_address("url", address)
        found.append(address)
    if not found:
        raise ConfigError(f"source.url = {url!r}: at least one address, such as pump://host:{PUMP_PORT}")
    return tuple(dict.fromkeys(found))
