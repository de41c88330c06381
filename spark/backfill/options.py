"""Options of a backfill."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """Options of a backfill. Raises ConfigError that names the accepted values."""

    chunk_rows: int = 100_000
    """MariaDB: rows of a chunk, about, by the server's estimates. A chunk is one connection and one task,
    which cost about 0.1 s."""
    chunk_bytes: int = 64 << 20
    """MariaDB: bytes of a chunk, about, by the tables' average rows: the most that a kill costs each task."""
    chunk_regions: int = 1
    """TiKV: regions of a chunk."""
    positions: str = "auto"
    """MariaDB: `snapshot` takes the binlog position of each chunk's snapshot, `watermark` reads the position
    before and after the chunk; `auto` prefers the first where the server supports it."""
    attempts: int = 4
    """Attempts to read a table that is altered meanwhile, before the backfill gives up."""

    def __post_init__(self) -> None:
        if self.positions not in ("auto", "snapshot", "watermark"):
            raise ConfigError(f"positions = {self.positions!r}: one of auto, snapshot, watermark")
        for name in ("chunk_rows", "chunk_bytes", "chunk_regions", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1")
