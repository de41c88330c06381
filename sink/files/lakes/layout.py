"""The layout of a lake: a table for each table of the source, one for schema changes, and one for versions.

shop.orders/date=2026-11-21/<first commit ts>-<last>-<origin>.parquet
ddl/…                               schema changes
versions/…                          the tables' versions by ts of the source
_tidemill/                          not for readers

A kind of lake keeps what belongs to a table beside its files, or in a catalog.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ....codec.checkpoint import decode_checkpoint
from ....errors import InvariantViolated
from ....events import Table, Ts, physical_ms
from ....failpoint import reach
from ..layout import DatedFolder, TablesLayout, date_of, file_name, folder_of
from ..ledger import State
from ..parquet_format import write_parquet
from ..store import Store, in_parallel
from .parquet import open_parquet

if TYPE_CHECKING:
    from .copies.log import CopyLog

DDL: Final = "ddl"
VERSIONS: Final = "versions"
_NAME: Final = re.compile(r"([^/]+)/(date=(\d{4}-\d\d-\d\d)/[^/]+)")
_VERSIONS: Final = pa.schema(
    [
        pa.field("commit_ts", pa.int64(), nullable=False),
        pa.field("start_ts", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)


class DataFile(NamedTuple):
    """A file that is in its place, but not in its table yet."""

    path: str
    """Relative to the table's folder."""
    date: str
    size: int
    metadata: pq.FileMetaData

    @property
    def schema(self) -> pa.Schema:
        return self.metadata.schema.to_arrow_schema()


class LakeTable(Protocol):
    """One table of a lake. Used by one thread at a time.

    Raises Retryable if the store or the catalog doesn't answer, and SinkError if the table can't be used.
    """

    def add(
        self, writer: str, number: int, made_ms: int, find_files: Callable[[], Iterable[DataFile]]
    ) -> int:
        """Add a commit's files, and return the table's version.

        Nothing happens if the table has this commit of the writer, or a later one: then `find_files` isn't
        called. `made_ms` is the time of the commit in Unix milliseconds.
        """
        ...


class LakeLayout(TablesLayout, ABC):
    """Folders of tables, which readers see by the tables' own metadata. Called only by its sink."""

    def __init__(self, store: Store, parallel: int) -> None:
        self._store: Final = store
        self._parallel: Final = parallel
        self._tables: dict[str, LakeTable] = {}
        """By folder."""

    def arranged(self, table: Table | None, rows: pa.Table) -> pa.Table:
        """Return the columns of a table's file as its lake wants them. Any thread; raises as LakeTable."""
        return self.completed(self.folder(table), rows)

    def completed(self, folder: str, rows: pa.Table) -> pa.Table:  # noqa: ARG002
        """As `arranged`, of a file in a folder."""
        return rows

    @abstractmethod
    def opened(self, folder: str) -> LakeTable:
        """Return the table in a folder, which may not exist yet. Any thread."""

    def folder(self, table: Table | None) -> str:
        return DDL if table is None else folder_of(table.schema, table.name)

    def dated(self, store: Store) -> Iterator[DatedFolder]:  # noqa: ARG002
        yield from ()

    @abstractmethod
    def log(self, folder: str) -> CopyLog:
        """Return the log of the copy in a folder, which may not exist yet. Any thread."""

    def announce(self, state: State) -> None:
        self.announce_by(self._announced, state)

    def announce_by(self, change: Callable[[str, State, Ts], dict[str, int]], state: State) -> None:
        """Make the changes of a saved state in their tables, and add the tables' versions to those by ts.

        `change` is called with the writer, the state and its ts, and returns the versions of the source's
        tables by folder.
        """
        writer = f"tidemill/{state.feed}/{state.sink}"
        ts = decode_checkpoint(state.checkpoint, self._store.name)[0].ts
        versions = change(writer, state, ts)
        if versions:
            self._tell_versions(writer, state.commits, ts, versions)

    def _announced(self, writer: str, state: State, ts: Ts) -> dict[str, int]:
        """Add the files of a saved state to their tables."""
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name in state.staged.values():
            names[_parts(name)[0]].append(name)
        versions: dict[str, int] = {}
        add = partial(self._add, writer, state.commits, ts, versions)
        in_parallel(self._parallel, add, list(names.items()))
        versions.pop(DDL, None)
        return versions

    def _add(
        self, writer: str, number: int, ts: Ts, versions: dict[str, int], folder: tuple[str, list[str]]
    ) -> None:
        name, paths = folder
        reach("lake.adding")
        files = partial(map, self._file, paths)
        versions[name] = self._table(name).add(writer, number, physical_ms(ts), files)

    def _tell_versions(self, writer: str, number: int, ts: Ts, versions: dict[str, int]) -> None:
        def files() -> list[DataFile]:
            rows = [
                {"commit_ts": ts, "start_ts": ts, "sequence": place, "table": name, "version": version}
                for place, (name, version) in enumerate(sorted(versions.items()))
            ]
            table = pa.Table.from_pylist(rows, _VERSIONS)
            content = BytesIO()
            write_parquet(self.completed(VERSIONS, table), content)
            name = f"{VERSIONS}/date={date_of(ts)}/{file_name(ts, ts, f'{number:010}', '.parquet')}"
            self._store.write(name, content.getvalue())
            return [self._file(name)]

        reach("lake.telling")
        self._table(VERSIONS).add(writer, number, physical_ms(ts), files)

    def _table(self, folder: str) -> LakeTable:
        if folder not in self._tables:
            self._tables[folder] = self.opened(folder)
        return self._tables[folder]

    def _file(self, name: str) -> DataFile:
        _, path, date = _parts(name)
        with self._store.open(name) as file:
            size = file.seek(0, 2)
            file.seek(0)
            return DataFile(path, date, size, open_parquet(file).metadata)


def _parts(name: str) -> tuple[str, str, str]:
    """Return a file's table folder, its path below it, and its date."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvariantViolated(f"{name} isn't a file of a lake's table")
    return match[1], match[2], match[3]
