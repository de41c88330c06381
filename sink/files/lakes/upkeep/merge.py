"""The present rows of a history, kept in a lake of copies: incremental, and each change once.

A merge is a writer of the target as a feed in mode = "copy" is: it stages slices of the history's changes,
saves the position that it has reached together with their names, and has them applied by the same code. So a
merge that was killed goes on where it was, and two of them can't both write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa
from msgspec import Struct

from .....actors import Clock
from .....errors import NotReproducible, SinkError
from .....events import Checkpoint, CreateTable, Ddl, DropTable, Table, Ts
from .....failpoint import reach
from ...commits import Commits
from ...ledger import Ledger
from ...parquet_format import write_parquet
from ...staging import Staged, StagedFile
from ...target import FilesTarget
from ..copies.columns import keyless
from .history import Changes, History
from .lake import Lake

FEED: Final = "merge"
"""Name of the feed that owns a target."""
SINK: Final = "copy"
ROWS: Final = 1_000_000
"""Number of changes of a commit: they are in memory, compressed and not."""


class MergeReport(Struct, frozen=True):
    """Result of a merge."""

    lake: str
    target: str
    from_ts: Ts
    """The position of the target before; 0: it was new."""
    to_ts: Ts
    """Its position now: it has all changes up to it."""
    commits: int
    changes: int
    statements: int
    seconds: float
    left: list[str]
    """Sentences about tables that are left out."""

    @property
    def lines(self) -> list[str]:
        """Sentences for people."""
        did = (
            f"{self.target}: {self.changes:,} changes and {self.statements:,} schema changes in "
            f"{self.commits:,} commits, {self.seconds:.1f} s: at ts {self.to_ts}, and {self.from_ts} before"
        )
        return [did, *self.left]


class _Position(NamedTuple):
    """All changes and schema changes up to a ts, and some of the schema changes that are next.

    Several may have one ts, and a commit has one. Changes with the ts of a schema change come after it.
    """

    ts: Ts
    statements: int


@dataclass
class _Work:
    """Counts of a merge."""

    commits: int = 0
    changes: int = 0
    statements: int = 0
    left: dict[str, str] = field(default_factory=dict)
    """Why a table is left out, by full name."""


class Merge:
    """The merge of one history into one target. Used once.

    Raises as Store does; SinkError if the target belongs to somebody else, for a change that doesn't fit to
    it, and for one whose effect only the source knows.
    """

    def __init__(self, lake: Lake, target: FilesTarget, clock: Clock, rows: int = ROWS) -> None:
        self._lake: Final = lake
        self._target: Final = target
        self._clock: Final = clock
        self._rows: Final = rows
        self._commits: Final = Commits(target, Ledger(target.store, FEED, SINK))
        self._work: Final = _Work()

    def run(self) -> MergeReport:
        """Apply all changes that the history has now and the target hasn't. Whatever is applied when it fails
        stays, and the next merge begins after it."""
        began = self._clock.now()
        try:
            position = start = self._open()
            history = History(self._lake)
            self._note_left(history, start)
            for following, ddl in self._steps(history, start):
                self._step(history, position, following, ddl)
                position = following
        finally:
            self._target.layout.close()
        work = self._work
        left = [*work.left.values()]
        seconds = self._clock.now() - began
        return MergeReport(
            self._lake.url,
            self._target.name,
            start.ts,
            position.ts,
            work.commits,
            work.changes,
            work.statements,
            seconds,
            left,
        )

    def _open(self) -> _Position:
        """Return the position of the target, finish what was interrupted, and fence off other merges."""
        target = self._target
        self._commits.begin()
        durable = self._commits.durable
        if durable is None:
            return _Position(0, 0)
        if durable.source != self._lake.store.name:
            raise SinkError(
                f"{target.name} has the rows of the history {durable.source}: give another target"
            )
        return _Position(durable.ts, int(durable.position or 0))

    def _note_left(self, history: History, start: _Position) -> None:
        """Note the tables that were left out before."""
        later = len(history.statements(start.ts)) - start.statements
        for ddl in history.statements(0)[: -later or None]:
            self._is_left(ddl)

    def _steps(self, history: History, position: _Position) -> Iterator[tuple[_Position, Ddl | None]]:
        """Yield the positions after commits: of the changes before it, or of a statement."""
        for ddl in history.statements(position.ts)[position.statements :]:
            for cut in self._cuts(history, position, ddl.commit_ts - 1):
                position = cut
                yield cut, None
            position = _Position(position.ts, position.statements + 1)
            yield position, ddl
        for cut in self._cuts(history, position, history.end):
            yield cut, None

    def _cuts(self, history: History, position: _Position, until: Ts) -> Iterator[_Position]:
        if until > position.ts:
            for cut in history.cuts(position.ts, until, self._rows):
                yield _Position(cut, 0)

    def _step(self, history: History, before: _Position, after: _Position, ddl: Ddl | None) -> None:
        staged: list[Staged] = []
        folder = self._commits.folder()
        if ddl is None:
            for changes in history.changes(before.ts, after.ts):
                if not self._is_keyless(changes.table):
                    staged.append(self._stage(f"{folder}/{len(staged)}", changes))
                    self._work.changes += len(changes.rows)
        elif not self._is_left(ddl):
            self._check(ddl)
            staged.append(ddl)
            self._work.statements += 1
        if staged or after.ts == history.end:
            position = str(after.statements) if after.statements else ""
            self._commits.commit(Checkpoint(after.ts, position, None, self._lake.store.name), staged)
            self._work.commits += 1
            reach("merge.committed")

    def _check(self, ddl: Ddl) -> None:
        try:
            self._target.layout.check(ddl)
        except NotReproducible as error:
            raise SinkError(
                f"{error}: a history doesn't have the rows after it: load the copy by a feed of "
                'mode = "copy"',
                ddl.full_name,
            ) from error

    def _is_left(self, ddl: Ddl) -> bool:
        """Return True for a statement about a table that is left out."""
        name = ddl.full_name
        match ddl.actions:
            case (CreateTable(table), *_):
                self._work.left.pop(name, None)
                return self._is_keyless(table)
            case (DropTable(), *_):
                return self._work.left.pop(name, None) is not None
            case ():
                return True
        return name in self._work.left

    def _is_keyless(self, table: Table) -> bool:
        if not table.key:
            self._work.left[table.full_name] = keyless(table)
        return not table.key

    def _stage(self, name: str, changes: Changes) -> StagedFile:
        buffer = pa.BufferOutputStream()
        write_parquet(changes.rows, buffer)
        self._target.store.write(name, buffer.getvalue())
        reach("merge.staged")
        first, last = changes.span
        return StagedFile(name, (changes.table, 0, ""), first, last, ".parquet")
