"""Positions in the columns of DM's checkpoint, and in a feed's checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...errors import CheckpointError

_POSITION: Final = re.compile(r"(.{1,512}?\.\d+):(\d+)(?: gtid=(\S+))?(?: [^p]\S*)*( prepared .*)?")
_RELAYED: Final = re.compile(r"\|\d+(?=\.\d+$)")
"""The number that DM's relay log puts into the name of a file."""


class Point(NamedTuple):
    """A position in a binlog."""

    file: str
    offset: int
    gtid: str = ""

    @property
    def order(self) -> tuple[int, int]:
        """Number of the file, and the offset: positions of one server are in their order."""
        number = self.file.rpartition(".")[2]
        return (int(number) if number.isdigit() else 0), self.offset

    @property
    def text(self) -> str:
        """The position as a source reads it. Raises CheckpointError if there is none."""
        if self.file and not _RELAYED.search(self.file):
            return f"{self.file}:{self.offset}"
        if self.gtid:
            return self.gtid  # a file of a relay log isn't one of the server
        if self.file:
            return f"{_RELAYED.sub('', self.file)}:{self.offset}"
        raise CheckpointError("a row of DM's checkpoint has no position: remove it")


def point_of(position: str) -> Point | None:
    """Return the position as DM has it; None while an XA transaction is prepared, which DM can't resume."""
    parts = _POSITION.fullmatch(position)
    if parts is None:
        return Point("", 0, position)
    return None if parts[4] else Point(parts[1], int(parts[2]), parts[3] or "")


def by_source(position: str, source_id: str) -> dict[str, str]:
    """Return the position of each source by its id in DM; `source_id` is that of a feed's only source."""
    if not position.startswith("{"):
        if not source_id:
            raise CheckpointError('checkpoint = "dm": set source_id, the id of the source in DM')
        return {source_id: position}
    positions = json.loads(position)
    return {name: text for name, text in positions.items() if isinstance(text, str)}


def joined(positions: Mapping[str, str], source_id: str) -> str:
    """Return the position of the feed's only source, or of several, as they have it."""
    if source_id or len(positions) == 1:
        return next(iter(positions.values()))
    return json.dumps(dict(positions), ensure_ascii=False)
