"""An archive's directory: Parquet files by table and date, which readers see only when complete.

`names` describes it; its hidden folder has the journal, and files in the making. New files are written in a
folder there whose name ends in ".new". Once all of them are durable it is renamed, without that suffix, and
they are moved to the tables' folders. After a crash, a ".new" folder is removed, and the remaining files of a
renamed one are moved. The names of the sink's own folders end in the journal's length after them: if the
checkpoint's length is lower, they are removed too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ...errors import SinkError
from ...events import Ts
from ...store.disk import make_folder, sync
from .names import date_of, file_name
from .parquet_columns import FOLDER
from .parquet_format import write_parquet

NEW: Final = ".new"
SUFFIX: Final = ".parquet"


class File(Struct, frozen=True, order=True):
    """A file of the archive; files compare in the order of their changes."""

    first: Ts
    last: Ts
    path: Path

    @property
    def date(self) -> str:
        return self.path.parent.name


def files(directory: Path, folder: str) -> list[File]:
    """Return a table's files in the order of their changes. Raises SinkError for an unknown file name."""
    return sorted(_file(path) for path in (directory / folder).glob(f"date=*/*{SUFFIX}"))


def folders(directory: Path) -> list[str]:
    """Return the folders of the tables and of schema changes."""
    return sorted(path.name for path in directory.glob("table=*"))


def _file(path: Path) -> File:
    first, _, rest = path.name.partition("-")
    last = rest.partition("-")[0]
    if not (first.isdecimal() and last.isdecimal()):
        raise SinkError(f"{path} is none of the archive's files: remove it")
    return File(int(first), int(last), path)


class Making:
    """A folder for `publish`, while files are written to it."""

    def __init__(self, hidden: Path, origin: str) -> None:
        """`origin` makes the names of the files unique in the archive."""
        self._path = hidden / f"{origin}{NEW}"
        self._path.mkdir()
        self._origin = origin
        self._numbers = count()

    def write(self, batches: Iterable[tuple[bytes, pa.RecordBatch]], most_bytes: int) -> None:
        """Write batches, which come with their schemas, to Parquet files.

        Batches of one schema and day make one file, or several if all tables together exceed `most_bytes`,
        the limit of memory.
        """
        for group in _groups(batches, most_bytes):
            for (_, date), its in group.items():
                table = pa.Table.from_batches(its)
                folder = table.schema.metadata[FOLDER].decode()
                ts = table.column("commit_ts")
                origin = f"{self._origin}-{next(self._numbers)}"
                name = file_name(ts[0].as_py(), ts[-1].as_py(), origin, SUFFIX)
                write_file(self._path / folder / f"date={date}" / name, table)

    def discard(self) -> None:
        discard(self._path)

    def commit(self, name: str) -> Path:
        """Make the files durable in a folder of that name."""
        return commit(self._path, name)


def _groups(
    batches: Iterable[tuple[bytes, pa.RecordBatch]], most_bytes: int
) -> Iterator[dict[tuple[bytes, str], list[pa.RecordBatch]]]:
    """Yield batches by schema and day, in groups of up to `most_bytes`."""
    group: dict[tuple[bytes, str], list[pa.RecordBatch]] = {}
    size = 0
    for schema, batch in batches:
        group.setdefault((schema, date_of(batch.column(0)[0].as_py())), []).append(batch)
        size += batch.nbytes
        if size >= most_bytes:
            yield group
            group, size = {}, 0
    yield group


def write_file(path: Path, table: pa.Table) -> None:
    """Write a durable Parquet file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_parquet(table, file)
        file.flush()
        os.fsync(file.fileno())


def commit(making: Path, name: str = "") -> Path:
    """Rename a folder after its files are durable, by default to its name without ".new". Returns the folder
    for `publish`."""
    for path in making.rglob("*/"):
        sync(path)
    sync(making)
    made = making.with_name(name or making.name.removesuffix(NEW))
    making.replace(made)
    sync(made.parent)
    return made


def publish(made: Path, directory: Path) -> None:
    """Move the folder's remaining files to the tables' folders. Safe to repeat after a crash."""
    for path in sorted(made.rglob(f"*{SUFFIX}")):
        target = directory / path.relative_to(made)
        make_folder(target.parent, directory)
        path.replace(target)
    for folder in made.glob("*/*/"):
        sync(directory / folder.relative_to(made))


def discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def read_schema(path: Path) -> Any:
    """Return a file's Arrow schema. Raises SinkError for an incomplete file."""
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise SinkError(f"{path} can't be read as Parquet: {error}") from error
