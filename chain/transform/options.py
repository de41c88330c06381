"""Changes of columns and values: the `[[transform]]` sections of a feed.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...config import build
from ...errors import ConfigError
from ..selection.tables import TablePatterns
from .transform import Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOptions:
    """One `[[transform]]`. Of several that match a table, the first one counts."""

    tables: tuple[str, ...]
    """Patterns of tables, as in `source.tables`."""
    keep: tuple[str, ...] = ()
    """Columns that sinks get; empty: all that `drop` doesn't name."""
    drop: tuple[str, ...] = ()
    """Columns that sinks don't get."""
    mask: dict[str, str] = field(default_factory=dict)
    """Text columns, each with the text that replaces its values; NULL stays."""
    hash: tuple[str, ...] = ()
    """Columns whose values become 64 hexadecimal digits, equal for equal values; NULL stays."""
    hash_key: str = ""
    """Secret key of the hash, such as "${HASH_KEY}"."""


def transforms_of(sections: Sequence[Mapping[str, Any]]) -> tuple[Transform, ...]:
    """Return the transforms of the sections. Raises ConfigError."""
    return tuple(_transform(f"transform {number}", section) for number, section in enumerate(sections, 1))


def _transform(where: str, section: Mapping[str, Any]) -> Transform:
    section = dict(section)
    mask = section.pop("mask", {})
    if not isinstance(mask, dict) or not all(isinstance(text, str) for text in mask.values()):
        raise ConfigError(f'{where}.mask: expected a table of columns and texts, such as {{ email = "***" }}')
    found = build(TransformOptions, section, where)
    tables = TablePatterns.parse(found.tables, f"{where}.tables")
    if not (found.keep or found.drop or mask or found.hash):
        raise ConfigError(f"{where}: it changes nothing: give keep, drop, mask or hash")
    if found.keep and found.drop:
        raise ConfigError(f"{where}: keep and drop: give one of them")
    if found.hash and len(found.hash_key) < 16:
        raise ConfigError(f"{where}.hash_key: a key of 16 characters or more is needed to hash")
    keep, drop, hashed = map(_lower, (found.keep, found.drop, found.hash))
    masked = {name.lower(): text for name, text in mask.items()}
    for name in sorted([*masked, *hashed]):
        if (keep and name not in keep) or name in drop or (name in masked and name in hashed):
            raise ConfigError(f"{where}: column {name} is named twice, or isn't kept")
    return Transform(tables, keep, drop, masked, hashed, found.hash_key.encode())


def _lower(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
