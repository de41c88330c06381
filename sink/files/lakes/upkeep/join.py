"""Files that become one: a task that depends on nothing but its values, so that any process can run it, and
run it again. What it writes is nowhere in the table until the file is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Final, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from .....errors import CheckpointError
from ...layout import file_name
from ...store import Store
from ..copies.files import write_file
from ..copies.log import CopyFile
from ..parquet import open_parquet, read_rows

ORDER: Final = ("commit_ts", "start_ts", "sequence")
"""Columns by which the rows of a history are sorted."""


class Origin(NamedTuple):
    """A file to be joined."""

    name: str
    """In the store."""
    gone: BitMap64
    """The numbers of its deleted rows."""


class Join(NamedTuple):
    """A task."""

    origins: tuple[Origin, ...]
    folder: str
    """Folder of the new file in the store."""
    path: str
    """The same in the table's log; may be empty."""
    schema: pa.Schema
    """Columns of the new file."""
    is_history: bool
    """True if the rows are to be sorted by `ORDER`."""


class NewFile(NamedTuple):
    """The result of a task."""

    file: CopyFile
    is_sorted: bool
    """True if its rows have another order than those of its origins."""


Executor: TypeAlias = Callable[[Sequence[Join]], Iterator[NewFile]]
"""Runs tasks, and yields their results in the tasks' order. Raises the error of the first task that fails."""


def join(store: Store, task: Join) -> NewFile:
    """Write a file. Raises as Store does, and CheckpointError if an origin is missing."""
    names = task.schema.names
    rows = pa.concat_tables([_read(store, origin, names) for origin in task.origins])
    is_sorted = False
    if task.is_history:
        places = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ORDER])
        is_sorted = not places.equals(pa.array(np.arange(len(places)), places.type))
        rows = rows.take(places) if is_sorted else rows
    unique = uuid4().hex
    name = f"{unique}.parquet"
    if task.is_history and len(rows):
        first, last = (rows["commit_ts"][place].as_py() for place in (0, len(rows) - 1))
        name = file_name(first, last, unique, ".parquet")
    path = f"{task.path}/{name}".lstrip("/")
    return NewFile(write_file(store, f"{task.folder}/{name}", path, [rows], task.schema), is_sorted)


def _read(store: Store, origin: Origin, names: Sequence[str]) -> pa.Table:
    """Return columns of the rows of a file that aren't deleted."""
    content = store.read(origin.name)
    if content is None:
        raise CheckpointError(f"{store.name}/{origin.name} is missing: put back a copy of it")
    rows = read_rows(open_parquet(BytesIO(content)), names)
    if not origin.gone:
        return rows
    present = np.ones(len(rows), bool)
    present[np.array(origin.gone, np.int64)] = False
    return rows.filter(pa.array(present))
