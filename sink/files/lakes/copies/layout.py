"""The layout of copies: a lake's table for each table of the source, which has its present rows.

shop.orders/<unique>.parquet
shop.orders/…                       deleted rows; Delta's log, or Iceberg's metadata
versions/…                          the tables' versions by ts of the source
_tidemill/                          not for readers: among others the changes of a commit

Staged files, which have changes, stay hidden: the tables get what they come to.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import msgspec

from .....codec.ddl_bytes import decode_ddl, encode_ddl
from .....errors import InvariantViolated, NotReproducible, SinkError
from .....events import (
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
    Ts,
    physical_ms,
)
from .....failpoint import reach
from ...formats import Group
from ...layout import HIDDEN, TablesLayout, folder_of
from ...ledger import State
from ...store import Store, in_parallel
from ..layout import LakeLayout
from .edit import Change, Edit
from .key_index import KeyIndex
from .rows import read_changes
from .table import CopyTable

_COMMIT: Final = f"{HIDDEN}/commit"
"""Object that says what a commit has."""


class _Commit(msgspec.Struct, frozen=True):
    """The changes of one commit: first the statement, then the rows."""

    statement: str
    """The Ddl in base64; empty if there is none."""
    folders: list[str]
    """Folder of the table of each staged file, in their order."""


class _Renamed(NamedTuple):
    """One table of RENAME TABLE."""

    old: str
    new: str
    name: TableName


class CopyLayout(TablesLayout):
    """Folders of a lake's tables with the present rows. Called only by its sink."""

    has_statements = False
    checks_statements = True

    def __init__(self, store: Store, parallel: int, lake: LakeLayout, directory: Path | None) -> None:
        """`lake` has the logs. `directory` is that of the index; None: a temporary one."""
        self.own_names = lake.own_names
        self._store: Final = store
        self._parallel: Final = parallel
        self._lake: Final = lake
        self._index: Final = KeyIndex(directory)
        self._lock: Final = Lock()
        self._copies: dict[str, CopyTable] = {}
        self.start()

    def start(self) -> None:
        self._lake.start()
        self._statement: Ddl | None = None
        self._folders: list[str] = []

    def close(self) -> None:
        self._copies.clear()
        self._index.close()
        self._lake.close()

    # --- a commit

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:  # noqa: ARG002
        table = group[0]
        assert table is not None
        self._folders.append(self._lake.folder(table))
        return ""

    def note(self, ddl: Ddl) -> None:
        if self._statement is not None or self._folders:
            raise InvariantViolated(f"{ddl.full_name}: a statement isn't the first of its commit")
        self._statement = ddl

    def definitions(self) -> dict[str, str]:
        if self._statement is None and not self._folders:
            return {}
        statement = "" if self._statement is None else b64encode(encode_ddl(self._statement)).decode()
        commit = _Commit(statement, self._folders)
        self.start()
        return {_COMMIT: msgspec.json.encode(commit).decode()}

    def check(self, ddl: Ddl) -> None:
        match ddl.actions[0]:
            case CreateTable(table):
                if why := self._copy(self._lake.folder(table)).log.refusal(table):
                    raise SinkError(why, table.full_name)
            case RenameTables():
                _in_order(ddl)
            case DropTable() | TruncateTable():
                pass
            case _:
                self._copy(folder_of(ddl.schema, ddl.table)).check(ddl)

    # --- the tables

    def announce(self, state: State) -> None:
        self._lake.announce_by(self._announced, state)

    def _announced(self, writer: str, state: State, ts: Ts) -> dict[str, int]:
        if _COMMIT not in state.definitions:
            return {}
        commit = msgspec.json.decode(state.definitions[_COMMIT], type=_Commit)
        changes: dict[str, list[Change]] = {}
        ordered: list[str] = []
        if commit.statement:
            ordered = self._statement_changes(decode_ddl(b64decode(commit.statement)), changes)
        for folder, name in zip(commit.folders, state.staged.values(), strict=True):
            changes.setdefault(folder, []).append(partial(self._apply, name))
        versions: dict[str, int] = {}

        def make(folder: str) -> None:
            reach("copy.changing")
            copy = self._copy(folder)
            version = copy.commit(writer, state.commits, physical_ms(ts), changes[folder])
            if version >= 0:
                versions[folder] = version

        for folder in ordered:
            make(folder)
        in_parallel(self._parallel, make, [folder for folder in changes if folder not in ordered])
        return versions

    def _apply(self, name: str, edit: Edit) -> None:
        edit.apply(read_changes(self._store, name))

    def _statement_changes(self, ddl: Ddl, changes: dict[str, list[Change]]) -> list[str]:
        """Add the changes of a statement; return the tables that are changed before others, in order."""
        own = folder_of(ddl.schema, ddl.table)
        match ddl.actions[0]:
            case CreateTable(table, replaces):
                changes[own] = [lambda edit: edit.create(table, replaces=replaces)]
            case DropTable():
                changes[own] = [Edit.drop]
            case TruncateTable():
                changes[own] = [Edit.empty]
            case RenameTables():
                renamed = _in_order(ddl)
                for one in renamed:
                    changes[one.new] = [partial(self._take, one)]
                for one in renamed:
                    changes.setdefault(one.old, [Edit.drop])
                return list(changes)
            case _:
                changes[own] = [lambda edit: edit.alter(ddl)]
        return []

    def _take(self, renamed: _Renamed, edit: Edit) -> None:
        log = self._copy(renamed.old).log
        snapshot = log.latest()
        table = snapshot.definition
        if table is None:
            raise SinkError(f"{log.name}: there is no copy to rename")
        schema, name = renamed.name
        edit.take(log, snapshot, msgspec.structs.replace(table, schema=schema, name=name))

    def _copy(self, folder: str) -> CopyTable:
        with self._lock:
            if folder not in self._copies:
                self._copies[folder] = CopyTable(self._store, folder, self._lake.log(folder), self._index)
            return self._copies[folder]


def _in_order(ddl: Ddl) -> list[_Renamed]:
    """Return the tables of RENAME TABLE: one whose name another one takes comes before that.

    So what is left of the statement after a crash can be done. Raises NotReproducible if tables exchange
    their names.
    """
    (action,) = ddl.actions
    assert isinstance(action, RenameTables)
    left = [_Renamed(folder_of(*old), folder_of(*new), new) for old, new in action.pairs if old != new]
    ordered: list[_Renamed] = []
    while left:
        old = {one.old for one in left}
        ready = [one for one in left if one.new not in old]
        if not ready:
            raise NotReproducible(ddl.full_name, "tables exchange their names")
        ordered += ready
        left = [one for one in left if one.new in old]
    return ordered
