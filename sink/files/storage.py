"""A sink that writes files to an object store or a directory, exactly once.

A commit writes its files under hidden names, saves one state that has the checkpoint and their final names,
and then publishes them. After a crash before the state, the files are removed; after it, they are published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Final

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...errors import InvariantViolated, Retryable, SinkError, TidemillError
from ...events import Batch, Checkpoint, Ddl, Item, Ts, Wait, row_count
from ...failpoint import reach
from ..sink import Sink, SinkTraits
from .expiry import Expiry
from .layout import Layout
from .ledger import Ledger, State
from .names import HIDDEN, check_unused
from .options import DirectoryOptions
from .piece import Format, Group, Piece
from .store import Store

STAGED: Final = f"{HIDDEN}/staged"
"""Folder of files that aren't visible yet, in a folder for each attempt of a commit by epoch and number."""


class StorageSink(Sink):
    """Collects pieces of files. After Retryable it forgets them, and asks the store whether the last commit
    was saved."""

    def __init__(
        self,
        name: str,
        feed: str,
        store: Store,
        ledger: Ledger,
        layout: Layout,
        form: Format,
        options: DirectoryOptions,
        now: Callable[[], float],
    ) -> None:
        self.name = name
        self.target = store.name
        self._feed: Final = feed
        self._store: Final = store
        self._ledger: Final = ledger
        self._layout: Final = layout
        self._format: Final = form
        self._options: Final = options
        self._now: Final = now
        self._expiry: Final = Expiry(store, options.file_expiration_days)
        self._pool: ThreadPoolExecutor | None = None
        self._durable: Checkpoint | None = None
        self._commits = 0
        """Number of the last commit."""
        self._folders = 0
        self._folder = ""
        """Folder of the next commit's staged files."""
        self._abandoned: list[str] = []
        """Folders of commits that may be saved until a later one is."""
        self._groups: dict[Group, list[Piece]] = {}
        self._bytes = 0
        self._staged: dict[str, str] = {}
        """Names of the next commit's objects by their staged names."""
        self._reached: Checkpoint | None = None
        self._is_open = False  # True inside a transaction
        self._batches = self._rows = 0
        """Batches and rows since the last commit."""
        self._since = math.inf
        """Time of the first batch since the last commit."""
        self._is_doubtful = False
        """True if the last commit may have been saved."""
        self._attempted: dict[str, int] = {}
        """Number of batches in commits that may be saved, by their checkpoints."""
        self._skip = 0
        """Batches that come again and are committed."""
        self._waiting_since: float | None = None

    # --- the protocol

    @property
    def traits(self) -> SinkTraits:
        return SinkTraits(
            tells_definitions=not self._layout.has_statements,
            is_pipelined=True,
        )

    def open(self) -> Checkpoint | None:
        self.close()
        self._durable, self._commits, self._skip, self._is_doubtful = None, 0, 0, False
        self._attempted.clear()
        self._abandoned.clear()
        self._pool = ThreadPoolExecutor(self._options.parallel, thread_name_prefix=f"sink {self.name}")
        try:
            self._store.check()
            state = self._ledger.claim()
            if state is None:
                check_unused(self.target, self._store.entries(), "give another prefix")
            else:
                self._adopt(state)
                self._ledger.save(state)
                self._ledger.clean()
            self._remove_leftovers()
        except TidemillError:
            self.close()
            raise
        self._forget()
        return self._durable

    def write(self, batch: Batch) -> None:
        self._settle()
        if self._skip:
            self._skip -= 1
            return
        self._since = min(self._since, self._now())
        self._batches += 1
        self._rows += row_count(batch.items)
        self._reached, self._is_open = batch.checkpoint or self._reached, batch.checkpoint is None
        with self._undone_by_retryable():
            self._collect(batch.items)
            if self._bytes >= self._options.file_bytes:
                self._stage()

    def flush(self) -> Checkpoint | None:
        if self._pool is not None:
            self._settle()
            if self._batches and not (self._skip or self._is_open):
                self._commit()
        return self._durable

    def progress(self) -> Checkpoint | None:
        """Commit if that is due, and return the durable checkpoint."""
        options = self._options
        is_due = self._now() - self._since >= options.flush_seconds or self._rows >= options.commit_rows
        return self.flush() if is_due or self._staged or self._is_doubtful else self._durable

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def waits(self) -> list[Wait]:
        """Return its wait for the store. Any thread."""
        since = self._waiting_since
        if since is None:
            return []
        return [Wait(f"sink {self.name}", "answer", self._now() - since, on=self._store.name)]

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self._forget()

    # --- rows

    def _collect(self, items: list[Item]) -> None:
        if items and isinstance(items[0], Ddl) and not self._layout.has_statements:
            self._stage()  # earlier rows belong to the definition before it
            self._layout.note(items[0])
            return
        for piece in self._format.pieces(items):
            self._groups.setdefault(piece.group, []).append(piece)
            self._bytes += piece.size

    def _forget(self) -> None:
        """Forget everything since the last commit: it comes again."""
        if self._staged:
            self._abandoned.append(self._folder)
        self._format.start()
        self._layout.start()
        self._begin()

    def _begin(self) -> None:
        """Begin to collect the next commit."""
        self._folders += 1
        self._folder = f"{STAGED}/{self._ledger.epoch:08}-{self._folders:08}"
        self._groups, self._bytes, self._staged = {}, 0, {}
        self._reached, self._is_open = None, False
        self._batches = self._rows = 0
        self._since = math.inf

    # --- commits

    def _stage(self) -> None:
        """Write what is in memory to hidden files."""
        groups, self._groups, self._bytes = self._groups, {}, 0
        jobs = []
        for group, pieces in groups.items():
            number = len(self._staged)
            origin, suffix = f"{self._commits + 1:010}-{number}", self._format.suffix(group)
            name = self._layout.path(group, pieces[0].first, pieces[-1].last, origin, suffix)
            self._staged[f"{self._folder}/{number}"] = name
            jobs.append((f"{self._folder}/{number}", group, pieces))
        self._in_parallel(self._write_staged, jobs)

    def _write_staged(self, job: tuple[str, Group, list[Piece]]) -> None:
        name, group, pieces = job
        self._store.write(name, self._format.content(group, pieces))
        reach("storage.writing")

    def _commit(self) -> None:
        reached = self._reached
        assert reached is not None
        with self._undone_by_retryable():
            self._stage()
            reach("sink.before_commit")
            state = self._state(reached)
            self._attempted[state.checkpoint] = self._batches
            self._ledger.save(state)
            reach("sink.committed")
            self._ledger.check()
            self._publish(state, state.staged)
            self._ledger.clean()
            while self._abandoned:
                self._store.remove_folder(self._abandoned[-1])
                self._abandoned.pop()
            if reached.loading is None:
                self._remove_expired(reached.resume.ts)
        self._durable = reached
        self._commits = state.commits
        self._attempted.clear()
        self._begin()

    def _remove_expired(self, ts: Ts) -> None:
        if folders := self._expiry.folders(ts):
            self._in_parallel(self._store.remove_folder, folders)
        self._expiry.done(ts)

    def _state(self, reached: Checkpoint) -> State:
        options = self._options
        return State(
            feed=self._feed,
            sink=self.name,
            layout=options.layout,
            format=options.file_format,
            commits=self._commits + 1,
            checkpoint=encode_checkpoint(reached),
            definitions=self._layout.definitions(),
            staged=self._staged,
            marks=self._layout.marks(reached.resume.ts if reached.loading is None else None),
        )

    def _publish(self, state: State, staged: Mapping[str, str]) -> None:
        """Make the files of a saved state visible. May be repeated until the staged ones are removed."""
        for name, content in state.definitions.items():
            self._store.write(name, content.encode())
        self._in_parallel(self._publish_staged, list(staged.items()))
        for name, content in state.marks.items():
            self._store.write(name, content.encode())
        reach("storage.published")
        for folder in {name.rpartition("/")[0] for name in staged}:
            self._store.remove_folder(folder)

    def _publish_staged(self, names: tuple[str, str]) -> None:
        reach("storage.publishing")
        self._store.publish(*names)

    def _in_parallel(self, function: Callable[[Any], None], arguments: Iterable[Any]) -> None:
        """Call a function with each argument; wait for all calls, then raise the first error."""
        if self._pool is None:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        calls = [self._pool.submit(function, argument) for argument in arguments]
        wait(calls)
        for call in calls:
            call.result()

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
        finally:
            self._waiting_since = None

    def _settle(self) -> None:
        """After Retryable, find out whether the last commit was saved, and finish it then."""
        if not self._is_doubtful:
            return
        self._ledger.check()
        state = self._ledger.latest()
        if state is not None and state.commits > self._commits:
            batches = self._attempted.get(state.checkpoint)
            if batches is None:
                raise InvariantViolated(f"{self.target} has a commit that its writer doesn't know")
            self._adopt(state)
            self._attempted.clear()
            self._skip = batches
        self._is_doubtful = False

    def _adopt(self, state: State) -> None:
        """Continue after a saved state. Its staged files are there until all are published."""
        options = self._options
        if (state.layout, state.format) != (options.layout, options.file_format):
            raise SinkError(
                f"{self.target} has files of format {state.format!r} in the layout {state.layout!r}: give "
                "these options, or another prefix"
            )
        left = set(self._store.names(STAGED))
        staged = {old: new for old, new in state.staged.items() if old.removeprefix(f"{STAGED}/") in left}
        self._publish(state, staged)
        self._durable = decode_checkpoint(state.checkpoint, self.target)[0]
        self._commits = state.commits

    def _remove_leftovers(self) -> None:
        """Remove the staged files of earlier writers, never those of a later one."""
        folders = {name.partition("/")[0] for name in self._store.names(STAGED)}
        for folder in folders:
            if int(folder.partition("-")[0]) < self._ledger.epoch:
                self._store.remove_folder(f"{STAGED}/{folder}")
