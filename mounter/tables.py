"""The protocol by which decoders of statements ask which tables are followed."""

from __future__ import annotations

from typing import Protocol


class Tables(Protocol):
    """The set of tables that the feed follows."""

    def matches(self, schema: str, table: str) -> bool: ...

    def touches(self, schema: str) -> bool:
        """Return True if tables of this schema may be followed."""
        ...
