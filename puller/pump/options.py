"""Options of a source of pumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from ...config import keys
from ...errors import ConfigError
from ..tikv.options import TikvOptions, check_address, reject_login
from .service.options import DrainerOptions, NodeOptions

PUMP_PORT = 8250
"""Port of a pump whose address names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpOptions(NodeOptions, TikvOptions):
    """Pumps of a TiDB cluster, and its placement drivers, by which the schema is read.

    Raises ConfigError naming the field and the accepted values. The defaults are those of the original
    drainer.
    """

    pd: tuple[str, ...] = ()
    """Addresses of placement drivers; with `pump://` they must be given."""
    pumps: tuple[str, ...] = ()
    """Addresses of pumps, "host:port"; without any, they are found in the `registry`."""
    compression: Literal["none", "gzip"] = "none"
    """Compression of the messages of pumps."""
    on_disorder: Literal["stop", "drop"] = "stop"
    """Reaction to a binlog that comes below what was delivered already, so that it is lost: `stop` the
    feed, or `drop` it as the original drainer does; it is counted."""
    retry_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Pause before a pump is asked again after an error; it doubles up to `max_retry_seconds`."""
    max_retry_seconds: Annotated[float, Meta(ge=0.01)] = 10.0
    """Maximum pause before a pump is asked again."""
    job_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """Interval at which a DDL job is looked for in the cluster's job history until it is there."""
    gc_days: Annotated[float, Meta(ge=0)] = 7.0
    """Days for which the pumps keep binlogs (`gc` in their configuration), for the time left that a status
    shows; 0: unknown."""
    registry: str = ""
    """URL of the registry, with `binlog://`: binlog://etcd1:2379 or sqlite:///file; empty: PD's etcd."""

    def __post_init__(self) -> None:
        if not self.pd:
            raise ConfigError(
                "source.pd: missing: pump:// names the pumps only, and the schema is read from TiKV: give "
                'the addresses of the placement drivers, pd = ["pd1:2379"]'
            )
        TikvOptions.__post_init__(self)
        for address in self.pumps:
            check_address("pumps", address)
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
            **{name: getattr(self, name) for name in keys(NodeOptions)},
        )

    @property
    def address(self) -> str:
        return ",".join(self.pumps or self.pd)


def pump_addresses(url: str) -> tuple[str, ...]:
    """Return the addresses of `pump://host:8250,host`. Raises ConfigError naming a part that isn't one."""
    rest = url.strip().removeprefix("pump://").rstrip("/")
    reject_login("url", rest)
    addresses = []
    for part in filter(None, (part.strip() for part in rest.split(","))):
        last = part.rpartition("]")[2]
        address = part if ":" in last else f"{part}:{PUMP_PORT}"
        check_address("url", address)
        addresses.append(address)
    if not addresses:
        raise ConfigError(f"source.url = {url!r}: at least one address, such as pump://host:{PUMP_PORT}")
    return tuple(dict.fromkeys(addresses))
