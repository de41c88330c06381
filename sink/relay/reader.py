"""Reading of a relay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import StoreError
from ...events import Item
from .frame import Content, read_frames, scan
from .record import RecordReader

PATTERN: Final = "*.relay"


class Relay:
    """The files of a relay, as far as their groups are complete."""

    def __init__(self, directory: Path) -> None:
        """Scan all files. Raises StoreError for damage, for files that don't follow one another, and if the
        directory can't be read."""
        self.directory = directory
        self.unfinished: list[Path] = []
        """Files that were only just begun."""
        self.contents: list[Content] = []
        """The others, in order."""
        try:
            for path in sorted(directory.glob(PATTERN)):
                content = scan(path)
                if content is None:
                    self.unfinished.append(path)
                else:
                    self._add(content)
        except OSError as error:
            raise StoreError(f"relay {directory}: {error.strerror}") from error

    def _add(self, content: Content) -> None:
        if self.contents:
            before = self.contents[-1]
            if (before.source, before.end_ts) != (content.source, content.begin_ts):
                raise StoreError(
                    f"{content.path} begins after ts {content.begin_ts} of {content.source}, the file before "
                    f"ends at {before.end_ts} of {before.source}: put back the files that are missing, or "
                    "remove the directory to begin again"
                )
        self.contents.append(content)

    @property
    def source(self) -> str:
        """Identity of the source; empty if the relay is."""
        return self.contents[0].source if self.contents else ""

    @property
    def begin_ts(self) -> int:
        """The relay has everything above this ts ..."""
        return self.contents[0].begin_ts if self.contents else 0

    @property
    def begins_empty(self) -> bool:
        """True if the target was empty at `begin_ts`."""
        return bool(self.contents) and self.contents[0].is_first

    @property
    def end_ts(self) -> int:
        """... up to this one."""
        return self.contents[-1].end_ts if self.contents else 0

    @property
    def bytes(self) -> int:
        return sum(content.length for content in self.contents)

    def items(self, after: int) -> Iterator[tuple[Item, int]]:
        """Yield the items above a ts, each with the number of bytes read until then. Raises StoreError."""
        read = 0
        for content in self.contents:
            if content.end_ts > after:
                reader = RecordReader(content.path)
                for one in read_frames(content.path, content.length):
                    item = reader.item(one)
                    if item is not None and item.commit_ts > after:
                        yield item, read + one.end
            read += content.length
