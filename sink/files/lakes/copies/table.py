"""One table with the present rows of a table of the source: each commit of a feed is made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .....errors import Retryable
from .....events import Ddl
from .....failpoint import reach
from ...store import Store
from .edit import Change, Edit
from .key_index import KeyIndex
from .log import CopyLog, Snapshot

_ATTEMPTS: Final = 10
"""Number of commits of other programs before which a commit may be too late."""


class CopyTable:
    """The table in a folder. Used by one thread at a time.

    Every method raises as Store does, and SinkError if the table can't be used.
    """

    def __init__(self, store: Store, folder: str, log: CopyLog, index: KeyIndex) -> None:
        self.log: Final = log
        self._store: Final = store
        self._folder: Final = folder
        self._index: Final = index

    def check(self, ddl: Ddl) -> None:
        """Raise NotReproducible if the rows after ALTER TABLE aren't known, SinkError if there can be no
        copy any more."""
        self._edit(self.log.latest()).check(ddl)

    def commit(self, writer: str, number: int, made_ms: int, changes: Sequence[Change]) -> int:
        """Make changes in one commit, and return the table's version; -1 if there is no table after them.

        Nothing happens if the table has this commit of the writer, or a later one. `made_ms` is the time of
        the commit in Unix milliseconds.
        """
        for _ in range(_ATTEMPTS):
            base = self.log.latest()
            if base.exists and self.log.number(base, writer) >= number:
                return base.version
            edit = self._edit(base)
            for change in changes:
                change(edit)
            if not base.exists and edit.table is None:
                return base.version
            version = self.log.add(base, edit.commit(writer, number, made_ms))
            if version is not None:
                reach("copy.committed")
                edit.settle()
                reach("copy.indexed")
                return version
            edit.discard()  # compacted meanwhile, or committed by a copy of the feed
        raise Retryable(f"{self.log.name}: other programs change the table all the time", 1.0)

    def _edit(self, base: Snapshot) -> Edit:
        return Edit(self._store, self._folder, self.log, base, self._index)
