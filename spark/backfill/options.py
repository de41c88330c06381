"""How a backfill is cut."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """Raises ConfigError, naming what is accepted."""

    chunk_rows: int = 100_000
    """MariaDB: about so many rows make a chunk, by the server's estimates. A chunk is one connection and one
    task, which cost about a tenth of a second."""
    chunk_bytes: int = 64 << 20
    """... and about so many bytes, by the tables' average rows: what a kill costs at most, for each task."""
    chunk_regions: int = 1
    """TiKV: so many regions of a table make a chunk."""
    positions: str = "auto"
    """MariaDB: `snapshot` takes the binlog's position from the snapshot of each chunk, `watermark` looks
    where the binlog stands before and after its rows are read; `auto` takes the first where the server has
    it."""
    attempts: int = 4
    """So often a table is begun again that is altered while it is read, before the backfill gives up."""

    def __post_init__(self) -> None:
        if self.positions not in ("auto", "snapshot", "watermark"):
            raise ConfigError(f"positions = {self.positions!r}: one of auto, snapshot, watermark")
        for name in ("chunk_rows", "chunk_bytes", "chunk_regions", "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: at least 1")
