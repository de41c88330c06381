"""Pieces of files, and the protocol of formats that make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from ...events import Item, Table, Ts

Group: TypeAlias = tuple[Table | None, int, str]
"""The changes that are in one file: those of a table version (None for schema changes), of a day since 1970
in UTC, and of a source."""


class Piece(NamedTuple):
    """Encoded changes of one group, in commit order."""

    group: Group
    first: Ts
    last: Ts
    content: Any
    size: int
    """Bytes in memory."""


class Format(Protocol):
    """Makes files of one format. Called only by its sink, `content` by any of its threads."""

    def start(self) -> None:
        """Forget unfinished transactions: they come again from their first row."""

    def pieces(self, items: Sequence[Item]) -> Iterable[Piece]:
        """Return the pieces of items. Raises SinkError for a value that the format can't hold."""
        ...

    def suffix(self, group: Group) -> str:
        """Return the end of a file's name, with its point."""
        ...

    def content(self, group: Group, pieces: Sequence[Piece]) -> Any:
        """Return a file of these pieces, as a buffer."""
        ...
