"""Rows on their way into files: pieces in memory, then files under hidden names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from ...events import Ddl, Item, Ts
from ...failpoint import reach
from .formats import Group, Piece
from .store import in_parallel
from .target import FilesTarget


class StagedFile(Struct, frozen=True):
    """A file under a hidden name, and what its final name is made of."""

    name: str
    group: Group
    first: Ts
    last: Ts
    suffix: str


Staged: TypeAlias = StagedFile | Ddl
"""A staged file, or a schema change between those before and after it, for a layout without statements."""


class _Job(NamedTuple):
    file: StagedFile
    pieces: list[Piece]


class Staging:
    """Collects the pieces of a commit, and writes them to hidden files. Called only by its sink.

    Raises SinkError for a value that the format can't hold, and as Store does; after Retryable, `stage` may
    be called again.
    """

    def __init__(self, target: FilesTarget) -> None:
        self._target: Final = target
        self.start("")

    def start(self, folder: str) -> None:
        """Forget everything, also of unfinished transactions, and stage files in an unused folder from now
        on."""
        self._target.format.start()
        self._parts: list[dict[Group, list[Piece]] | Ddl] = [{}]
        self.bytes = 0
        """Size of the pieces in memory."""
        self.move(folder)

    def move(self, folder: str) -> None:
        """Stage files in another unused folder from now on; those that are staged belong to a commit."""
        self._folder = folder
        self._files = 0
        self.staged: list[Staged] = []

    @property
    def is_staged(self) -> bool:
        """True if there are staged files."""
        return self._files > 0

    @property
    def has_statement(self) -> bool:
        """True if there is a schema change that isn't in a file."""
        return any(isinstance(part, Ddl) for part in (*self._parts, *self.staged))

    def collect(self, items: Sequence[Item]) -> list[Piece]:
        """Convert items, which are transactions or a single Ddl; return their pieces."""
        if items and isinstance(items[0], Ddl) and not self._target.layout.has_statements:
            self._parts += items[0], {}  # earlier rows belong to the definition before it
            return []
        pieces = list(self._target.format.pieces(items))
        self.add(pieces)
        return pieces

    def add(self, pieces: Iterable[Piece]) -> None:
        groups = self._parts[-1]
        assert not isinstance(groups, Ddl)
        for piece in pieces:
            groups.setdefault(piece.group, []).append(piece)
            self.bytes += piece.size

    def pieces(self) -> list[Piece]:
        """Return the pieces in memory, in order within their groups."""
        groups = [part for part in self._parts if not isinstance(part, Ddl)]
        return [piece for part in groups for pieces in part.values() for piece in pieces]

    def stage(self) -> None:
        """Write what is in memory to hidden files."""
        jobs: list[_Job] = []
        staged: list[Staged] = []
        for part in self._parts:
            if isinstance(part, Ddl):
                staged.append(part)
            else:
                made = [
                    self._job(*group, self._files + len(jobs) + n) for n, group in enumerate(part.items())
                ]
                jobs += made
                staged += [job.file for job in made]
        in_parallel(self._target.options.parallel, self._write, jobs)
        self.staged += staged
        self._files += len(jobs)
        self._parts, self.bytes = [{}], 0

    def _job(self, group: Group, pieces: list[Piece], number: int) -> _Job:
        suffix = self._target.format.suffix(group)
        name = f"{self._folder}/{number}"
        return _Job(StagedFile(name, group, pieces[0].first, pieces[-1].last, suffix), pieces)

    def _write(self, job: _Job) -> None:
        content = self._target.format.content(job.file.group, job.pieces)
        self._target.store.write(job.file.name, content)
        reach("storage.writing")
