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
from ..backfill.options import BackfillOptions
from ..captures_options import CapturesOptions

SECTION: Final = "spark"
MASTER: Final = "local[2]"
_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+"
)
_TRIGGER: Final = re.compile(r"\d+ (millisecond|second|minute|hour|day)s?")


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
class SparkOptions(CapturesOptions):
    """Options for Spark. Raises ConfigError if one isn't accepted or two conflict."""

    master: str = MASTER
    """Spark master: local[2], local[*], spark://host:7077, yarn or k8s://…."""
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Number of parts that the tables are divided into; with 1, transactions stay whole."""
    trigger: str = "0 seconds"
    """Interval between batches, such as "10 seconds"; 0: without a pause."""
    directory: Path | None = None
    """Directory for rows while they are loaded, shared by the driver and all executors; None: `backfill` in
    the feed's data directory."""
    backfill: BackfillOptions = field(default_factory=BackfillOptions)
    """How existing rows are read."""
    config: Annotated[
        Mapping[str, str], Given(kind=Annotated[Any, Meta(extra_json_schema=_SCHEMA)], parse=_settings)
    ] = field(default_factory=dict)
    """Additional settings of Spark, by name."""

    def __post_init__(self) -> None:
        CapturesOptions.__post_init__(self)
        check_master(self.master)
        if not _TRIGGER.fullmatch(self.trigger):
            raise ConfigError(
                f"trigger: {self.trigger!r} is none; accepted: a number of milliseconds, seconds, "
                'minutes, hours or days, for instance "10 seconds"'
            )
        for name in self.config:
            if not name.startswith("spark."):
                raise ConfigError(f'config.{name}: a setting of Spark begins with "spark."')
