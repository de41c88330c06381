"""A rule about schema changes, by table and kind."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from .change import KINDS


class Matching(Protocol):
    def matches(self, schema: str, table: str) -> bool: ...


class Rule(Struct, frozen=True):
    """A rule for schema changes of the tables that match."""

    tables: Matching
    action: str
    """One of ACTIONS."""
    kinds: frozenset[str] = frozenset(KINDS)
