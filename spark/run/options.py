"""Options of the commands for Spark: the table `[spark]` of a feed.toml, overridden by flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from ...config import Given
from ...errors import ConfigError
from ..option_values import addresses

SECTION: Final = "spark"
MASTER: Final = "local[2]"
_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+"
)
_TRIGGER: Final = re.compile(r"\d+ (millisecond|second|minute|hour|day)s?")
_OF_CAPTURES: Final = ("capture_token_file", "capture_tls", "capture_ca_file", "capture_wait_seconds")


def check_master(master: str) -> None:
    """Raise ConfigError unless Spark accepts the master."""
    if not _MASTERS.fullmatch(master):
        raise ConfigError(
            f"master: {master!r} is none; accepted: local, local[2], local[*], spark://host:7077, yarn, k8s://…"
        )


def _settings(table: object, where: str) -> dict[str, str]:
    """Return the settings as text by full name: TOML reads dots in an unquoted name as nested tables."""
    if not isinstance(table, Mapping):
        raise ConfigError(f'{where}: expected a table, for instance "spark.executor.memory" = "2g"')
    return dict(_flat(table, where, ""))


def _flat(table: Mapping[str, object], where: str, before: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        match value:
            case bool():
                yield before + key, str(value).lower()
            case str() | int() | float():
                yield before + key, str(value)
            case Mapping():
                yield from _flat(value, where, f"{before}{key}.")
            case _:
                raise ConfigError(f"{where}.{before}{key}: expected a text, a number or a truth value")


_SCHEMA: Final = {"type": "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Options for Spark. Raises ConfigError if one isn't accepted or two conflict."""

    master: str = MASTER
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Number of parts that the tables are divided into; with 1, transactions stay whole."""
    trigger: str = "0 seconds"
    """Interval between batches; 0: without a pause."""
    directory: Path | None = None
    """Directory for rows while they are loaded, shared by the driver and all executors; None: `backfill` in
    the feed's data directory."""
    chunk_rows: Annotated[int, Meta(ge=1)] = 100_000
    """Rows loaded by one task, about."""
    capture: Annotated[tuple[str, ...], Given(parse=addresses)] = ()
    """Addresses of captures, host:port, that tasks try before the source."""
    capture_token_file: Path | None = None
    """File on the driver's machine with the token for the captures."""
    capture_tls: bool = False
    """True to require a certificate that the system trusts; `capture_ca_file` implies TLS."""
    capture_ca_file: Path | None = None
    """PEM file on the driver's machine: the authority that signed the captures' certificates."""
    capture_wait_seconds: Annotated[float, Meta(ge=0)] = 20.0
    """Maximum time that a task waits for a capture's changes, before it reads the source."""
    config: Annotated[
        Mapping[str, str], Given(kind=Annotated[Any, Meta(extra_json_schema=_SCHEMA)], parse=_settings)
    ] = field(default_factory=dict)
    """Additional settings of Spark, by name."""

    def __post_init__(self) -> None:
        check_master(self.master)
        if not _TRIGGER.fullmatch(self.trigger):
            raise ConfigError(
                f"trigger: {self.trigger!r} is none; accepted: a number of milliseconds, seconds, "
                'minutes, hours or days, for instance "10 seconds"'
            )
        for name in _OF_CAPTURES:
            if not self.capture and getattr(self, name) != _DEFAULTS[name]:
                raise ConfigError(f"{name}: it is for captures; give their addresses as {SECTION}.capture")
        for name in self.config:
            if not name.startswith("spark."):
                raise ConfigError(f'config.{name}: a setting of Spark begins with "spark."')

    @property
    def captures(self) -> dict[str, str]:
        """Options of the data source for the captures."""
        if not self.capture:
            return {}
        found = {
            "capture": ",".join(self.capture),
            "captureTls": str(self.capture_tls).lower(),
            "captureWaitSeconds": str(self.capture_wait_seconds),
        }
        files = {"captureTokenFile": self.capture_token_file, "captureCaFile": self.capture_ca_file}
        return found | {name: str(path) for name, path in files.items() if path is not None}


_DEFAULTS: Final = {
    name: made.default for name, made in SparkOptions.__dataclass_fields__.items() if name in _OF_CAPTURES
}
