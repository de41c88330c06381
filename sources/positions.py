"""Positions of several sources as one text, and their order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import CheckpointError
from ..events import Ts

CLOCKS: Final = "@"
"""Key of the clocks in a position; no source is called so."""


def encode_positions(positions: Mapping[str, str], clocks: Mapping[str, Ts] = {}) -> str:
    """Return the position of a feed with several sources: a JSON object of each source's own, by name.

    `clocks` are the commit ts of the sources' last transactions. A source that is read again from its
    position goes on after its own ts, not after the feed's: else its transactions would get higher ones than
    before.
    """
    return json.dumps({**positions, CLOCKS: clocks} if clocks else positions, ensure_ascii=False)


def decode_clocks(text: str) -> dict[str, Ts]:
    """Return the commit ts at a position, by the source's name; empty if it has none."""
    clocks = json.loads(text).get(CLOCKS, {})
    return clocks if isinstance(clocks, dict) else {}


def decode_positions(text: str, names: Sequence[str]) -> dict[str, str]:
    """Raises CheckpointError unless `text` has a position of each named source, and of no other."""
    try:
        positions = json.loads(text)
    except ValueError:
        positions = None
    if isinstance(positions, dict):
        positions.pop(CLOCKS, None)
    if (
        not isinstance(positions, dict)
        or positions.keys() != set(names)
        or not all(isinstance(position, str) and position for position in positions.values())
    ):
        raise CheckpointError(
            f"{text!r} is not a position of this feed: expected a JSON object with a position of each of "
            f"its sources, {', '.join(names)}"
        )
    return {name: positions[name] for name in names}


class Ranks(tuple[object, ...]):
    """Ranks of several sources. One is at or after another if it is so for every source.

    All positions of one feed are in order. Where they aren't, as after a server's reset, each is both before
    and after the other.
    """

    __slots__ = ()

    def __ge__(self, other: tuple[Any, ...]) -> bool:
        return all(mine >= theirs for mine, theirs in zip(self, other, strict=True))

    def __le__(self, other: tuple[Any, ...]) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return not self >= other

    def __gt__(self, other: tuple[object, ...]) -> bool:
        return not self <= other
