"""A history read in the order of its commits: schema changes, and slices of changes between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import CheckpointError, SinkError
from .....events import Ddl, Table, Ts
from ...parquet_columns import TABLE
from ...schema_changes import ddl_of
from ...store import Store
from ..copies.columns import is_same_layout
from ..copies.log import CopyFile
from ..layout import DDL, VERSIONS
from ..parquet import open_parquet, read_rows
from .join import ORDER
from .lake import Lake

_NAME: Final = re.compile(r"(\d{20})-(\d{20})-[^/]+")
_READ: Final = (*ORDER, "op", "snapshot", "before", "after")


class HistoryFile(NamedTuple):
    """A file of changes, with the least and the greatest commit ts of its rows."""

    folder: str
    name: str
    first: Ts
    last: Ts
    rows: int


class Changes(NamedTuple):
    """Changes of one table with one definition, in order."""

    table: Table
    rows: pa.Table

    @property
    def span(self) -> tuple[Ts, Ts]:
        """Commit ts of the first and of the last change."""
        commits = self.rows["commit_ts"]
        return commits[0].as_py(), commits[len(commits) - 1].as_py()


class History:
    """The changes of a lake as of when this object was made. Raises as Store does, and SinkError for a lake
    that is no complete history."""

    def __init__(self, lake: Lake) -> None:
        self._store: Final[Store] = lake.store
        folders = lake.folders()
        if not {DDL, VERSIONS} & {*folders}:
            raise SinkError(f"{lake.url} is no history that a feed wrote: it has no table `{DDL}`")
        self.end: Final[Ts] = _end(lake)
        """All changes and schema changes up to it are in their tables."""
        of_source = [folder for folder in folders if folder not in (DDL, VERSIONS)]
        if wrong := [folder for folder in of_source if not _is_history(lake, folder)]:
            raise SinkError(f'{lake.url}: {wrong[0]} has no changes: give a lake of mode = "history"')
        self._files: Final = sorted(
            (file for folder in of_source for file in _files(lake, folder)), key=lambda file: file.last
        )
        self._statements: Final = list(self._read_statements(lake)) if DDL in folders else []

    def statements(self, after: Ts) -> list[Ddl]:
        """Return the schema changes with a greater commit ts, up to the end, in order."""
        return [ddl for ddl in self._statements if after < ddl.commit_ts <= self.end]

    def cuts(self, after: Ts, until: Ts, most_rows: int) -> Iterator[Ts]:
        """Yield the ends of slices of about `most_rows` changes, the last of which is `until`."""
        rows = 0
        for file in self._files:
            if after < file.last < until:
                rows += file.rows
                if rows >= most_rows:
                    yield file.last
                    rows = 0
        yield until

    def changes(self, after: Ts, until: Ts) -> Iterator[Changes]:
        """Yield the changes of each table with a commit ts above `after`, up to `until`."""
        by_folder: dict[str, list[HistoryFile]] = {}
        for file in self._files:
            if file.last > after and file.first <= until:
                by_folder.setdefault(file.folder, []).append(file)
        for folder, files in by_folder.items():
            parts = [self._read(file, after, until) for file in files]
            if parts := [part for part in parts if len(part.rows)]:
                yield _together(folder, parts)

    def _read(self, file: HistoryFile, after: Ts, until: Ts) -> Changes:
        content = self._content(file.name)
        parquet = open_parquet(BytesIO(content))
        text = (parquet.schema_arrow.metadata or {}).get(TABLE)
        if text is None:
            raise SinkError(
                f"{self._store.name}/{file.name} lacks the source's definition of the table, as another "
                'program joined files: load the copy by a feed of mode = "copy", and join files by '
                "`tidemill compact`"
            )
        commits = pc.field("commit_ts")
        rows = read_rows(parquet, _READ).filter((commits > after) & (commits <= until))
        return Changes(msgspec.json.decode(text, type=Table), rows)

    def _content(self, name: str) -> bytes:
        content = self._store.read(name)
        if content is None:
            raise CheckpointError(
                f"{self._store.name}/{name} is missing: if it was removed meanwhile, repeat the command; "
                "else put back a copy of it"
            )
        return content

    def _read_statements(self, lake: Lake) -> Iterator[Ddl]:
        rows = []
        for file in lake.table(DDL).log.latest().files.values():
            rows += read_rows(open_parquet(BytesIO(self._content(file.name)))).to_pylist()
        for row in sorted(rows, key=lambda one: (one["commit_ts"], one["start_ts"], one["sequence"])):
            yield ddl_of(row, row["source"])


def _end(lake: Lake) -> Ts:
    checkpoint = lake.checkpoint()
    told = 0
    if lake.table(VERSIONS).exists():
        told = max((file.last for file in _files(lake, VERSIONS)), default=0)
    if checkpoint is None:
        return told
    # `versions` tells of no schema change without rows after it. A table that lags has rows of before.
    return min([max(told, checkpoint.ts), *[table.ts for table in checkpoint.tables.values()]])


def _files(lake: Lake, folder: str) -> Iterator[HistoryFile]:
    for file in lake.table(folder).log.latest().files.values():
        if file.deleted:
            raise SinkError(
                f"{lake.url}: another program deleted changes of {folder}: load the copy by a feed of "
                'mode = "copy"'
            )
        match = _NAME.fullmatch(file.name.rpartition("/")[2])
        if match is not None and file.rows is not None:
            yield HistoryFile(folder, file.name, int(match[1]), int(match[2]), file.rows)
        elif file.rows != 0:
            yield _read_span(lake.store, folder, file)


def _read_span(store: Store, folder: str, file: CopyFile) -> HistoryFile:
    """Describe a file of another program."""
    with store.open(file.name) as content:
        commits = read_rows(open_parquet(content), ["commit_ts"])["commit_ts"]
    ends = pc.min_max(commits).as_py()
    return HistoryFile(folder, file.name, ends["min"] or 0, ends["max"] or 0, len(commits))


def _is_history(lake: Lake, folder: str) -> bool:
    return {*_READ} <= {*lake.table(folder).log.latest().column_names}


def _together(folder: str, parts: Sequence[Changes]) -> Changes:
    """Return the changes of several files in their order."""
    table = parts[-1].table
    for part in parts:
        if not is_same_layout(part.table, table):
            raise SinkError(
                f"{folder}: the columns changed without a statement in `ddl`: load the copy by a feed of "
                'mode = "copy"'
            )
    rows = pa.concat_tables([_plain(part.rows) for part in parts])
    rows = rows.sort_by([(name, "ascending") for name in ORDER])
    return Changes(table, rows.replace_schema_metadata({TABLE: msgspec.json.encode(table)}))


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows without what the lake says about columns, such as their ids."""
    return rows.cast(pa.schema([_plain_field(field) for field in rows.schema]))


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain_field(inner) for inner in kind])
    return pa.field(field.name, kind, field.nullable)
