"""The folder of a lake: its tables, and the files that feeds are about to add to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

from ...errors import ConfigError, SinkError
from ...sink.files.directory import Directory
from ...sink.files.layout import HIDDEN
from ...sink.files.ledger import State, latest_state

LOG: Final = "_delta_log"
SCHEME: Final = "delta"


class Lake:
    """Delta tables below one directory."""

    def __init__(self, url: str) -> None:
        """`url` is that of the sink, such as delta:///var/lake. Raises ConfigError for another kind of URL,
        and SinkError if there is no table."""
        parts = urlsplit(url)
        if parts.scheme != SCHEME or parts.netloc or not parts.path.startswith("/"):
            raise ConfigError(f"{url}: no lake that can be analyzed; accepted: delta:///directory")
        self.url: Final = url
        self.directory: Final = Path(unquote(parts.path))
        if not self.folders():
            raise SinkError(f"{self.directory} has no Delta table")

    def folders(self) -> list[str]:
        """Return the names of the tables' folders."""
        return sorted(path.parent.name for path in self.directory.glob(f"*/{LOG}"))

    def path(self, folder: str) -> Path:
        return self.directory / folder

    def unannounced(self) -> dict[str, set[str]]:
        """Return the files of saved commits that their tables don't have yet, by folder.

        They are of feeds that stopped within a commit, or are in one now. Nothing refers to these files but
        the commit, which the feed finishes at its next start: they are never to be removed.
        """
        found: defaultdict[str, set[str]] = defaultdict(set)
        for state in self._states():
            writer = f"tidemill/{state.feed}/{state.sink}"
            for name in state.staged.values():
                folder, _, path = name.partition("/")
                if self._number(folder, writer) < state.commits:
                    found[folder].add(path)
        return dict(found)

    def _states(self) -> Iterator[State]:
        """Yield the last commit of each writer."""
        hidden = self.directory / HIDDEN
        roots = [HIDDEN, *(f"{HIDDEN}/{path.name}" for path in sorted(hidden.glob("spark-*")))]
        for root in roots:
            if (state := latest_state(Directory(self.directory), root)) is not None:
                yield state

    def _number(self, folder: str, writer: str) -> int:
        """Return the number of a writer's last commit in a table; 0 if there is none."""
        if not (self.path(folder) / LOG).is_dir():
            return 0
        return DeltaTable(self.path(folder)).transaction_version(writer) or 0
