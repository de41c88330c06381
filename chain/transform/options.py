"""Changes of columns and values: the `[[transform]]` sections of a feed.toml."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from ...errors import ConfigError
from ..selection.table_option import TABLES
from ..selection.tables import TablePatterns
from .transform import Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOptions:
    """One `[[transform]]`. Of several that match a table, the first one counts."""

    tables: Annotated[TablePatterns, TABLES]
    """Patterns of tables, as in `source.tables`."""
    keep: tuple[str, ...] = ()
    """Columns that sinks get; empty: all that `drop` doesn't name."""
    drop: tuple[str, ...] = ()
    """Columns that sinks don't get."""
    mask: Mapping[str, str] = field(default_factory=dict)
    """Text columns, each with the text that replaces its values, such as { email = "***" }; NULL stays."""
    hash: tuple[str, ...] = ()
    """Columns whose values become 64 hexadecimal digits, equal for equal values; NULL stays."""
    hash_key: str = field(default="", repr=False)
    """Secret key of the hash, such as "${HASH_KEY}"."""

    def __post_init__(self) -> None:
        if not (self.keep or self.drop or self.mask or self.hash):
            raise ConfigError("it changes nothing: give keep, drop, mask or hash")
        if self.keep and self.drop:
            raise ConfigError("keep and drop: give one of them")
        if self.hash and len(self.hash_key) < 16:
            raise ConfigError("hash_key: a key of 16 characters or more is needed to hash")
        keep, drop, mask, hashed = map(_lower, (self.keep, self.drop, self.mask, self.hash))
        for name in sorted([*mask, *hashed]):
            if (keep and name not in keep) or name in drop or (name in mask and name in hashed):
                raise ConfigError(f"column {name} is named twice, or isn't kept")


def transforms_of(sections: Sequence[TransformOptions], _: str) -> tuple[Transform, ...]:
    """Return the transforms of the sections."""
    return tuple(
        Transform(
            one.tables,
            _lower(one.keep),
            _lower(one.drop),
            {name.lower(): text for name, text in one.mask.items()},
            _lower(one.hash),
            one.hash_key.encode(),
        )
        for one in sections
    )


def _lower(names: Collection[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
