"""Which tables a partition has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from ..routing import TableFilter


@dataclass(frozen=True, slots=True)
class Part:
    """The tables whose names have the hash `number`, of `of`.

    It depends on nothing else, so the same offsets give the same parts after a restart, with tables that
    came or went meanwhile.
    """

    number: int = 0
    of: int = 1

    def has(self, schema: str, table: str) -> bool:
        return self.of == 1 or crc32(f"{schema}.{table}".encode()) % self.of == self.number


WHOLE = Part()


def parts(count: int) -> list[Part]:
    return [Part(number, count) for number in range(count)]


class PartFilter(TableFilter):
    """Of the tables that the patterns name, those of a part."""

    def __init__(self, patterns: Sequence[str], part: Part) -> None:
        self.part = part
        super().__init__(patterns)

    def _matches(self, schema: str, table: str) -> bool:
        return self.part.has(schema, table) and super()._matches(schema, table)

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:  # noqa: ARG002
        """All of them: a part may have none of the tables that there are now, and rows all the same."""
        return list(self.patterns)
