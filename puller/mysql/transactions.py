"""Raw changes on their way to the output, transaction by transaction."""

from __future__ import annotations

from typing import Final

from ...codec.blocks import new_builder
from ...codec.mysql.entry import COMMIT, DDL, ROLLBACK_MARKER, ROWS, Commit, encode_commit, entry_key
from ...errors import SourceError
from ...events import PUT, Changes, Chunk, KvChange, Ts
from .commit_clock import CommitClock
from .log_watch import LogWatch, WatchedEntry

_NUMBER_OF_EMPTY = 1


class Transactions:
    """Numbers the changes of each transaction, assigns its ts and ends it, by its last rows or by a COMMIT.

    Transactions without changes only move the position: one empty transaction, made by take(), stands for all
    of them since the last call. A transaction above `max_bytes` is sent in parts while it is received. When
    it is received again after `interrupt`, the sent part is skipped; if it is never committed, a
    ROLLBACK_MARKER takes it back.
    """

    def __init__(self, clock: CommitClock, max_bytes: int, watch: LogWatch | None = None) -> None:
        """`watch` gets the changes of each committed transaction that it wants."""
        self.clock = clock
        self.is_open = False
        self.is_kept_whole = False
        """True if no part of the open transaction is sent before its end."""
        self.max_bytes = max_bytes
        self.block: Final = new_builder()
        """Complete transactions, older than the other ones."""
        self._changes: list[KvChange] = []
        self._whole = 0  # number of these changes that belong to complete transactions
        self._passed = False  # the position moved without a COMMIT
        # State of the latest transaction:
        self._ts: Ts = 0
        self._number = 0  # number of its last change, from 1
        self._handed = 0  # number of its last change that was sent
        self._bytes = 0  # bytes of its changes that weren't sent
        self._savepoints: dict[str, int] = {}
        self._watch: Final = watch
        self._watched: list[tuple[int, WatchedEntry]] = []
        """The open transaction's changes for `watch`, with their numbers."""
        self._watched_bytes = 0

    @property
    def is_begun(self) -> bool:
        """True if a transaction is open, or was interrupted after a part of it was sent."""
        return self.is_open or self._handed > 0

    def begin(self, epoch_seconds: int = 0) -> None:
        """Begin a transaction at that time of the source's clock; 0 for just after the last one."""
        self._ts = self.clock.next(epoch_seconds)
        self.is_open = True
        self.is_kept_whole = False

    def add(self, kind: int, value: bytes, layout: int = 0) -> None:
        self._number = number = self._number + 1
        watch = self._watch
        if watch is not None and watch.is_on and (kind == DDL or (kind == ROWS and watch.wants(layout))):
            self._note(watch, WatchedEntry(kind, value, layout))
        if number > self._handed:
            ts = self._ts
            self._changes.append(KvChange(ts, ts, PUT, entry_key(number, kind), value, b"", layout))
            self._bytes += len(value)

    def _note(self, watch: LogWatch, entry: WatchedEntry) -> None:
        self._watched.append((self._number, entry))
        self._watched_bytes += len(entry.value)
        if self._watched_bytes > watch.max_bytes:
            self._watched = [(number, entry.without_rows()) for number, entry in self._watched]
            self._watched_bytes = 0

    def commit(self, position: str, chunk: Chunk | None = None) -> None:
        """Commit the transaction; the source is then at `position`."""
        ts = self.clock.last = self._ts
        changes = self._changes
        if self._number or chunk is not None:
            last = changes[-1] if len(changes) > self._whole else None
            if last is not None and last.key[-1] == ROWS and chunk is None:
                changes[-1] = KvChange(ts, ts, PUT, last.key, last.value, position.encode(), last.region_id)
            else:
                key = entry_key(self._number + 1, COMMIT)
                changes.append(KvChange(ts, ts, PUT, key, encode_commit(Commit(position, chunk))))
            self._whole = len(changes)
            self._passed = False
        else:
            self._passed = True
        self._handed = 0
        if self._watched and self._watch is not None:
            self._watch.take([entry for _, entry in self._watched])
        self.interrupt()

    @property
    def takes_whole(self) -> bool:
        """True if whole transactions may be put into `block`: none is begun, and nobody watches."""
        return not self.is_begun and (self._watch is None or not self._watch.is_on)

    def put(self, last: Ts, has_rows: bool) -> None:
        """Note that transactions up to the ts `last` were put into `block`; `has_rows` is True if the last of
        them has rows."""
        self.clock.last = last
        self._passed = not has_rows

    def interrupt(self) -> None:
        """Close the open transaction. If it wasn't committed, it may be received again from its start."""
        del self._changes[self._whole :]
        self.is_open = False
        self._number = self._bytes = 0
        if self._savepoints:
            self._savepoints.clear()
        if self._watched:
            self._unwatch(0)

    def _unwatch(self, number: int) -> None:
        """Drop the watched changes after that number."""
        self._watched = [one for one in self._watched if one[0] <= number]
        self._watched_bytes = sum(len(entry.value) for _, entry in self._watched)

    def abandon(self, position: str) -> None:
        """Abandon the transaction: it will never be committed.

        It consumes its ts nevertheless; otherwise the next ts would depend on how much of it was sent.
        """
        self.roll_back()
        self.commit(position)

    def roll_back(self) -> None:
        """Drop the transaction's changes; it is still to be committed or abandoned."""
        del self._changes[self._whole :]
        if self._handed:
            self._changes.append(KvChange(self._ts, self._ts, PUT, entry_key(0, ROLLBACK_MARKER), b""))
        self._number = self._handed
        self._unwatch(0)

    def withdraw(self) -> list[KvChange]:
        """Take the changes out of a transaction that is kept whole and still to be committed; `restore` adds
        them to another one."""
        withdrawn = self._changes[self._whole :]
        del self._changes[self._whole :]
        self._number = self._bytes = 0
        self._unwatch(0)
        return withdrawn

    def restore(self, withdrawn: list[KvChange]) -> None:
        for change in withdrawn:
            self.add(change.key[-1], change.value, change.region_id)

    @property
    def open_bytes(self) -> int:
        """Bytes of the open transaction's changes that weren't sent."""
        return self._bytes

    def save(self, savepoint: str) -> None:
        self._savepoints[savepoint.casefold()] = self._number

    def roll_back_to(self, savepoint: str) -> None:
        """Drop the changes after a savepoint. Raises SourceError if the savepoint is unknown, or if some of
        these changes were sent."""
        number = self._savepoints.get(savepoint.casefold())
        if number is None:
            raise SourceError(
                f"a transaction rolls back to its savepoint {savepoint}, which the binlog doesn't have: "
                "start again with a new snapshot"
            )
        if number < self._handed:
            raise SourceError(
                f"a transaction of more than {self.max_bytes} bytes rolls back to its savepoint {savepoint}:"
                " start again with a new snapshot and a larger max_batch_bytes"
            )
        del self._changes[len(self._changes) - (self._number - number) :]
        self._number = number
        self._unwatch(number)

    def advance_watermark(self, ts: Ts) -> None:
        """Note that the source has no further changes at or below `ts`."""
        if self.clock.advance_watermark(ts):
            self._passed = True

    def take(self, position: str) -> Changes | None:
        """Return the complete transactions and the received part of a large one; None if there are no
        changes.

        The source is at `position`, before the open transaction.
        """
        changes = self._changes
        whole = self._whole
        moves_only = not changes and not self.block
        if self._passed:
            self._passed = False
            ts = self.clock.last
            commit = encode_commit(Commit(position))
            changes.insert(whole, KvChange(ts, ts, PUT, entry_key(_NUMBER_OF_EMPTY, COMMIT), commit))
            whole += 1
        if self._bytes > self.max_bytes and not self.is_kept_whole:
            whole = len(changes)
            self._handed = self._number
            self._bytes = 0
        self._changes = changes[whole:]
        self._whole = 0
        del changes[whole:]
        self.block.extend(changes)
        return Changes(self.block.take(), self.clock.last, moves_only) if self.block else None
