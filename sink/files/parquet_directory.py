"""An archive's directory: Parquet files by table and date, none of which is seen before it is whole.

    table=shop.orders/date=2026-11-21/<first commit ts>-<last>-<where from>-<number>.parquet
    table=ddl/date=…/…                  schema changes
    _tidemill/                          what isn't for readers: the journal, and files in the making

New files are made in a folder of `_tidemill` whose name ends in ".new". Its new name, without that, says
that all of them are there and durable: then they are moved to where readers look. So a crash leaves a folder
that is removed, or one from which the rest is moved.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ...errors import SinkError
from ...events import Ts, physical_ms
from ...store.disk import sync
from .parquet_columns import FOLDER

HIDDEN: Final = "_tidemill"
"""Readers of Parquet directories pass over names with an underscore."""
NEW: Final = ".new"
DAY_MS: Final = 86_400_000
SUFFIX: Final = ".parquet"


class File(Struct, frozen=True, order=True):
    """A file of the archive; its order is that of the changes."""

    first: Ts
    last: Ts
    path: Path

    @property
    def date(self) -> str:
        return self.path.parent.name


def files(directory: Path, folder: str) -> list[File]:
    """The files of a table, in order of their changes. Raises SinkError for a name that isn't ours."""
    return sorted(_file(path) for path in (directory / folder).glob(f"date=*/*{SUFFIX}"))


def folders(directory: Path) -> list[str]:
    """The tables' folders, and the one of schema changes."""
    return sorted(path.name for path in directory.glob("table=*"))


def _file(path: Path) -> File:
    first, _, rest = path.name.partition("-")
    last = rest.partition("-")[0]
    if not (first.isdecimal() and last.isdecimal()):
        raise SinkError(f"{path} is none of the archive's files: remove it")
    return File(int(first), int(last), path)


def file_name(first: Ts, last: Ts, origin: str) -> str:
    """Digits of equal length, so that names are in the order of the changes."""
    return f"{first:020}-{last:020}-{origin}{SUFFIX}"


def date_of(ts: Ts) -> str:
    """The day of a commit ts in UTC."""
    return datetime.fromtimestamp(physical_ms(ts) / 1000, UTC).date().isoformat()


def write_files(making: Path, batches: Iterable[tuple[bytes, pa.RecordBatch]], most_bytes: int) -> None:
    """Parquet files of the batches, in a folder that `publish` takes.

    Batches of one schema and day make one file, or several where there are more than `most_bytes` of all
    tables: so much is in memory.
    """
    numbers = count()
    for group in _groups(batches, most_bytes):
        for (_, date), its in group.items():
            table = pa.Table.from_batches(its)
            folder = table.schema.metadata[FOLDER].decode()
            ts = table.column("commit_ts")
            origin = f"{making.name.removesuffix(NEW)}-{next(numbers)}"
            name = file_name(ts[0].as_py(), ts[-1].as_py(), origin)
            write_file(making / folder / f"date={date}" / name, table)


def _groups(
    batches: Iterable[tuple[bytes, pa.RecordBatch]], most_bytes: int
) -> Iterator[dict[tuple[bytes, str], list[pa.RecordBatch]]]:
    """Batches by schema and day, in groups of so many bytes."""
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
    """A durable Parquet file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def commit(making: Path) -> Path:
    """From now on the files will be seen, come what may; returns the folder to `publish`."""
    for path in making.rglob("*/"):
        sync(path)
    sync(making)
    made = making.with_name(making.name.removesuffix(NEW))
    making.replace(made)
    sync(made.parent)
    return made


def publish(made: Path, directory: Path) -> None:
    """Move what is in the folder to where readers look, as far as a crash hasn't left it done."""
    for path in sorted(made.rglob(f"*{SUFFIX}")):
        target = directory / path.relative_to(made)
        if not target.parent.exists():
            target.parent.mkdir(parents=True)
            sync(target.parent.parent)
            sync(directory)
        path.replace(target)
    for folder in made.glob("*/*/"):
        sync(directory / folder.relative_to(made))


def discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def read_schema(path: Path) -> Any:
    """The Arrow schema of a file. Raises SinkError for one that isn't whole."""
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise SinkError(f"{path} can't be read as Parquet: {error}") from error
