"""Options of a backfill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """Options of a backfill."""

    chunk_rows: Annotated[int, Meta(ge=1)] = 100_000
    """MariaDB: rows of a chunk, about, by the server's estimates. A chunk is one connection and one task,
    which cost about 0.1 s."""
    chunk_bytes: Annotated[int, Meta(ge=1)] = 64 << 20
    """MariaDB: bytes of a chunk, about, by the tables' average rows: the most that a kill costs each task."""
    chunk_regions: Annotated[int, Meta(ge=1)] = 1
    """TiKV: regions of a chunk."""
    positions: Literal["auto", "snapshot", "watermark"] = "auto"
    """MariaDB: `snapshot` takes the binlog position of each chunk's snapshot, `watermark` reads the position
    before and after the chunk; `auto` prefers the first where the server supports it."""
    attempts: Annotated[int, Meta(ge=1)] = 4
    """Attempts to read a table that is altered meanwhile, before the backfill gives up."""
