"""The protocol of layouts, which name the files, and the layout by table and date."""

from __future__ import annotations

from typing import Protocol

from ...events import Ddl, Ts
from .names import DDL_FOLDER, HIDDEN, date_of, file_name, table_folder
from .piece import Group


class Layout(Protocol):
    """Names of the files of one sink. Called only by its sink."""

    name: str

    has_statements: bool
    """True if schema changes are rows of files; False if `note` describes them."""

    def start(self) -> None:
        """Forget everything since the last commit: it comes again."""

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:
        """Return the name of a new file. `origin` is unique in the prefix."""
        ...

    def note(self, ddl: Ddl) -> None:
        """Note a schema change."""

    def definitions(self) -> dict[str, str]:
        """Return small objects that describe the tables of a commit, by name."""
        ...

    def marks(self, ts: Ts | None) -> dict[str, str]:
        """Return small objects that announce the files of a commit, by name. All changes up to `ts` are
        visible then; None if that isn't known."""
        ...


class TablesLayout:
    """Folders that Hive, Spark, DuckDB and Arrow read as partitions; `files.names` describes them."""

    name = "tables"
    has_statements = True

    def start(self) -> None:
        pass

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:
        table = group[0]
        folder = DDL_FOLDER if table is None else table_folder(table.schema, table.name)
        return f"{folder}/date={date_of(first)}/{file_name(first, last, origin, suffix)}"

    def note(self, ddl: Ddl) -> None:
        pass

    def definitions(self) -> dict[str, str]:
        return {}

    def marks(self, ts: Ts | None) -> dict[str, str]:
        return {} if ts is None else {f"{HIDDEN}/metadata": checkpoint_text(ts)}


def checkpoint_text(ts: Ts) -> str:
    """Return the content of the object that says up to which ts all changes are visible."""
    return f'{{"checkpoint-ts":{ts}}}'
