"""Reading the databases and tables that exist at a ts, from TiDB's schema keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, TypeVar

from ...chain.selection.tables import TablePatterns
from ...codec.tidb import meta
from ...codec.tidb.table_info import DbInfo, TableInfo, decode_db_info, decode_table_info, holds_rows
from ...errors import SourceError
from ...events import Ts

OWN_SCHEMAS: Final = frozenset({"mysql", "sys"})
"""Databases of TiDB's own that have schema keys, in lower case; they are skipped."""

_TABLES: Final = (b"mDB:", b"mDB;")
"""Raw keys that bound the hashes of all databases."""

_T = TypeVar("_T")


class Reads(Protocol):
    """The part of Kv that is used here. Keys are raw."""

    async def get(self, key: bytes, ts: Ts) -> bytes | None:
        """Return the value as of `ts`; None if there is none."""
        ...

    def scan(self, start: bytes, end: bytes, ts: Ts) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the pairs in [start, end) as of `ts`."""
        ...


class Schema(Protocol):
    """The receiver of the schema: a SchemaHistory, or TableNames."""

    def add_database(self, info: DbInfo) -> None: ...

    def add_table(self, database_id: int, info: TableInfo) -> None: ...


class TableNames:
    """The names of all tables of a schema, and those that are followed."""

    def __init__(self, wanted: TablePatterns) -> None:
        self.names: list[tuple[str, str]] = []
        """(schema, table) of all tables."""
        self.tables: list[tuple[str, TableInfo]] = []
        """The followed tables with their schemas; views and sequences are among them."""
        self._wanted = wanted
        self._databases: dict[int, str] = {}

    def add_database(self, info: DbInfo) -> None:
        self._databases[info.id] = info.name

    def add_table(self, database_id: int, info: TableInfo) -> None:
        schema = self._databases[database_id]
        self.names.append((schema, info.name))
        if self._wanted.matches(schema, info.name):
            self.tables.append((schema, info))

    @property
    def with_rows(self) -> list[tuple[str, TableInfo]]:
        """The followed tables that have rows in TiKV."""
        return [(schema, info) for schema, info in self.tables if holds_rows(info)]


async def read_schema(kv: Reads, ts: Ts, schema: Schema, own_tables: set[int] | None = None) -> int:
    """Read all databases and tables as of `ts` into `schema`, one after the other.

    The ids of the tables of OWN_SCHEMAS are added to `own_tables`. Returns the schema version: that of the
    last job that ended at or before `ts`. Raises SourceError if an info can't be read, and the errors of the
    scan.
    """
    version = await schema_version(kv, ts)
    own = set()
    async for key, value in kv.scan(*meta.hash_span(meta.DATABASES), ts):
        database = _decode(decode_db_info, key, value, ts)
        if database.name.lower() in OWN_SCHEMAS:
            own.add(meta.database_field(database.id))
        else:
            schema.add_database(database)
    # One pass over the hashes of all databases; the auto-id counters between the tables are skipped.
    async for key, value in kv.scan(*_TABLES, ts):
        decoded = meta.decode_meta_key(key)
        if not meta.is_table_field(decoded.field):
            continue
        if decoded.name in own:
            if own_tables is not None:
                own_tables.add(meta.table_id(decoded.field))
        else:
            schema.add_table(meta.database_id(decoded.name), _decode(decode_table_info, key, value, ts))
    return version


async def schema_version(kv: Reads, ts: Ts) -> int:
    """Return the version of the last schema change that was committed at `ts`.

    TiDB increments the version in a transaction of its own, just before the one that changes the schema and
    stores the difference: the last version may be of a change that isn't committed yet.
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
    """Describe the database or table of a schema key by its id."""
    decoded = meta.decode_meta_key(key)
    parts = [decoded.field] if decoded.name == meta.DATABASES else [decoded.field, decoded.name]
    text = b" of ".join(parts).decode("utf-8", "replace")
    return text.replace("DB:", "database id ").replace("Table:", "table id ")
