"""A barrier that merges whole transactions by time."""

from __future__ import annotations

from enum import Enum

from ..errors import InvariantViolated
from .entry import Entry
from .timeline_barrier import TimelineBarrier


class BarrierState(Enum):
    """The kind of entry that is between `wait` and `clear`."""

    FREE = 0
    TRANSACTION = 1
    SINGLE = 2
    """An entry outside transactions, or a part of one that began before this barrier."""


class TimelineTransactionBarrier(TimelineBarrier):
    """Lets the first part of a transaction pass by its ts, and the others of it at once, before anyone else.

    Entries outside transactions pass by themselves. The times of the parts of a transaction have no meaning
    but the first one's.
    """

    state = BarrierState.FREE
    _owner = ""
    _begun = 0
    """The ts of the open transaction, at which all its parts are submitted."""

    def clear(self, source: str, entry: Entry) -> None:
        with self._changed:
            self._consume(source)
            if source in self._interrupted:
                return
            if self._owner != source:
                raise InvariantViolated(f"source {source} ends what {self._owner or 'nobody'} began")
            # SINGLE comes first: the end of a transaction that began before this barrier is one, too.
            if self.state is BarrierState.SINGLE or entry.ends:
                self._free()

    def withdraw(self, source: str, entry: Entry) -> None:
        """Note that an entry wasn't consumed; a transaction stays the source's after its first part."""
        with self._changed:
            self._consume(source)
            if self._owner == source and (self.state is BarrierState.SINGLE or entry.begins):
                self._free()

    def _submit(self, source: str, ts: int) -> None:
        super()._submit(source, self._begun if self._is_of(source) else ts)

    def _may_pass(self, source: str, entry: Entry) -> bool:
        return self._is_of(source) or (self.state is BarrierState.FREE and super()._may_pass(source, entry))

    def _pass(self, source: str, entry: Entry) -> None:
        if self._is_of(source):
            self._passed.add(source)
            return
        super()._pass(source, entry)
        self.state = BarrierState.TRANSACTION if entry.begins else BarrierState.SINGLE
        self._owner, self._begun = source, entry.ts

    def _is_of(self, source: str) -> bool:
        """Return True if a transaction of this source is open."""
        return self.state is BarrierState.TRANSACTION and self._owner == source

    def _remove(self, source: str) -> None:
        super()._remove(source)
        if self._owner == source:
            self._free()

    def _free(self) -> None:
        self.state, self._owner = BarrierState.FREE, ""
        self._changed.notify_all()
