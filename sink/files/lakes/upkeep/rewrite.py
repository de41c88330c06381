"""Files of a table become other files with the same rows, in commits that a feed's may come between.

A group of files becomes one. If rows of the old files are deleted while the new one is written, they are
deleted in the new one by the commit that puts it in their place. So a feed never waits, and a rewriting is
in vain only if the table was altered, or if a file of the group was replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from .....errors import Retryable
from .....failpoint import reach
from ...parquet_columns import TABLE
from ...store import Store, in_parallel
from ..copies.files import CopyFiles
from ..copies.log import CopyFile, CopyLog, Snapshot
from ..parquet import open_parquet
from .join import ORDER, Executor, Join, NewFile, Origin, join
from .table import ATTEMPTS

_MOST_BYTES: Final = 1 << 30
"""Bytes of rows in memory: limit of a group, before compression."""
_OF_COMMIT: Final = 1 << 30
"""Bytes of new files at which they are committed."""
_THREADS: Final = 8
"""Number of files whose ends are read at once."""


class Group(NamedTuple):
    """Files of one partition with the same columns and definition."""

    files: tuple[CopyFile, ...]
    schema: pa.Schema


@dataclass
class _Joined:
    """A new file that isn't committed, and the files in whose place it comes."""

    file: CopyFile
    origins: tuple[CopyFile, ...]
    gone: dict[str, BitMap64]
    """Rows of each origin that aren't in the new file, by path."""
    is_sorted: bool
    """True if its rows have another order than those of its origins."""
    later: dict[str, tuple[object, BitMap64]] = field(default_factory=dict)
    """Rows of origins that were deleted by the last look, by path, with the entry that says so."""

    def fits(self, log: CopyLog, base: Snapshot) -> bool:
        """Look which rows were deleted since; return False if the new file can't take the place."""
        for origin in self.origins:
            file = base.files.get(origin.path)
            if file is None:
                return False
            if file.entry != origin.entry:
                self.later[origin.path] = file.entry, log.vector(file)
        return not (self.is_sorted and self.later)

    def deleted(self) -> BitMap64:
        """Return the numbers of rows of the new file that were deleted in the old ones meanwhile."""
        found, first = BitMap64(), 0
        for origin in self.origins:
            gone = self.gone[origin.path]
            _, now = self.later.get(origin.path, (None, gone))
            found.update(first + row - gone.rank(row) for row in now - gone)
            first += (origin.rows or 0) - len(gone)
        return found


class Rewriting:
    """Joins files of one table. Raises as Store does, and SinkError if the table can't be used."""

    def __init__(
        self,
        store: Store,
        folder: str,
        log: CopyLog,
        target_bytes: int,
        now_ms: int,
        execute: Executor | None = None,
    ) -> None:
        """`now_ms` is the time of the commits in Unix milliseconds. Files are written by `execute`; None: in
        this process."""
        self._store: Final = store
        self._folder: Final = folder
        self._log: Final = log
        self._target: Final = target_bytes
        self._now_ms: Final = now_ms
        self._execute: Final[Executor] = execute or partial(map, partial(join, store))

    def run(self, is_wanted: Callable[[CopyFile], bool]) -> str:
        """Join the files for which `is_wanted` returns True; return why some couldn't be, empty if all were.

        A single file is written again only if it has deleted rows.
        """
        base = self._log.latest()
        is_history = {"before", "after", *ORDER} <= {*base.column_names}
        groups = list(self._groups(base, [file for file in base.files.values() if is_wanted(file)]))
        tasks = [self._task(group, is_history=is_history) for group in groups]
        waiting: list[_Joined] = []
        left = 0
        for group, task, made in zip(groups, tasks, self._execute(tasks), strict=True):
            reach("upkeep.written")
            waiting.append(_joined(group, task, made))
            if sum(one.file.size for one in waiting) >= _OF_COMMIT:
                left += self._commit(base, waiting)
                waiting = []
        left += self._commit(base, waiting)
        return f"{left} groups of files were changed meanwhile: plan again" if left else ""

    # --- groups

    def _groups(self, base: Snapshot, files: Sequence[CopyFile]) -> Iterator[Group]:
        alike: defaultdict[tuple[str, bytes], list[tuple[CopyFile, int]]] = defaultdict(list)
        schemas: dict[bytes, pa.Schema] = {}
        for file, metadata in self._ends(files):
            schema = _columns(base, metadata.schema.to_arrow_schema())
            kind = schema.serialize().to_pybytes()
            schemas[kind] = schema
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            size = sum(one.total_byte_size for one in groups)
            alike[file.partition, kind].append((file._replace(rows=metadata.num_rows), size))
        for (_, kind), own in alike.items():
            for group in self._packed(sorted(own, key=lambda one: one[0].path)):
                if len(group) > 1 or group[0].deleted:
                    yield Group(tuple(group), schemas[kind])

    def _ends(self, files: Sequence[CopyFile]) -> Iterable[tuple[CopyFile, pq.FileMetaData]]:
        """Return each file with Parquet's metadata, in their order."""
        found: dict[str, pq.FileMetaData] = {}
        lock = Lock()

        def read(file: CopyFile) -> None:
            with self._store.open(file.name) as content:
                metadata = open_parquet(content).metadata
            with lock:
                found[file.path] = metadata

        in_parallel(_THREADS, read, files)
        return [(file, found[file.path]) for file in files]

    def _packed(self, files: Sequence[tuple[CopyFile, int]]) -> Iterator[list[CopyFile]]:
        """Yield groups of neighbours that make files of about the target size."""
        group: list[CopyFile] = []
        stored = plain = 0
        for file, size in files:
            if group and (stored + file.size > self._target or plain + size > _MOST_BYTES):
                yield group
                group, stored, plain = [], 0, 0
            group.append(file)
            stored, plain = stored + file.size, plain + size
        if group:
            yield group

    def _task(self, group: Group, *, is_history: bool) -> Join:
        like = group.files[0]
        folder, path = (text.rpartition("/")[0] for text in (like.name, like.path))
        origins = [Origin(file.name, self._log.vector(file).copy()) for file in group.files]
        return Join(tuple(origins), folder, path, group.schema, is_history)

    # --- the commit

    def _commit(self, first: Snapshot, joined: Sequence[_Joined]) -> int:
        """Put new files in the place of others; return how many couldn't be, whose files are removed."""
        for _ in range(ATTEMPTS if joined else 0):
            base = self._log.latest()
            fitting = [one for one in joined if base.shape == first.shape and one.fits(self._log, base)]
            files = CopyFiles(self._store, self._folder, self._log, base.files)
            for one in fitting:
                files.join([origin.path for origin in one.origins], one.file, one.deleted())
            files.remove_emptied()
            # After Retryable the commit may be made later: then the new files stay, and `vacuum` finds them.
            if not fitting or self._log.rewrite(base, files, self._now_ms) is not None:
                reach("upkeep.committed")
                for one in joined:
                    if one not in fitting:
                        self._store.remove(one.file.name)
                return len(joined) - len(fitting)
        if joined:
            raise Retryable(f"{self._log.name}: other programs change the table all the time", 1.0)
        return 0


def _joined(group: Group, task: Join, made: NewFile) -> _Joined:
    like = group.files[0]
    gone = {file.path: origin.gone for file, origin in zip(group.files, task.origins, strict=True)}
    file = made.file._replace(partition=like.partition, like=like.entry)
    return _Joined(file, group.files, gone, made.is_sorted)


def _columns(base: Snapshot, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a file that the table still has, with nothing about them but the source's
    definition of the table."""
    kept = {*base.columns.names(schema).values()}
    text = (schema.metadata or {}).get(TABLE)
    return pa.schema([one for one in schema if one.name in kept], None if text is None else {TABLE: text})
