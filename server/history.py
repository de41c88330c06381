"""History of a feed: states, errors and operations; bounded, and kept over restarts."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from ..store import disk
from .model.feeds import MAX_HISTORY as LIMIT
from .model.feeds import HistoryEntry

MAX_CHARS: Final = 2_000
"""Maximum length of an entry's text; the rest is cut."""


class History:
    """Entries of one feed, in a file of up to twice as many lines of JSON if it has one. Any thread."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()
        self._entries: deque[HistoryEntry] = deque(maxlen=LIMIT)
        self._lines = 0
        if path is not None:
            self._load(path)

    def add(self, entry: HistoryEntry) -> None:
        """Append an entry. An error of the disk loses it for the next start only."""
        entry = msgspec.structs.replace(entry, text=entry.text[:MAX_CHARS])
        with self._lock:
            self._entries.append(entry)
            if self._path is not None:
                with suppress(OSError):
                    self._save(self._path, entry)

    def end(self) -> None:
        """Write nothing more: the file is about to be removed."""
        with self._lock:
            self._path = None

    def last(self, limit: int) -> list[HistoryEntry]:
        """Return up to `limit` entries, the newest first."""
        with self._lock:
            return list(self._entries)[::-1][:limit]

    def _load(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            for line in path.read_bytes().splitlines():
                self._lines += 1
                with suppress(msgspec.DecodeError):  # a line that the end of the process cut
                    self._entries.append(msgspec.json.decode(line, type=HistoryEntry))

    def _save(self, path: Path, entry: HistoryEntry) -> None:
        self._lines += 1
        if self._lines > 2 * LIMIT:
            disk.replace(path, b"".join(msgspec.json.encode(one) + b"\n" for one in self._entries))
            self._lines = len(self._entries)
            return
        with path.open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")
