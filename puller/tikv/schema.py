"""Reading the databases and tables that there are at a ts, from TiDB's schema keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, TypeVar

from ...codec.tidb import meta
from ...codec.tidb.table_info import DbInfo, TableInfo, decode_db_info, decode_table_info
from ...errors import SourceError
from ...events import Ts

OWN_SCHEMAS: Final = frozenset({"mysql", "sys"})
"""Databases of TiDB's own that have schema keys, in lower case; they are not read."""

_TABLES: Final = (b"mDB:", b"mDB;")
"""Raw keys between which the hashes of all databases lie."""

_T = TypeVar("_T")


class Reads(Protocol):
    """What is needed of Kv. Raw keys."""

    async def get(self, key: bytes, ts: Ts) -> bytes | None:
        """The value as of `ts`; None without one."""
        ...

    def scan(self, start: bytes, end: bytes, ts: Ts) -> AsyncIterator[tuple[bytes, bytes]]:
        """The pairs from `start` up to but not including `end`, as of `ts`."""
        ...


class Wanted(Protocol):
    """Which tables are followed: a TableFilter."""

    def matches(self, schema: str, table: str) -> bool: ...


class Schema(Protocol):
    """What takes in what is read: a SchemaHistory, or TableNames."""

    def add_database(self, info: DbInfo) -> None: ...

    def add_table(self, database_id: int, info: TableInfo) -> None: ...


class TableNames(ABC):
    """The names of all tables as a schema is read, and what is made of those that are followed."""

    def __init__(self, wanted: Wanted) -> None:
        self.names: list[tuple[str, str]] = []
        """Schema and table, of all."""
        self._wanted = wanted
        self._databases: dict[int, str] = {}

    def add_database(self, info: DbInfo) -> None:
        self._databases[info.id] = info.name

    def add_table(self, database_id: int, info: TableInfo) -> None:
        schema = self._databases[database_id]
        self.names.append((schema, info.name))
        if self._wanted.matches(schema, info.name):
            self.follow(schema, info)

    @abstractmethod
    def follow(self, schema: str, info: TableInfo) -> None:
        """A followed one; a view or a sequence may be among them."""


async def read_schema(kv: Reads, ts: Ts, schema: Schema) -> int:
    """Read all databases and tables as of `ts` into `schema`, one after the other.

    Returns the schema version: that of the last job that had ended at `ts`. Raises SourceError where an
    info can't be read, and what the scan raises.
    """
    version = await schema_version(kv, ts)
    own = set()
    async for key, value in kv.scan(*meta.hash_span(meta.DATABASES), ts):
        database = _decode(decode_db_info, key, value, ts)
        if database.name.lower() in OWN_SCHEMAS:
            own.add(meta.database_field(database.id))
        else:
            schema.add_database(database)
    # One pass over the tables of all databases; their ids, of which there are more, lie in between.
    async for key, value in kv.scan(*_TABLES, ts):
        found = meta.decode_meta_key(key)
        if meta.is_table_field(found.field) and found.name not in own:
            schema.add_table(meta.database_id(found.name), _decode(decode_table_info, key, value, ts))
    return version


async def schema_version(kv: Reads, ts: Ts) -> int:
    """The version of the last schema change that was committed at `ts`.

    TiDB counts in a transaction of its own, just before the one that changes the schema and writes down
    the difference: the last count may be of a change that isn't there yet.
    """
    value = await kv.get(meta.string_key(meta.SCHEMA_VERSION), ts)
    version = int(value or b"0")
    if version and await kv.get(meta.string_key(meta.schema_diff(version)), ts) is None:
        version -= 1
    return version


def _decode(decode: Callable[[bytes], _T], key: bytes, value: bytes, ts: Ts) -> _T:
    try:
        return decode(value)
    except ValueError as error:
        raise SourceError(
            f"the schema at ts {ts} can't be read: {_what(key)}: {error}. This may be a TiDB"
            " newer than tidemill knows"
        ) from error


def _what(key: bytes) -> str:
    """The database or table that a schema key describes, by its number."""
    found = meta.decode_meta_key(key)
    parts = [found.field] if found.name == meta.DATABASES else [found.field, found.name]
    text = b" of ".join(parts).decode("utf-8", "replace")
    return text.replace("DB:", "database id ").replace("Table:", "table id ")
