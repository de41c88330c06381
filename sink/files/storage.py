"""A sink that writes files to an object store or a directory, exactly once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ...errors import InvariantViolated, Retryable, SinkError, TidemillError
from ...events import Batch, Checkpoint, Ddl, Wait, row_count
from ..sink import Sink, SinkTraits
from .commits import Commits
from .formats import Piece
from .heap import give_back
from .journal import read_entry, write_entry
from .ledger import Ledger
from .staging import Staging
from .target import FilesTarget

_GIVE_BACK_BYTES: Final = 16 << 20
"""Bytes of rows that were freed after which the memory goes back to the system."""
_MOST_ENTRIES: Final = 100
"""Length of the journal at which one object replaces all of its objects, which each state names."""


class StorageSink(Sink):
    """Collects rows until files of them are due, and keeps them in a journal meanwhile, if there is one.

    After Retryable it forgets what isn't durable, and asks the store whether the last commit was saved.
    """

    def __init__(self, target: FilesTarget, ledger: Ledger, now: Callable[[], float]) -> None:
        self.name = ledger.sink
        self.target = target.name
        self._target: Final = target
        self._options: Final = target.options
        self._now: Final = now
        self._commits: Final = Commits(target, ledger)
        self._staging: Final = Staging(target)
        self._folder = ""
        """Folder of the next commit."""
        self._fresh: list[Piece] = []
        """Pieces since the last commit that aren't staged, for the journal."""
        self._reached: Checkpoint | None = None
        self._is_inside = False  # True inside a transaction
        self._batches = self._rows = 0
        """Batches and rows since the last commit."""
        self._staged_bytes = self._freed_bytes = 0
        """Size of the rows that were written to files since the last commit, and since memory went back."""
        self._since = math.inf
        """Time of the first batch that isn't in files."""
        self._next_entry = -math.inf
        """Time from which rows go to the journal."""
        self._is_open = self._is_failed = False
        self._is_doubtful = False
        """True if the last commit may have been saved."""
        self._skip = 0
        """Batches that come again and are committed."""
        self._waiting_since: float | None = None

    # --- the protocol

    @property
    def traits(self) -> SinkTraits:
        layout = self._target.layout
        return SinkTraits(
            reads_rows=self._target.format.reads_rows,
            tells_definitions=not (layout.has_statements or layout.checks_statements),
            is_pipelined=True,
            needs_flush_before_ddl=layout.checks_statements,
        )

    def open(self) -> Checkpoint | None:
        self._is_open = self._is_failed = self._is_doubtful = False
        self._skip = 0
        self._commits.begin()
        self._restart()
        self._is_open = True
        return self._commits.durable

    def write(self, batch: Batch) -> None:
        if not self._is_open:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        self._settle()
        if self._skip:
            self._skip -= 1
            return
        if self._target.layout.checks_statements and batch.items and isinstance(batch.items[0], Ddl):
            self._check(batch.items[0])
        self._since = min(self._since, self._now())
        self._batches += 1
        self._rows += row_count(batch.items)
        self._reached, self._is_inside = batch.checkpoint or self._reached, batch.checkpoint is None
        pieces = self._staging.collect(batch.items)
        if self._has_journal:
            self._fresh += pieces
        if self._staging.bytes >= self._options.file_bytes:
            with self._undone_by_retryable():
                self._stage()

    def _check(self, ddl: Ddl) -> None:
        """Have a schema change checked, once all rows before it are in their tables."""
        if self._commits.journal:
            self._to_files(self._commits.durable)
        with self._undone_by_retryable():
            self._commits.check()
            self._target.layout.check(ddl)

    def flush(self) -> Checkpoint | None:
        if self._is_open:
            self._settle()
            if not self._is_inside and not self._skip:
                self._commit()
        return self._commits.durable

    def progress(self) -> Checkpoint | None:
        """Commit if that is due, and return the durable checkpoint."""
        is_due = self._is_doubtful or self._are_files_due() or self._is_entry_due()
        return self.flush() if is_due else self._commits.durable

    def wakes(self) -> float | None:
        if not self._is_open or self._is_inside or not self._commits.journal:
            return None
        return max(0.0, self._since + self._options.flush_seconds - self._now())

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def waits(self) -> list[Wait]:
        """Return its wait for the store. Any thread."""
        since = self._waiting_since
        if since is None:
            return []
        return [Wait(f"sink {self.name}", "answer", self._now() - since, on=self.target)]

    def close(self) -> None:
        """Write all acknowledged rows to files."""
        is_open, self._is_open = self._is_open, False
        try:
            if is_open and self._commits.journal and not self._is_failed:
                self._write_journaled()
        except TidemillError as error:
            raise SinkError(
                f"{error}; acknowledged rows wait in its journal, and the next start writes their files"
            ) from error
        finally:
            self._fresh = []
            self._staging.start("")
            self._target.layout.close()

    def _write_journaled(self) -> None:
        if self._batches:
            self._forget()
            self._restart()
        self._settle()
        if self._commits.journal:
            self._to_files(self._commits.durable)

    # --- rows

    def _restart(self) -> None:
        """Continue from the last commit, with what is in the journal."""
        self._folder = self._commits.folder()
        self._staging.start(self._folder)
        self._begin()
        for name in self._commits.journal:
            self._staging.add(read_entry(self._target.store, name, self._target.format))
        self._since = self._now() if self._commits.journal else math.inf

    def _begin(self) -> None:
        self._fresh = []
        self._reached, self._is_inside = None, False
        self._batches = self._rows = 0

    def _forget(self) -> None:
        """Forget everything since the last commit: it comes again."""
        self._commits.abandon(self._folder)
        self._staging.start("")
        self._begin()

    def _stage(self) -> None:
        size = self._staging.bytes
        self._staged_bytes += size
        self._freed_bytes += size
        self._staging.stage()
        self._fresh = []
        self._give_back(self._freed_bytes)

    def _give_back(self, freed_bytes: int) -> None:
        if freed_bytes >= _GIVE_BACK_BYTES:
            give_back()
            self._freed_bytes = 0

    # --- commits

    @property
    def _has_journal(self) -> bool:
        return self._options.journal_seconds < self._options.flush_seconds

    def _fits_journal(self) -> bool:
        return self._has_journal and not self._staging.has_statement

    def _are_files_due(self) -> bool:
        return (
            self._staging.is_staged
            or self._rows >= self._options.commit_rows
            or self._now() - self._since >= self._options.flush_seconds
        )

    def _is_entry_due(self) -> bool:
        return self._has_journal and bool(self._batches) and self._now() >= self._next_entry

    def _commit(self) -> None:
        if self._are_files_due() or (self._batches and not self._fits_journal()):
            self._to_files(self._reached or self._commits.durable)
        elif self._batches:
            self._to_journal(self._reached)

    def _to_files(self, reached: Checkpoint | None) -> None:
        assert reached is not None
        with self._undone_by_retryable():
            self._stage()
            self._commits.commit(reached, self._staging.staged, batches=self._batches)
        self._next()

    def _to_journal(self, reached: Checkpoint | None) -> None:
        assert reached is not None
        pieces, journal = self._fresh, self._commits.journal
        if len(journal) >= _MOST_ENTRIES:
            pieces, journal = self._staging.pieces(), []
        with self._undone_by_retryable():
            if pieces:
                name = f"{self._folder}/journal"
                write_entry(self._target.store, name, self._target.format, pieces)
                journal = [*journal, name]
            self._commits.commit(reached, (), journal, batches=self._batches)
        self._next()

    def _next(self) -> None:
        """Begin to collect the next commit. Rows of the journal stay in memory."""
        self._give_back(self._staged_bytes)  # a copy has read them again
        self._staged_bytes = self._freed_bytes = 0
        self._folder = self._commits.folder()
        self._staging.move(self._folder)
        self._begin()
        now = self._now()
        self._since = min(self._since, now) if self._commits.journal else math.inf
        self._next_entry = now + self._options.journal_seconds

    # --- what an interruption left

    @contextmanager
    def _undone_by_retryable(self) -> Iterator[None]:
        self._waiting_since = self._now()
        try:
            yield
        except Retryable:
            self._is_doubtful = True
            self._forget()
            raise
        except TidemillError:
            self._is_failed = True
            raise
        finally:
            self._waiting_since = None

    def _settle(self) -> None:
        """After Retryable, find out whether the last commit was saved, and finish it then."""
        if self._is_doubtful:
            self._skip = self._commits.settle()
            self._restart()
            self._is_doubtful = False
