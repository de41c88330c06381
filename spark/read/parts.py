"""Which tables, or which of their rows, a partition has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final
from zlib import crc32

from ...routing import TableFilter


@dataclass(frozen=True, slots=True)
class Part:
    """The tables whose names have the hash `number`, of `of`; or, of TiKV, a range of the keys of them all.

    It depends on nothing else, so the same offsets give the same parts after a restart, with tables that
    came or went, and regions that were divided meanwhile.
    """

    number: int = 0
    of: int = 1
    schemas: frozenset[str] | None = None
    """Only these; None: all."""
    tables: frozenset[str] | None = None
    start: bytes = b""
    """Only rows with raw keys from here on ..."""
    end: bytes = b""
    """... up to but not including this; empty: to the last."""

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
        """Whether the schema changes of the tables that it has are its own: of ranges those of the first."""
        return not self.start

    def divided(self, count: int, bounds: Sequence[bytes] | None = None) -> list[Part]:
        """By the tables' names into `count`; with `bounds` into the ranges between these raw keys."""
        if bounds is None:
            return [replace(self, number=number, of=count) for number in range(count)]
        edges = pairwise([b"", *bounds, b""])
        return [replace(self, start=start, end=end) for start, end in edges]


WHOLE: Final = Part()


class PartFilter(TableFilter):
    """Of the tables that the patterns name, those of a part."""

    def __init__(self, patterns: Sequence[str], part: Part) -> None:
        self.part = part
        self.keys = part.start, part.end
        super().__init__(patterns)

    def _matches(self, schema: str, table: str) -> bool:
        return self.part.has(schema, table) and super()._matches(schema, table)

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:  # noqa: ARG002
        """All of them: a part may have none of the tables that there are now, and rows all the same."""
        return list(self.patterns)
