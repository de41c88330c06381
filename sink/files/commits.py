"""The commits of one writer: each names its staged files, saves one state, and publishes the files.

A state has the checkpoint, the final names, and the journal's objects: it is the commit. After a crash before
it, staged files are removed; after it, they are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...errors import CheckpointError, InvariantViolated, SinkError
from ...events import Checkpoint, Ddl, Ts
from ...failpoint import reach
from .layout import DAY, check_unused, date_of, day_of
from .ledger import Ledger, State
from .staging import Staged
from .store import in_parallel
from .target import FilesTarget


class Commits:
    """The commits in a target, after `open`. Called only by its sink; raises as Store does.

    After Retryable a commit may have been saved, or may be later: `settle` must come before the next one.
    """

    def __init__(self, target: FilesTarget, ledger: Ledger, mark: str = "") -> None:
        """`mark` makes file names differ from those of other writers in the prefix."""
        self._target: Final = target
        self._store: Final = target.store
        self._ledger: Final = ledger
        self._mark: Final = mark
        self._folder: Final = f"{ledger.root}/staged"
        self._reset()

    def _reset(self) -> None:
        self.durable: Checkpoint | None = None
        """Checkpoint of the last commit."""
        self.number = 0
        """Number of the last commit."""
        self.journal: list[str] = []
        """Objects of the journal as of the last commit."""
        self._folders = 0
        self._abandoned: list[str] = []
        """Folders without use once a later commit is saved."""
        self._attempted: dict[str, int] = {}
        """Number of batches in commits that may be saved, by their checkpoints."""
        self._expired: int | None = None
        """Day of a checkpoint by which all expired folders are removed."""

    def open(self) -> State | None:
        """Fence off earlier writers, finish the last one's commit, and return its state; None if there is
        none."""
        self._reset()
        self._target.layout.start()
        state = self._ledger.claim()
        if state is not None:
            self._adopt(state)
            self._ledger.save(state)
            self._ledger.clean()
        return state

    def begin(self) -> State | None:
        """As `open`, by the only writer of a prefix: remove what earlier ones left over.

        Raises SinkError if the prefix is new and has somebody else's files.
        """
        target = self._target
        self._store.check()
        if self._ledger.latest() is None:
            check_unused(target.name, self._store.entries(), target.layout.own_names)
        state = self.open()
        self._remove_leftovers()
        return state

    def check(self) -> None:
        """Raise SinkError if another writer has taken over."""
        self._ledger.check()

    def folder(self) -> str:
        """Return an unused folder for staged files and an object of the journal."""
        self._folders += 1
        return f"{self._folder}/{self._ledger.epoch:08}-{self._folders:08}"

    def abandon(self, folder: str) -> None:
        """Forget everything since the last commit, also what was staged in a folder."""
        self._target.layout.start()
        self._abandoned.append(folder)

    def commit(
        self,
        reached: Checkpoint,
        staged: Iterable[Staged],
        journal: Sequence[str] = (),
        *,
        batches: int = 0,
        number: int | None = None,
    ) -> None:
        """Commit staged files and the objects of the journal, which replace those of the last commit.

        `batches` is the result of `settle` if the commit is saved after Retryable. `number` is above that of
        the last commit; by default the next one.
        """
        number = self.number + 1 if number is None else number
        names = self._named(staged, number)
        is_visible = not journal and reached.is_loaded
        layout, options = self._target.layout, self._target.options
        state = State(
            feed=self._ledger.feed,
            sink=self._ledger.sink,
            layout=options.layout,
            format=options.file_format,
            commits=number,
            checkpoint=encode_checkpoint(reached),
            definitions=layout.definitions(),
            staged=names,
            journal=list(journal),
            marks=layout.marks(reached.resume.ts if is_visible else None),
        )
        self._attempted[state.checkpoint] = batches
        reach("sink.before_commit")
        self._ledger.save(state)
        reach("sink.committed")
        self._ledger.check()
        self._publish(state, names)
        self._ledger.clean()
        self._abandon_journal(state)
        while self._abandoned:
            self._store.remove_folder(self._abandoned[-1])
            self._abandoned.pop()
        if is_visible:
            self._remove_expired(reached.resume.ts)
        self.durable, self.number = reached, number
        self._attempted.clear()

    def _named(self, staged: Iterable[Staged], number: int) -> dict[str, str]:
        """Return the final names of staged files, or those that stay, by their hidden ones."""
        names: dict[str, str] = {}
        for one in staged:
            if isinstance(one, Ddl):
                self._target.layout.note(one)
            else:
                origin = f"{self._mark}{number:010}-{len(names)}"
                name = self._target.layout.path(one.group, one.first, one.last, origin, one.suffix)
                names[one.name] = name or one.name
        return names

    def settle(self) -> int:
        """Find out after Retryable whether a commit was saved, and finish it then; return its batches."""
        self._ledger.check()
        state = self._ledger.latest()
        if state is None or state.commits <= self.number:
            return 0
        batches = self._attempted.get(state.checkpoint)
        if batches is None:
            raise InvariantViolated(f"{self._store.name} has a commit that its writer doesn't know")
        self._adopt(state)
        self._attempted.clear()
        return batches

    # --- a saved state

    def _publish(self, state: State, names: dict[str, str]) -> None:
        """Make files of a state visible. May be repeated until the staged ones are removed."""
        for name, content in state.definitions.items():
            self._store.write(name, content.encode())
        in_parallel(self._target.options.parallel, self._publish_staged, list(names.items()))
        try:
            self._target.layout.announce(state)
        except (CheckpointError, SinkError):
            self._ledger.check()  # what is wrong may be the work of a writer that has taken over
            raise
        for name, content in state.marks.items():
            self._store.write(name, content.encode())
        reach("storage.published")
        for folder in _folders(names):
            self._store.remove_folder(folder)

    def _publish_staged(self, names: tuple[str, str]) -> None:
        reach("storage.publishing")
        staged, name = names
        if name != staged:
            self._store.publish(staged, name)

    def _adopt(self, state: State) -> None:
        """Continue after a saved state. Its staged files are there until all are published."""
        options = self._target.options
        if (state.layout, state.format) != (options.layout, options.file_format):
            raise SinkError(
                f"{self._store.name} has files of format {state.format!r} in the layout {state.layout!r}: "
                "give these options, or another prefix"
            )
        left = {f"{self._folder}/{name}" for name in self._store.names(self._folder)}
        self._publish(state, {old: new for old, new in state.staged.items() if old in left})
        self.durable = decode_checkpoint(state.checkpoint, self._store.name)[0]
        self.number = state.commits
        self._abandon_journal(state)

    def _abandon_journal(self, state: State) -> None:
        """Keep the journal of a saved state only."""
        kept = _folders(state.journal)
        self._abandoned = sorted({*self._abandoned, *_folders(self.journal)} - kept)
        self.journal = state.journal

    def _remove_leftovers(self) -> None:
        """Remove the folders of earlier writers, never those of a later one."""
        kept = _folders(self.journal)
        for name in {name.partition("/")[0] for name in self._store.names(self._folder)}:
            folder = f"{self._folder}/{name}"
            if int(name.partition("-")[0]) < self._ledger.epoch and folder not in kept:
                self._store.remove_folder(folder)

    def _remove_expired(self, ts: Ts) -> None:
        """Remove the folders of days that are too long before the checkpoint's, once for each of its days."""
        days = self._target.options.file_expiration_days
        if days and day_of(ts) != self._expired:
            oldest = date_of(max(ts - days * DAY, 0))
            folders = {name for name, date in self._target.layout.dated(self._store) if date < oldest}
            in_parallel(self._target.options.parallel, self._store.remove_folder, sorted(folders))
            self._expired = day_of(ts)


def _folders(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}
