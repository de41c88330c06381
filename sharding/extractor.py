"""Extractors: columns of a merged table that say where a row comes from."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from ..errors import ConfigError, SinkError
from ..events import Column
from .shard import Shard

NamePart: TypeAlias = Literal["source", "schema", "table"]
PARTS: Final[tuple[NamePart, ...]] = ("source", "schema", "table")
MAX_CHARS: Final = 64
"""Characters of the longest name of a table."""


class Extractor:
    """Puts the groups of a regular expression, joined, into a column; without groups, the whole match.

    Raises ConfigError, naming the option `where`.
    """

    def __init__(self, column: str, part: NamePart, regex: str, *, in_key: bool, where: str) -> None:
        self.in_key = in_key
        """True if the column is part of the merged table's primary key."""
        self.part: Final = part
        self.column: Final = Column(
            column,
            "varchar",
            length=MAX_CHARS,
            charset="utf8mb4",
            collation="utf8mb4_bin",
            nullable=False,
        )
        try:
            self._re = re.compile(regex or "(.*)")
        except re.error as error:
            raise ConfigError(f"{where}.regex = {regex!r}: not a regular expression: {error}") from None

    def value(self, shard: Shard) -> str:
        """Return the value for a shard's rows. Raises SinkError if the expression doesn't match its name."""
        name = getattr(shard, self.part)
        match = self._re.fullmatch(name)
        if match is None:
            raise SinkError(
                f"route.extract: column {self.column.name}: {self._re.pattern!r} doesn't match {self.part} "
                f"{name!r} of {shard}: change the expression, or exclude the table"
            )
        return "".join(group or "" for group in match.groups()) if self._re.groups else match[0]
