"""What a backfill writes down about itself."""

from __future__ import annotations

from msgspec import Struct

from .plan import Plan


class ChunkRecord(Struct, frozen=True, omit_defaults=True):
    """A chunk whose file is whole."""

    number: int
    file: str
    """Relative to the backfill's directory; empty for a chunk without rows."""
    rows: int
    blocks: int
    bytes: int
    low: str
    """Position: every change up to there is in it ..."""
    high: str
    """... and none behind this; between the two some may be."""


class Alteration(Struct, frozen=True):
    """A statement that changed a table's definition, or all its rows."""

    query: str
    table: str = ""
    """Its full name; empty where it may have been about others as well."""


class Changes(Struct, frozen=True):
    """What happened to rows after they were read."""

    position: str
    """All chunks are brought to there."""
    file: str
    """Relative to the backfill's directory."""
    chunks: tuple[int, ...]
    """Those that something happened to."""
    rows: int
    voided: tuple[int, ...]
    """Timestamps of transactions of which the source took back what it had logged."""
    altered: tuple[Alteration, ...] = ()


class Manifest(Struct, frozen=True):
    """A finished backfill: all rows as of `position`."""

    plan: Plan
    position: str
    records: tuple[ChunkRecord, ...]
    """In the order of their numbers."""
