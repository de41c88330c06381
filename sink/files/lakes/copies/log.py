"""The protocol of a table's log: what the lake's format decides, beneath the rules that all copies share.

Copies are changed by it; tables of any kind get other files with the same rows (`upkeep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from .....events import Table

if TYPE_CHECKING:
    from .alteration import Alteration
    from .files import CopyFiles

WRITERS: Final = "tidemill/"
"""Begins the names of writers, under which tables have the numbers of their commits."""
TABLE: Final = "tidemill.table"
"""Property of a table: the source's definition as JSON. A table without it was dropped."""


def defined(properties: Mapping[str, str]) -> Table | None:
    """Return the source's definition of the table with these properties."""
    text = properties.get(TABLE)
    return None if text is None else msgspec.json.decode(text, type=Table)


class CopyFile(NamedTuple):
    """A data file of a table."""

    path: str
    """Its key in the log."""
    name: str
    """In the store."""
    size: int
    rows: int | None
    """Number of rows, deleted ones too; None if the log doesn't say."""
    metadata: pq.FileMetaData | None = None
    """Parquet's metadata, for a file that isn't in the log yet."""
    entry: Any = None
    """The description of a file in a log, for that format."""
    partition: str = ""
    """Its partition, for people; empty in a table without partitions."""
    deleted: int = 0
    """Number of its rows that are deleted, as the log says."""
    like: Any = None
    """`entry` of a file of the same partition and order, for one that isn't in the log yet."""


class CopyColumns(Protocol):
    """The columns of a table as the lake has them. Immutable."""

    def altered(self, table: Table, origins: Mapping[str, str] | None = None) -> CopyColumns:
        """Return the columns of another definition. `origins` are the present names by those in `table`;
        None: they are the same."""
        ...

    def keep_files(self, before: Table, change: Alteration) -> bool:
        """Return True if files from before a statement have the rows after it, read by the new columns."""
        ...

    def names(self, schema: pa.Schema) -> dict[str, str]:
        """Return the columns of a file by their names in the table."""
        ...

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of a copy as a new file has them."""
        ...


class Snapshot(Protocol):
    """A table as of a version; it isn't changed later."""

    @property
    def exists(self) -> bool: ...

    @property
    def version(self) -> int:
        """-1 if there is none."""
        ...

    @property
    def definition(self) -> Table | None:
        """The source's table; None if it was dropped, or isn't there."""
        ...

    @property
    def columns(self) -> CopyColumns: ...

    @property
    def shape(self) -> object:
        """Columns and partitions, equal as long as they are the same."""
        ...

    @property
    def column_names(self) -> list[str]: ...

    @property
    def writers(self) -> dict[str, int]:
        """Number of the last commit of each writer of feeds."""
        ...

    @property
    def files(self) -> Mapping[str, CopyFile]:
        """The data files by path."""
        ...


class CopyCommit(NamedTuple):
    """The table after a commit, and the commit's number and time."""

    writer: str
    number: int
    made_ms: int
    """Time of the commit in Unix milliseconds."""
    table: Table | None
    columns: CopyColumns
    files: CopyFiles


class CopyLog(Protocol):
    """The log of the table in a folder. Used by one thread at a time.

    Every method raises as Store does, and SinkError if the table can't be used.
    """

    @property
    def name(self) -> str:
        """For errors."""
        ...

    def refusal(self, table: Table) -> str:
        """Return why a table of the source can't be copied, as a sentence; empty if it can."""
        ...

    def latest(self) -> Snapshot:
        """Return the table as it is now."""
        ...

    def number(self, snapshot: Snapshot, writer: str) -> int:
        """Return the number of the writer's last commit. Raises SinkError if another program made the
        table."""
        ...

    def vector(self, file: CopyFile) -> BitMap64:
        """Return the numbers of the deleted rows of a file that is in the log."""
        ...

    def add(self, base: Snapshot, commit: CopyCommit) -> int | None:
        """Add the commit after a snapshot, and return its version; None if another program's commit came
        first.

        After Retryable it may have been added, or may be later.
        """
        ...

    def rewrite(self, base: Snapshot, files: CopyFiles, made_ms: int) -> int | None:
        """As `add`, of other files with the same rows: writers' numbers, columns and definition stay.
        `made_ms` is the time in Unix milliseconds."""
        ...
