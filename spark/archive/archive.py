"""Archive compaction: of the changes up to a ts only the latest row of each key stays.

Each table is folded in one step: new files are written and synced in a hidden folder; renaming the folder
commits them; then they are moved into place and the replaced files removed. The next run finishes or removes
the folder of a killed run. The sink may write meanwhile: it only adds files with newer changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq
from msgspec import Struct

from ...errors import InvariantViolated, SinkError
from ...events import Table, Ts
from ...sink.files.layout import DDL_FOLDER, HIDDEN, table_folder
from ...sink.files.parquet_columns import TABLE, arrow_type
from ...store.disk import lock, sync, write
from .files import (
    NEW,
    SUFFIX,
    File,
    commit,
    discard,
    files,
    files_and_pending,
    folders,
    publish,
    read_schema,
)
from .fold import FOLDED, SchemaFiles, fold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX: Final = "fold-"
_OLD: Final = "replaces.json"


class TableReport(Struct, frozen=True):
    """The compaction of one table; sizes are those of the files read and written."""

    table: str
    folded_to: Ts = 0
    """Ts up to which every change is folded: the last of a file, at or below the requested ts."""
    files_before: int = 0
    files_after: int = 0
    rows_before: int = 0
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    left: str = ""
    """The reason why the table wasn't folded; empty if it was."""


class Report(Struct, frozen=True):
    """The result of a compaction."""

    tables: list[TableReport]


def compact_archive(spark: SparkSession, directory: str | Path, up_to_ts: Ts) -> Report:
    """Fold the changes at or below `up_to_ts` into the latest row of each key.

    Files that hold later changes too stay as they are, and tables without a key. Raises SinkError if the
    directory is no archive, has a file that can't be read, or is being compacted by somebody else.
    """
    directory = Path(directory)
    if not (directory / HIDDEN).is_dir():
        raise SinkError(f"{directory} is no archive: it has no {HIDDEN}")
    with _alone(directory / HIDDEN):
        _recover(directory)
        tables = [name for name in folders(directory) if name != DDL_FOLDER]
        return Report([_compact(spark, directory, name, up_to_ts) for name in tables])


@contextmanager
def _alone(hidden: Path) -> Iterator[None]:
    try:
        descriptor = lock(hidden / "fold.lock")
    except BlockingIOError:
        raise SinkError(f"{hidden.parent} is being compacted by another process: wait for it") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _recover(directory: Path) -> None:
    """Finish or remove the folder of a killed run."""
    for path in (directory / HIDDEN).glob(f"{_PREFIX}*"):
        if path.name.endswith(NEW):
            discard(path)
        else:
            _finish(directory, path)


def _finish(directory: Path, made: Path) -> None:
    """Move committed files into place, then remove the files that they replace."""
    publish(made, directory)
    old = [directory / name for name in json.loads((made / _OLD).read_text())]
    for path in old:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in old}:
        sync(folder)
    discard(made)
    sync(made.parent)


def _compact(spark: SparkSession, directory: Path, folder: str, up_to_ts: Ts) -> TableReport:
    name = unquote(folder.removeprefix("table="))
    taken = _up_to(*files_and_pending(directory, folder), up_to_ts)
    layouts = layouts_of(taken)
    left = reason_to_leave(taken, layouts)
    if left:
        return TableReport(name, left=left)
    making = directory / HIDDEN / f"{_PREFIX}{folder}{NEW}"
    discard(making)
    making.mkdir()
    rows = fold(spark, layouts, making, folder)
    made = sorted(making.rglob(f"*{SUFFIX}"))
    if (written := sum(_rows(path) for path in made)) != rows:
        raise InvariantViolated(f"{folder}: {rows} keys were folded into {written} rows")
    report = TableReport(
        name,
        taken[-1].last,
        len(taken),
        len(made),
        sum(_rows(file.path) for file in taken),
        rows,
        sum(file.path.stat().st_size for file in taken),
        sum(path.stat().st_size for path in made),
    )
    write(making / _OLD, json.dumps([str(file.path.relative_to(directory)) for file in taken]).encode())
    _finish(directory, commit(making))
    return report


def _up_to(candidates: Sequence[File], pending: Sequence[File], up_to_ts: Ts) -> list[File]:
    """Return the first files whose changes are all at or below the ts and before those of all other files."""
    rest = [file.first for file in (*candidates, *pending) if file in pending or file.last > up_to_ts]
    bound = min(rest, default=up_to_ts + 1)
    return [file for file in candidates if file.last < bound]


def layouts_of(taken: Sequence[File]) -> list[SchemaFiles]:
    """Group the files by the layout of their table. Raises SinkError for an incomplete file."""
    layouts: dict[bytes, SchemaFiles] = {}
    for file in taken:
        schema = read_schema(file.path)
        content = (schema.metadata or {}).get(TABLE)
        if content is None:
            raise SinkError(f"{file.path} is none of the archive's files: remove it")
        if content not in layouts:
            table = msgspec.json.decode(content, type=Table)
            layouts[content] = SchemaFiles(table, schema.serialize().to_pybytes(), [])
        layouts[content].paths.append(str(file.path))
    return list(layouts.values())


def reason_to_leave(taken: Sequence[File], layouts: Sequence[SchemaFiles]) -> str:
    """Return why there is nothing to fold, or it can't be folded; empty if it can."""
    if not taken:
        return "no file has only changes up to that ts"
    if all(FOLDED in file.path.name for file in taken):
        return "it is folded up to that ts"
    keys = {tuple(_key(layout.table)) for layout in layouts}
    if () in keys:
        return "it has no key"
    if len(keys) > 1:
        return "its key was changed"
    return "it was dropped, emptied, renamed or loaded again" if _has_left_rows(taken) else ""


def _key(table: Table) -> Iterator[tuple[str, str]]:
    for index in table.key:
        column = table.columns[index]
        yield column.name, str(arrow_type(column))


def _has_left_rows(taken: Sequence[File]) -> bool:
    """Return True if earlier rows left the table without a change of their own."""
    folder, directory = taken[0].path.parents[1], taken[0].path.parents[2]
    columns = ["commit_ts", "op", "schema", "table", "actions"]
    for file in files(directory, DDL_FOLDER):
        for ddl in pq.read_table(file.path, columns=columns, partitioning=None).to_pylist():
            if ddl["op"] == "alter" or ddl["commit_ts"] > taken[-1].last:
                continue
            (action,) = json.loads(ddl["actions"])
            names = [(ddl["schema"], ddl["table"])]
            names += [name for pair in action.get("rename", ()) for name in (pair["from"], pair["to"])]
            is_first = ddl["op"] == "create" and "replaces" not in action
            if not is_first and folder.name in [table_folder(*name) for name in names]:
                return True
    return False


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)
