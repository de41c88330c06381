"""Patterns of tables, as options have them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from ...config import Given
from ...errors import ConfigError
from .tables import TablePatterns

_SCHEMA: Final = {"type": "array", "items": {"type": "string"}}


def table_patterns(patterns: object, where: str) -> TablePatterns:
    """Return the choice by a list of patterns. Raises ConfigError that names the option."""
    if not isinstance(patterns, list | tuple) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError(f'{where}: expected a list of patterns, for instance ["shop.*"]')
    return TablePatterns.parse(patterns, where)


TABLES: Final = Given(kind=Annotated[Any, Meta(extra_json_schema=_SCHEMA)], parse=table_patterns)
"""Annotates patterns of tables."""
