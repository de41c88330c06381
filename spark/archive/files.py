"""The files of an archive's directory, and their exchange for others.

New files are written in a hidden folder whose name ends in ".new". Once all of them are durable it is
renamed, without that suffix, and they are moved to the tables' folders. After a crash, a ".new" folder is
removed, and the remaining files of a renamed one are moved.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ...errors import SinkError
from ...events import Ts
from ...sink.files.directory import Directory
from ...sink.files.layout import HIDDEN
from ...sink.files.ledger import latest_state
from ...sink.files.parquet_format import write_parquet
from ...store.disk import make_folder, sync

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


class _Pending(NamedTuple):
    """Commits of all writers, and the files of them that are to appear."""

    commits: tuple[int, ...]
    names: frozenset[str]


def files(directory: Path, folder: str) -> list[File]:
    """Return a table's files in the order of their changes. Raises SinkError for an unknown file name."""
    return sorted(_file(path) for path in (directory / folder).glob(f"date=*/*{SUFFIX}"))


def files_and_pending(directory: Path, folder: str) -> tuple[list[File], list[File]]:
    """Return a table's files, and those of the last commits that are to appear, as of one moment."""
    pending = _pending(directory)
    while True:
        complete = files(directory, folder)
        before, pending = pending, _pending(directory)
        if pending == before:
            its = [directory / name for name in pending.names if name.startswith(f"{folder}/")]
            return complete, [_file(path) for path in its]


def _pending(directory: Path) -> _Pending:
    roots = [HIDDEN, *[f"{HIDDEN}/{path.name}" for path in sorted((directory / HIDDEN).glob("spark-*"))]]
    states = [state for root in roots if (state := latest_state(Directory(directory), root)) is not None]
    staged = [names for state in states for names in state.staged.items()]
    names = [name for hidden, name in staged if (directory / hidden).exists()]
    return _Pending(tuple([state.commits for state in states]), frozenset(names))


def folders(directory: Path) -> list[str]:
    """Return the folders of the tables and of schema changes."""
    return sorted(path.name for path in directory.glob("table=*"))


def _file(path: Path) -> File:
    first, _, rest = path.name.partition("-")
    last = rest.partition("-")[0]
    if not (first.isdecimal() and last.isdecimal()):
        raise SinkError(f"{path} is none of the archive's files: remove it")
    return File(int(first), int(last), path)


def write_file(path: Path, table: pa.Table) -> None:
    """Write a durable Parquet file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_parquet(table, file)
        file.flush()
        os.fsync(file.fileno())


def commit(making: Path) -> Path:
    """Rename a folder without ".new" after its files are durable. Returns the folder for `publish`."""
    for path in making.rglob("*/"):
        sync(path)
    sync(making)
    made = making.with_name(making.name.removesuffix(NEW))
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
