"""Statements for rows, each with the number of rows that it must affect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

ANY: Final = -1


def quoted(value: str) -> str:
    """Return a string literal for a session in which only quotes must be doubled."""
    return "'" + value.replace("'", "''") + "'"


class Statement(NamedTuple):
    text: str
    rows: int
    """Number of rows that it must find, or insert; ANY if it doesn't matter."""
    replaces: bool = False
    """True if it inserts rows whose keys all exist, of which the server reports each as a duplicate."""
    invalid: int = 0
    """Number of invalid values of ENUM columns that it stores."""
    lines: str = ""
    """Rows of a LOAD DATA LOCAL, which are sent after it."""

    @property
    def is_alone(self) -> bool:
        """True if it shares no packet with others."""
        return bool(self.invalid or self.lines)


def joined(
    start: str,
    comma: str,
    parts: list[str],
    end: str,
    max_chars: int,
    invalid: Sequence[int] = (),
    size_of: Callable[[str], int] = len,
) -> Iterator[Statement]:
    """Yield groups of parts up to the maximum number of characters of a statement; none without parts.

    `invalid` has the number of invalid values in each part; it is empty if there are none. `size_of` returns
    the number of characters of a part.
    """
    if not parts:
        return
    first = size = 0
    for index, part in enumerate(parts):
        length = size_of(part)
        if size + length > max_chars and index > first:
            some = comma.join(parts[first:index])
            yield Statement(start + some + end, index - first, invalid=sum(invalid[first:index]))
            first, size = index, 0
        size += length + 1
    some = comma.join(parts[first:])
    yield Statement(start + some + end, len(parts) - first, invalid=sum(invalid[first:]))


def packets(
    statements: Iterable[Statement], max_chars: int, size_of: Callable[[str], int] = len
) -> Iterator[list[Statement]]:
    """Yield groups of statements up to the maximum number of characters of a packet."""
    waiting: list[Statement] = []
    size = 0
    for statement in statements:
        is_alone = statement.is_alone or (waiting and waiting[-1].is_alone)
        length = size_of(statement.text)
        if waiting and (is_alone or size + length > max_chars):
            yield waiting
            waiting, size = [], 0
        waiting.append(statement)
        size += length + 1
    if waiting:
        yield waiting
