"""The databases and tables of the emulated TiDB, and its id allocators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from msgspec.structs import replace

from ...codec.tidb.field import field_of
from ...codec.tidb.job import PUBLIC, WRITE_ONLY, WRITE_REORGANIZATION
from ...codec.tidb.row_decoder import RowDecoder
from ...codec.tidb.row_encoder import RowEncoder
from ...codec.tidb.table_info import ColumnInfo, DbInfo, TableInfo
from ...events import Row

_WRITTEN: Final = (WRITE_ONLY, WRITE_REORGANIZATION)
"""States in which transactions write a column that they don't read."""

_FIRST_ID = 100
"""First id of users' objects; lower ids are of TiDB's own tables."""


class SqlTable:
    """A table in its present version."""

    def __init__(self, database: DbInfo, info: TableInfo, row_format: int, row_checksum: bool) -> None:
        self.database = database
        self.info = info
        self.has_checksums = row_checksum
        self.encoder = RowEncoder(
            database.name,
            replace(info, columns=tuple(map(_as_written, info.columns))),
            row_format=1 if row_format == 1 else 2,
            checksum=row_checksum,
        )
        """Writes the rows that `written` returns."""
        self.decoder = RowDecoder(database.name, info)
        names = [column.name for column in self.decoder.table.columns]
        self._changing = [
            (names.index(column.name.removeprefix("_Col$_").removesuffix("_0")), field_of(column))
            for column in info.columns
            if column.state in _WRITTEN
        ]

    def written(self, row: Row) -> Row:
        """Return a row with the values of columns that replace others, but aren't public yet."""
        more = [(row[place], field) for place, field in self._changing]
        return (*row, *[None if v is None else field.read(field.write(str(v))) for v, field in more])


def _as_written(column: ColumnInfo) -> ColumnInfo:
    return replace(column, state=PUBLIC) if column.state in _WRITTEN else column


class Schema:
    """The databases and tables; changed only by DDL. Names are case-insensitive."""

    def __init__(self, row_format: int = 2, row_checksum: bool = False) -> None:
        self._row_format = row_format
        self._row_checksum = row_checksum
        self._databases: dict[str, DbInfo] = {}
        self._tables: dict[tuple[str, str], SqlTable] = {}
        self.dropped: dict[tuple[str, str], SqlTable] = {}
        """Tables that can be recovered, the last one of each database and name."""
        self._row_ids: dict[int, Iterator[int]] = {}
        self.last_id = _FIRST_ID
        self.version = 0
        self.public_version = 0
        """Version of the last committed change."""

    def new_id(self) -> int:
        """Return a new id for a database, table, partition or job."""
        self.last_id += 1
        return self.last_id

    def new_version(self) -> int:
        self.version += 1
        return self.version

    def new_row_id(self, table_id: int) -> int:
        """Return the next AUTO_INCREMENT or hidden handle of a table."""
        return next(self._row_ids.setdefault(table_id, count(1)))

    # --- what there is

    def database(self, name: str) -> DbInfo:
        """Return a database. Raises ValueError if there is none."""
        database = self._databases.get(name.lower())
        if database is None:
            raise ValueError(f"there is no database {name}; there are {', '.join(self._databases) or 'none'}")
        return database

    def table(self, name: str) -> SqlTable:
        """Return a table by its qualified name. Raises ValueError if there is none."""
        database, _, table = name.lower().partition(".")
        entry = self._tables.get((database, table))
        if entry is None:
            names = ", ".join(map(".".join, self._tables)) or "none"
            raise ValueError(f"there is no table {name}; there are {names}")
        return entry

    def has_database(self, name: str) -> bool:
        return name.lower() in self._databases

    def has_table(self, database: str, name: str) -> bool:
        return (database.lower(), name.lower()) in self._tables

    def tables(self, database: str) -> list[SqlTable]:
        return [table for (owner, _), table in self._tables.items() if owner == database.lower()]

    # --- what changes it

    def set_database(self, info: DbInfo) -> None:
        self._databases[info.name.lower()] = info

    def drop_database(self, name: str) -> None:
        del self._databases[name.lower()]
        for table in self.tables(name):
            self.drop_table(name, table.info.name)

    def set_table(self, database: DbInfo, info: TableInfo) -> None:
        table = SqlTable(database, info, self._row_format, self._row_checksum)
        self._tables[database.name.lower(), info.name.lower()] = table

    def drop_table(self, database: str, name: str) -> None:
        del self._tables[database.lower(), name.lower()]
