"""A file with the layouts of a process, from which another process can tell the tables of its raw changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import Struct

from .layout import TableLayout

SUFFIX: Final = "layouts"
"""End of the names of such files."""


class LayoutRecord(Struct, frozen=True):
    """A layout with the number that `KvChange.region_id` refers to; one line of the file."""

    lane: int
    lanes: int
    """The commit ts of its changes leave `lane` when divided by `lanes`."""
    number: int
    name: str
    """Full name of the table, after the name of its source if it has one."""
    table_map: bytes = b""
    """Payload of the Table_map event; empty for rows of a snapshot."""


class LayoutFile:
    """Appends layouts. A disk that fails ends the file: it serves reports only, and no feed depends on it."""

    def __init__(self, path: Path, lane: int = 0, lanes: int = 1) -> None:
        """Overwrite the file: numbers are those of one process."""
        self._lane = lane, lanes
        self._file: IO[bytes] | None = None
        try:
            self._file = path.open("wb", buffering=0)
        except OSError:
            return

    def add(self, number: int, layout: TableLayout) -> None:
        """Write the layout, unless its Table_map can't be read."""
        described = layout.described
        if self._file is None or described is None:
            return
        line = msgspec.json.encode(LayoutRecord(*self._lane, number, *described)) + b"\n"
        try:
            self._file.write(line)
        except OSError:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_layouts(directory: Path) -> Iterator[LayoutRecord]:
    """Yield the layouts of all sources of the feed that has its state there; none for a source without."""
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        for line in path.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=LayoutRecord)
            except msgspec.DecodeError:  # its process was killed while it wrote the line
                return
