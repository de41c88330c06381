"""A shard: one table of one source that goes into a merged table."""

from __future__ import annotations

from typing import NamedTuple

from ..events import origin_name


class Shard(NamedTuple):
    source: str
    """Name of the source; empty for the feed's only one."""
    schema: str
    table: str

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def origin_name(self) -> str:
        """Name of the table in checkpoints."""
        return origin_name(self.source, self.full_name)

    def __str__(self) -> str:
        return self.origin_name
