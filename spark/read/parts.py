"""Parts: the tables, or key ranges of them, that a partition reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final
from zlib import crc32

from ...chain.selection.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class Part:
    """The tables whose names hash to `number` modulo `of`; or, for TiKV, a key range of all tables.

    It depends on nothing else, so the same offsets give the same parts after a restart, also if tables were
    created or dropped and regions were split meanwhile.
    """

    number: int = 0
    of: int = 1
    schemas: frozenset[str] | None = None
    """Names of the schemas; None: all."""
    tables: frozenset[str] | None = None
    """Names of the tables; None: all."""
    start: bytes = b""
    """First raw key of the range."""
    end: bytes = b""
    """End of the range, exclusive; empty: none."""

    def has(self, schema: str, table: str) -> bool:
        return (
            (self.schemas is None or schema in self.schemas)
            and (self.tables is None or table in self.tables)
            and (self.of == 1 or crc32(f"{schema}.{table}".encode()) % self.of == self.number)
        )

    @property
    def is_whole(self) -> bool:
        return self == WHOLE

    @property
    def is_range(self) -> bool:
        return bool(self.start or self.end)

    @property
    def has_ddl(self) -> bool:
        """True if the part has its tables' schema changes; among ranges only the first has them."""
        return not self.start

    def chosen(self, patterns: Sequence[str]) -> TablePatterns:
        """Return the part of the patterns' tables. Raises ConfigError for a wrong pattern."""
        return TablePatterns.parse(patterns).within(self.has, (self.start, self.end), is_part=True)

    def divided(self, count: int, bounds: Sequence[bytes] | None = None) -> list[Part]:
        """Divide the part by table names into `count` parts, or into the key ranges between `bounds`."""
        if bounds is None:
            return [replace(self, number=number, of=count) for number in range(count)]
        edges = pairwise([b"", *bounds, b""])
        return [replace(self, start=start, end=end) for start, end in edges]


WHOLE: Final = Part()
