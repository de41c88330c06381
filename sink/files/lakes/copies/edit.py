"""One commit of a copy: statements and changes of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import NotReproducible, SinkError
from .....events import Ddl, Table
from .....failpoint import reach
from ...store import Store
from .alteration import Alteration, alteration
from .columns import copy_schema, is_same_layout, key_names
from .files import CopyFiles
from .key_index import FileId, KeyIndex, Places, TableKeys, by_file, id_of
from .log import CopyCommit, CopyLog, Snapshot
from .rows import GONE, NetRows, StagedChanges, encoded_keys

_MOST_GONE: Final = 100_000
"""Number of deleted keys of a commit after which more of them stay in the index, where they do no harm."""


class Edit:
    """A table as it will be. Raises as Store does, and SinkError if the changes don't fit to the table."""

    def __init__(self, store: Store, folder: str, log: CopyLog, base: Snapshot, index: KeyIndex) -> None:
        self._log: Final = log
        self._name: Final = log.name
        self._folder: Final = folder
        self._index: Final = index
        self.table = base.definition
        self._columns = base.columns
        self._files: Final = CopyFiles(store, folder, log, base.files)
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

    def take(self, log: CopyLog, snapshot: Snapshot, table: Table) -> None:
        """Take the rows of another copy, which is of the same table by its old name."""
        self._begin(None)
        self.table, self._columns = table, snapshot.columns
        self._files.take(log, snapshot.files)

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
        before, columns = self.table, self._columns
        assert before is not None
        after = columns.altered(change.table, change.origins)
        if not columns.keep_files(before, change):
            keys = self._synced()
            for path in self._files:
                parts = map(change.applied, self._files.read(path, columns, copy_schema(before)))
                fresh = self._files.replace(path, parts, after, copy_schema(change.table))
                if _signature(change.table) == _signature(before):
                    keys.know(fresh, keys.files[path])
        self.table, self._columns, self._keys = change.table, after, None

    def _begin(self, table: Table | None) -> None:
        self.table, self._keys = table, None
        if table is not None:
            self._columns = self._columns.altered(table)
        self._files.clear()

    def _planned(self, ddl: Ddl) -> Alteration:
        if self.table is None:
            raise SinkError(f"{self._name}: there is no copy of {ddl.full_name} to alter", ddl.full_name)
        change = alteration(self.table, ddl, has_rows=bool(self._files))
        if why := self._log.refusal(change.table):
            raise SinkError(why, ddl.full_name)
        return change

    def _has_null(self, path: str, name: str) -> bool:
        assert self.table is not None
        first = 0
        for rows in self._files.read(path, self._columns, _only(self.table, [name])):
            nulls = pc.indices_nonzero(rows.column(0).is_null()).to_pylist()
            if any(first + row not in self._files.vector(path) for row in nulls):
                return True
            first += len(rows)
        return False

    # --- rows

    def apply(self, changes: StagedChanges) -> None:
        """Delete rows, and add those after the changes."""
        if self.table is None or not is_same_layout(self.table, changes.table):
            name = changes.table.full_name
            raise SinkError(
                f"{self._name}: the copy of {name} hasn't the columns and the key that the source has: load "
                "the table again",
                name,
            )
        keys, path = self._synced(), self._files.new()
        self._paths[id_of(path)] = path
        schema = copy_schema(self.table)
        parts = (rows.cast(schema) for rows in self._applied(keys, id_of(path), changes))
        first = next(parts, None)
        if first is not None:
            self._files.add(path, chain([first], parts), self._columns, schema)
            keys.know(path, id_of(path))

    def _applied(self, keys: TableKeys, file: FileId, changes: StagedChanges) -> Iterator[pa.Table]:
        """Apply changes in parts. Yield the rows that are added to a file; later parts may delete them."""
        written = 0
        for part in changes.parts():
            arrived = [*part.last]
            rows = np.fromiter(part.last.values(), np.int64, len(arrived))
            stay = rows != GONE
            committed = None
            if not part.is_new:
                found = keys.find(arrived, self._is_present, self._committed)
                self._check(changes.table, part, found.now)
                self._delete(found.now)
                committed = found.committed[stay]
            if not stay.all():
                if len(self._gone) < _MOST_GONE:
                    self._gone.update(compress(arrived, (~stay).tolist()))
                arrived, rows = [*compress(arrived, stay.tolist())], rows[stay]
            if self._gone:
                self._gone.difference_update(arrived)
            if arrived:
                keys.put(file, arrived, np.arange(written, written + len(arrived)), committed)
                written += len(arrived)
                reach("copy.part")
                is_whole = np.array_equal(rows, np.arange(len(part.rows)))
                yield part.rows if is_whole else part.rows.take(rows)

    def _check(self, table: Table, changes: NetRows, now: Places) -> None:
        had = np.fromiter(changes.had.values(), np.bool_, len(now))
        wrong = np.flatnonzero(had != (now["file"] != 0))
        if wrong.size:
            what = "lacks a row that the source changed"
            if not had[wrong[0]]:
                what = "has a row that the source inserted"
            name = table.full_name
            shown = ", ".join(map(str, msgspec.msgpack.decode([*changes.had][wrong[0]])))
            raise SinkError(
                f"{self._name}: the copy of {name} {what}, with the key {shown}: another program changed it; "
                "load the table again",
                name,
            )

    def _delete(self, now: Places) -> None:
        for file, own in by_file(now):
            self._files.delete(self._paths[file], now["row"][own].tolist())

    def _is_present(self, file: FileId, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        path = self._paths.get(file)
        if path is None:
            return np.zeros(len(rows), np.bool_)
        gone = self._files.vector(path)
        return ~np.fromiter(map(gone.__contains__, rows.tolist()), np.bool_, len(rows))

    # --- keys

    def _synced(self) -> TableKeys:
        """Return the keys of all files."""
        if self._keys is None:
            assert self.table is not None
            keys = self._keys = self._index.keys(self._folder, _signature(self.table))
            # Commits without an answer may be there later, when others have taken the places of their keys.
            keys.forget([], [path for path in keys.files if path not in self._files])
            for path in self._files:
                if path not in keys.files:
                    self._learn(self.table, keys, path)
            self._paths = {keys.files[path]: path for path in self._files}
            self._committed = {keys.files[path] for path in self._files.base if path in keys.files}
        return self._keys

    def _learn(self, table: Table, keys: TableKeys, path: str) -> None:
        """Read the keys of a file that the index doesn't know."""
        names, gone, first = key_names(table), self._files.vector(path), 0
        for part in self._files.read(path, self._columns, _only(table, names)):
            own = encoded_keys(part, names)
            rows = [row for row in range(first, first + len(own)) if row not in gone]
            keys.put(id_of(path), [own[row - first] for row in rows], rows)
            first += len(own)
        keys.know(path, id_of(path))

    # --- the commit

    def commit(self, writer: str, number: int, made_ms: int) -> CopyCommit:
        """Return what the commit makes of the table. `made_ms` is its time in Unix milliseconds."""
        self._files.remove_emptied()
        return CopyCommit(writer, number, made_ms, self.table, self._columns, self._files)

    def settle(self) -> None:
        """Forget in the index what the committed table hasn't."""
        if self._keys is not None:
            left = [path for path in self._keys.files if path not in self._files]
            self._keys.forget(list(self._gone), left)

    def discard(self) -> None:
        """Remove what was written for a commit that isn't made."""
        self._files.discard()


Change: TypeAlias = Callable[[Edit], None]


def _only(table: Table, names: Sequence[str]) -> pa.Schema:
    """Return some of the columns of a copy."""
    schema = copy_schema(table)
    return pa.schema([schema.field(name) for name in names])


def _signature(table: Table) -> str:
    """Return what the keys of a table are made of."""
    schema = copy_schema(table)
    return repr([(name, str(schema.field(name).type)) for name in key_names(table)])
