"""Changes of one table as what they come to: for each key the row after all of them, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .....errors import CheckpointError
from .....events import Table
from ...parquet_columns import TABLE
from ...store import Store
from ..parquet import open_parquet, read_parts
from .columns import copy_schema, key_names

GONE: Final = -1
_encode: Final = msgspec.msgpack.Encoder().encode


class NetRows(NamedTuple):
    """Some of the changes of one staged file."""

    is_new: bool
    """True if all are rows of a snapshot, which the copy can't have."""
    last: dict[bytes, int]
    """For each key the number in `rows` of its row after the changes; GONE if there is none."""
    had: dict[bytes, bool]
    """True for each key that had a row before the changes; empty if `is_new`."""
    rows: pa.Table
    """The rows after each change; nulls after a delete."""


class StagedChanges:
    """The changes of one staged file, which is in memory as it is: compressed."""

    def __init__(self, parquet: pq.ParquetFile) -> None:
        self._parquet: Final = parquet
        self.table: Final = msgspec.json.decode(parquet.schema_arrow.metadata[TABLE], type=Table)
        """The source's table at that time."""

    def parts(self) -> Iterator[NetRows]:
        """Yield what thousands of changes come to, one part after the other."""
        columns = copy_schema(self.table)
        schema = pa.schema([field.with_nullable(True) for field in columns])  # where there is no row
        for changes in read_parts(self._parquet):
            yield _net(changes, schema, key_names(self.table))


def read_changes(store: Store, name: str) -> StagedChanges:
    """Return the changes of a staged file. Raises CheckpointError if it is missing, and as Store does."""
    content = store.read(name)
    if content is None:
        raise CheckpointError(f"{store.name}/{name} is missing: put back a copy of all that was here")
    return StagedChanges(open_parquet(BytesIO(content)))


def _net(changes: pa.Table, schema: pa.Schema, names: Sequence[str]) -> NetRows:
    after = _image(changes, "after", schema)
    arrived = encoded_keys(after, names)
    if _is_snapshot(changes):
        return NetRows(True, {key: row for row, key in enumerate(arrived) if key}, {}, after)
    before = _image(changes, "before", pa.schema([schema.field(name) for name in names]))
    has_floats = any(map(pa.types.is_floating, before.schema.types))  # of which 0.0 equals -0.0
    if not has_floats and before.equals(after.select(names)):  # keys that stay: an object fewer for each
        return NetRows(False, _numbered(arrived), dict.fromkeys(arrived, True), after)
    left = encoded_keys(before, names)
    if not any(left):
        return NetRows(False, _numbered(arrived), dict.fromkeys(arrived, False), after)
    last: dict[bytes, int] = {}
    had: dict[bytes, bool] = {}
    for row, (old, new) in enumerate(zip(left, arrived, strict=True)):
        if old and old != new:
            had.setdefault(old, True)
            last[old] = GONE
        if new:
            had.setdefault(new, old == new)
            last[new] = row
    return NetRows(False, last, had, after)


def _numbered(keys: Sequence[bytes]) -> dict[bytes, int]:
    return dict(zip(keys, range(len(keys)), strict=True))


def encoded_keys(rows: pa.Table, names: Sequence[str]) -> list[bytes]:
    """Return the key of each row as bytes, equal if and only if the keys are; empty where there is no row."""
    columns: list[list[Any]] = [rows.column(name).to_pylist() for name in names]
    if not rows.column(names[0]).null_count:
        return list(map(_encode, zip(*columns, strict=True)))
    return [b"" if key[0] is None else _encode(key) for key in zip(*columns, strict=True)]


def _is_snapshot(changes: pa.Table) -> bool:
    return bool(pc.all(changes.column("snapshot")).as_py()) and changes.column("before").null_count == len(
        changes
    )


def _image(changes: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    image = changes.column(name).combine_chunks()
    rows = pa.Table.from_arrays(image.flatten(), image.type.names)
    return rows.select(schema.names).cast(schema)
