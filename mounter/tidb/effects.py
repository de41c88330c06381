"""Effects of DDL jobs on the existing tables and databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeAlias

from msgspec import MsgspecError, Raw, Struct, convert, field, json
from msgspec.structs import replace

from ...codec.tidb.action import Action
from ...codec.tidb.info_json import decode
from ...codec.tidb.job import Job
from ...codec.tidb.table_info import DbInfo, TableInfo, decode_table_info, partition_ids

_NULL: Final = Raw(b"null")


class SetDatabase(Struct, frozen=True):
    info: DbInfo


class DropDatabase(Struct, frozen=True):
    """Remove a database with all its tables."""

    id: int


class SetTable(Struct, frozen=True):
    """Create or redefine a table in this database."""

    schema_id: int
    info: TableInfo


class DropTable(Struct, frozen=True):
    """Remove a table; it may be unknown, as views and sequences are."""

    id: int


Effect: TypeAlias = SetDatabase | DropDatabase | SetTable | DropTable


class Present(Protocol):
    """The schema before the job."""

    def owner_of(self, physical_id: int) -> int:
        """Return the table that a partition belongs to; the id itself for anything else."""
        ...

    def current(self, table_id: int) -> tuple[int, TableInfo] | None:
        """Return a table with its database's id; None if there is no such table."""
        ...


def effects(job: Job, present: Present) -> Iterator[Effect]:
    """Yield the effects of a finished job in order; none if it is about neither tables nor databases.

    Raises SourceError if the job can't be decoded.
    """
    match job.type:
        case Action.DROP_SCHEMA:
            yield DropDatabase(job.schema_id)
        case Action.DROP_TABLE | Action.DROP_VIEW | Action.DROP_SEQUENCE:
            yield DropTable(job.table_id)
        case Action.CREATE_TABLES:
            for info in job.table_infos():
                yield SetTable(job.schema_id, info)
        case Action.RENAME_TABLES:
            schemas = _new_schemas(job)
            for info in job.table_infos():
                yield SetTable(schemas.get(info.id, job.schema_id), info)
        case Action.EXCHANGE_TABLE_PARTITION:
            yield from _exchange(job, present)
        case Action.RECOVER_SCHEMA:
            database = job.db_info()
            if database is None:
                raise job.unreadable("database", "it has none")
            yield SetDatabase(database)
            for info in _recovered(job):
                yield SetTable(database.id, info)
        case _:
            yield from _table(job, present)


def _database(job: Job) -> Iterator[Effect]:
    info = job.db_info()
    if info is not None:
        yield SetDatabase(info)


def _table(job: Job, present: Present) -> Iterator[Effect]:
    """Yield the effects of a job that results in one table or database."""
    info = job.table_info()
    if info is None:
        yield from _database(job)
        return
    if info.id != job.table_id and present.current(job.table_id):
        yield DropTable(job.table_id)  # truncated or repartitioned: the same table with another id
    yield SetTable(job.schema_id, info)


def _exchange(job: Job, present: Present) -> Iterator[Effect]:
    """Yield the effects of a partition and a table that swap their ids.

    The job has the partitioned table's info but the other table's ids: its database id isn't the info's.
    """
    info = job.table_info()
    before = present.current(info.id) if info else None
    if info is None or before is None:
        raise job.unreadable("table", f"table {info.id if info else 0} is not known")
    schema_id, old = before
    left = set(partition_ids(old)) - set(partition_ids(info))
    for came in set(partition_ids(info)) - set(partition_ids(old)):
        other = present.current(came)
        yield DropTable(came)
        if other and left:
            yield SetTable(other[0], replace(other[1], id=left.pop()))
    yield SetTable(schema_id, info)


class _Renamed(Struct, frozen=True):
    table_id: int
    new_schema_id: int


class _RenamedTables(Struct, frozen=True):
    rename_table_infos: list[_Renamed]


def _new_schemas(job: Job) -> dict[int, int]:
    """Return the new database of each renamed table, by table id. Raises SourceError.

    Version 1 has parallel lists: old databases, new databases, new names, tables, and more.
    """
    args = job.args(_RenamedTables | list[Any])
    if isinstance(args, _RenamedTables):
        return {table.table_id: table.new_schema_id for table in args.rename_table_infos}
    try:
        _, schema_ids, _, table_ids, *_ = args
        return dict(zip(convert(table_ids, list[int]), convert(schema_ids, list[int]), strict=True))
    except (TypeError, ValueError, MsgspecError) as error:
        raise job.unreadable("arguments", error) from error


class _RecoveredTable(Struct, frozen=True):
    info: Raw = field(default=_NULL, name="TableInfo")


class _RecoveredSchema(Struct, frozen=True):
    """A database that comes back; its own info is beside these fields."""

    tables: list[_RecoveredTable] | None = field(default=None, name="RecoverTabsInfo")
    newer_tables: list[_RecoveredTable] | None = field(default=None, name="RecoverTableInfos")
    """Name of the same list since v8.4."""


_RECOVERED: Final = json.Decoder(_RecoveredSchema | None)


def _recovered(job: Job) -> Iterator[TableInfo]:
    """Yield the tables recovered with their database, as far as the job names them. Raises SourceError.

    Version 1 of the arguments is a list that begins with the database.
    """
    args = job.args(list[Raw] | dict[str, Raw]) or []
    if isinstance(args, dict):
        args = [args.get("recover_info", _NULL)]
    try:
        schema = decode(_RECOVERED, args[0]) if args else None
        for table in (schema.tables or schema.newer_tables or ()) if schema else ():
            if bytes(table.info) != b"null":
                yield decode_table_info(table.info)
    except ValueError as error:
        raise job.unreadable("recovered tables", error) from error
