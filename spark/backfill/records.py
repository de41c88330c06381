"""Records that a backfill keeps about itself."""

from __future__ import annotations

from msgspec import Struct

from .plan import BackfillPlan


class ChunkRecord(Struct, frozen=True, omit_defaults=True):
    """A finished chunk."""

    number: int
    file: str
    """Relative to the backfill's directory; empty for a chunk without rows."""
    rows: int
    blocks: int
    bytes: int
    low: str
    """Position up to which every change is included."""
    high: str
    """Position after which no change is included; changes between the two may be."""


class LaterAlteration(Struct, frozen=True):
    """A statement that changed a table's definition, or all its rows."""

    query: str
    table: str = ""
    """The table's full name; empty if the statement may concern several tables."""


class LaterChanges(Struct, frozen=True):
    """Changes of rows after they were read."""

    position: str
    """The position to which all chunks are brought."""
    file: str
    """Relative to the backfill's directory."""
    chunks: tuple[int, ...]
    """Numbers of the chunks with changes."""
    rows: int
    voided: tuple[int, ...]
    """Timestamps of transactions that the source rolled back after logging rows."""
    altered: tuple[LaterAlteration, ...] = ()


class Manifest(Struct, frozen=True):
    """A finished backfill: all rows as of `position`."""

    plan: BackfillPlan
    position: str
    records: tuple[ChunkRecord, ...]
    """In the order of their numbers."""
