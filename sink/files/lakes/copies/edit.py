"""One commit of a copy: statements and changes of rows, and the actions for the table's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import NotReproducible, SinkError
from .....events import Ddl, Table
from ...store import Store
from .alteration import Alteration, alteration
from .columns import copy_schema, is_same_layout, key_names, schema_string
from .delta_log import READER_FEATURES, WRITER_FEATURES, Action, Snapshot
from .files import CopyFiles
from .key_index import NOTHING, FileId, Found, KeyIndex, TableKeys, id_of
from .rows import GONE, NetRows, encoded_keys

_TABLE: Final = "tidemill.table"
"""Property of a table: the source's definition as JSON. A table without it was dropped."""
_MOST_GONE: Final = 1_000_000
"""Number of deleted keys of a commit after which more of them stay in the index, where they do no harm."""


def definition_of(snapshot: Snapshot) -> Table | None:
    """Return the source's table of which the lake's is a copy; None if it was dropped, or isn't there."""
    text = snapshot.configuration.get(_TABLE)
    return None if text is None else msgspec.json.decode(text, type=Table)


class Edit:
    """A table as it will be. Raises as Store does, and SinkError if the changes don't fit to the table."""

    def __init__(self, store: Store, folder: str, base: Snapshot, index: KeyIndex, made_ms: int) -> None:
        """`made_ms` is the time of the commit in Unix milliseconds."""
        self._name: Final = f"{store.name}/{folder}"
        self._folder: Final = folder
        self._base: Final = base
        self._index: Final = index
        self._made_ms: Final = made_ms
        self.table = definition_of(base)
        self._files: Final = CopyFiles(store, folder, base, made_ms)
        self._keys: TableKeys | None = None
        """None until keys are looked for."""
        self._paths: dict[FileId, str] = {}
        """Files by the id of their keys."""
        self._committed: set[FileId] = set()
        """Ids of the files as of the last commit."""
        self._gone: set[bytes] = set()
        """Keys that have no row any more, for the index."""

    # --- statements

    def create(self, table: Table, *, replaces: bool) -> None:
        if self.table is not None and not replaces:
            name = table.full_name
            raise SinkError(f"{self._name}: the copy of {name} is there already: remove its folder", name)
        self._begin(table)

    def drop(self) -> None:
        self._begin(None)

    def empty(self) -> None:
        self._begin(self.table)

    def take(self, folder: str, snapshot: Snapshot, table: Table) -> None:
        """Take the rows of the copy in another folder, which is of the same table by its old name."""
        self._begin(table)
        self._files.take(folder, snapshot)

    def check(self, ddl: Ddl) -> None:
        """Raise NotReproducible if the rows after ALTER TABLE aren't known, SinkError if there can
        be none."""
        for name in self._planned(ddl).filled:
            if any(self._has_null(path, name) for path in self._files):
                raise NotReproducible(
                    ddl.full_name, f"column {name}: the value that replaced its NULLs isn't known"
                )

    def alter(self, ddl: Ddl) -> None:
        change = self._planned(ddl)
        before = self.table
        assert before is not None
        if change.needs_files(before):
            keys = self._synced()
            for path in self._files:
                with self._files.opened(path) as parquet:
                    groups = map(parquet.read_row_group, range(parquet.num_row_groups))
                    fresh = self._files.replace(path, map(change.applied, groups), copy_schema(change.table))
                if _signature(change.table) == _signature(before):
                    keys.know(fresh, keys.files[path])
        self.table, self._keys = change.table, None

    def _begin(self, table: Table | None) -> None:
        self.table, self._keys = table, None
        self._files.clear()

    def _planned(self, ddl: Ddl) -> Alteration:
        if self.table is None:
            raise SinkError(f"{self._name}: there is no copy of {ddl.full_name} to alter", ddl.full_name)
        return alteration(self.table, ddl, has_rows=bool(self._files))

    def _has_null(self, path: str, name: str) -> bool:
        with self._files.opened(path) as parquet:
            if name not in parquet.schema_arrow.names:
                return True
            column = parquet.read(columns=[name]).column(0)
        nulls = pc.indices_nonzero(column.is_null()).to_pylist()
        return any(row not in self._files.vector(path) for row in nulls)

    # --- rows

    def apply(self, changes: NetRows) -> None:
        """Delete rows, and add those after the changes."""
        if self.table is None or not is_same_layout(self.table, changes.table):
            name = changes.table.full_name
            raise SinkError(
                f"{self._name}: the copy of {name} hasn't the columns and the key that the source has: load "
                "the table again",
                name,
            )
        keys, last = self._synced(), changes.last
        found = [NOTHING] * len(last)
        if not changes.is_new:
            found = list(keys.find(last, self._is_present))
            self._check(changes, found)
            self._delete(found)
        present = [(row, key, one.places) for (key, row), one in zip(last.items(), found, strict=True)]
        if len(self._gone) < _MOST_GONE:
            self._gone.update([key for row, key, _ in present if row == GONE])
        present = [one for one in present if one[0] != GONE]
        self._gone.difference_update([key for _, key, _ in present])
        if present:
            schema = copy_schema(self.table)
            path = self._files.add([changes.rows.take([row for row, _, _ in present]).cast(schema)], schema)
            file = id_of(path)
            own = [(key, row, places) for row, (_, key, places) in enumerate(present)]
            keys.put(file, own, self._committed)
            keys.know(path, file)
            self._paths[file] = path

    def _check(self, changes: NetRows, found: Sequence[Found]) -> None:
        for (key, had), one in zip(changes.had.items(), found, strict=True):
            if had != (one.place is not None):
                what = "lacks a row that the source changed" if had else "has a row that the source inserted"
                name = changes.table.full_name
                shown = ", ".join(map(str, msgspec.msgpack.decode(key)))
                raise SinkError(
                    f"{self._name}: the copy of {name} {what}, with the key {shown}: another program changed "
                    "it; load the table again",
                    name,
                )

    def _delete(self, found: Sequence[Found]) -> None:
        rows: dict[FileId, list[int]] = {}
        for one in found:
            if one.place is not None:
                rows.setdefault(one.place.file, []).append(one.place.row)
        for file, own in rows.items():
            self._files.delete(self._paths[file], own)

    def _is_present(self, file: FileId, row: int) -> bool:
        path = self._paths.get(file)
        return path is not None and row not in self._files.vector(path)

    # --- keys

    def _synced(self) -> TableKeys:
        """Return the keys of all files."""
        if self._keys is None:
            assert self.table is not None
            keys = self._keys = self._index.keys(self._folder, _signature(self.table))
            for path in self._files:
                if path not in keys.files:
                    self._learn(self.table, keys, path)
            self._paths = {keys.files[path]: path for path in self._files}
            self._committed = {keys.files[path] for path in self._files.base if path in keys.files}
        return self._keys

    def _learn(self, table: Table, keys: TableKeys, path: str) -> None:
        """Read the keys of a file that the index doesn't know."""
        names, gone, first = key_names(table), self._files.vector(path), 0
        schema = pa.schema([copy_schema(table).field(name) for name in names])
        with self._files.opened(path) as parquet:
            for batch in parquet.iter_batches(columns=names):
                rows = encoded_keys(pa.Table.from_batches([batch]).select(names).cast(schema), names)
                own = [(key, row, b"") for row, key in enumerate(rows, first) if row not in gone]
                keys.put(id_of(path), own, set())
                first += len(rows)
        keys.know(path, id_of(path))

    # --- the commit

    def actions(self, writer: str, number: int) -> list[Action]:
        """Return the actions of the commit."""
        base = self._base
        info = {"timestamp": self._made_ms, "operation": "WRITE", "engineInfo": "tidemill"}
        actions: list[Action] = [{"commitInfo": info}, {"txn": {"appId": writer, "version": number}}]
        if not base.exists:
            features = {"readerFeatures": READER_FEATURES, "writerFeatures": WRITER_FEATURES}
            actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
        if not base.exists or self.table != definition_of(base):
            actions.append({"metaData": self._metadata()})
        return [*actions, *self._files.actions()]

    def _metadata(self) -> dict[str, Any]:
        base, table = self._base, self.table
        configuration = base.configuration
        configuration.pop(_TABLE, None)
        if table is None:
            return {**base.metadata, "configuration": configuration}
        text = msgspec.json.encode(table).decode()
        return {
            "id": str(uuid4()),
            "createdTime": self._made_ms,
            "format": {"provider": "parquet", "options": {}},
            "partitionColumns": [],
            **base.metadata,
            "schemaString": schema_string(table),
            "configuration": {"delta.enableDeletionVectors": "true", **configuration, _TABLE: text},
        }

    def settle(self) -> None:
        """Forget in the index what the committed table hasn't."""
        if self._keys is not None:
            left = [path for path in self._keys.files if path not in self._files]
            self._keys.forget(list(self._gone), left)

    def discard(self) -> None:
        """Remove what was written for a commit that isn't made."""
        self._files.discard()


Change: TypeAlias = Callable[[Edit], None]


def _signature(table: Table) -> str:
    """Return what the keys of a table are made of."""
    schema = copy_schema(table)
    return repr([(name, str(schema.field(name).type)) for name in key_names(table)])
