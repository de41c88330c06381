"""One Delta table with the present rows of a table of the source: each commit of a feed is made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .....errors import Retryable, SinkError
from .....events import Ddl
from .....failpoint import reach
from ...store import Store
from .delta_log import DeltaLog, Snapshot
from .edit import Change, Edit
from .key_index import KeyIndex

_ATTEMPTS: Final = 10
"""Number of commits of other programs before which a commit may be too late."""


class CopyTable:
    """The table in a folder. Used by one thread at a time.

    Every method raises as Store does, and SinkError if the table can't be used.
    """

    def __init__(self, store: Store, folder: str, index: KeyIndex) -> None:
        self._store: Final = store
        self.folder: Final = folder
        self._index: Final = index
        self._log: Final = DeltaLog(store, folder)

    def snapshot(self) -> Snapshot:
        """Return the table as it is now."""
        return self._log.latest()

    def check(self, ddl: Ddl) -> None:
        """Raise NotReproducible if the rows after ALTER TABLE aren't known, SinkError if there can be no
        copy any more."""
        Edit(self._store, self.folder, self._log.latest(), self._index, 0).check(ddl)

    def commit(self, writer: str, number: int, made_ms: int, changes: Sequence[Change]) -> int:
        """Make changes in one commit, and return the table's version; -1 if there is no table after them.

        Nothing happens if the table has this commit of the writer, or a later one. `made_ms` is the time of
        the commit in Unix milliseconds.
        """
        for _ in range(_ATTEMPTS):
            base = self._log.latest()
            if base.exists and self._number(base, writer) >= number:
                return base.version
            edit = Edit(self._store, self.folder, base, self._index, made_ms)
            for change in changes:
                change(edit)
            if not base.exists and edit.table is None:
                return base.version
            actions = edit.actions(writer, number)
            reach("copy.committing")
            if self._log.add(base, actions):
                reach("copy.committed")
                edit.settle()
                reach("copy.indexed")
                return base.version + 1
            edit.discard()  # compacted meanwhile, or committed by a copy of the feed
        raise Retryable(f"{self._log.name}: other programs change the table all the time", 1.0)

    def _number(self, snapshot: Snapshot, writer: str) -> int:
        number = snapshot.numbers.get(writer)
        if number is None:
            raise SinkError(
                f"{self._log.name} is a Delta table that another program made: remove it, or give another "
                "prefix"
            )
        return number
