"""A TiDB of dicts: it makes the jobs that statements leave, and knows what the schema was at any ts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ..codec.tidb.action import Action
from ..codec.tidb.job import DONE, PUBLIC, Job, encode_job, make_args, make_outcome
from ..codec.tidb.meta import DDL_JOBS, list_key
from ..codec.tidb.table_info import (
    ColumnInfo,
    DbInfo,
    PartitionDefinition,
    PartitionInfo,
    TableInfo,
    partition_ids,
)
from ..events import PUT, KvChange

BIGINT = 8
NOT_NULL_PRIMARY = 1 | 2


def column(id_: int, name: str, offset: int, type_: int = BIGINT, **more: Any) -> ColumnInfo:
    more.setdefault("length", 20)
    more.setdefault("charset", "binary")
    more.setdefault("collation", "binary")
    return ColumnInfo(id=id_, name=name, offset=offset, type=type_, **more)


class Tidb:
    """Statements are methods; each returns the job that it leaves when it is done."""

    def __init__(self, first_id: int = 100) -> None:
        self.last_id = first_id
        self.version = 0
        self.databases: dict[str, DbInfo] = {}
        self.tables: dict[tuple[str, str], TableInfo] = {}
        self.dropped: dict[tuple[str, str], TableInfo] = {}

    def snapshot(self) -> list[tuple[DbInfo, list[TableInfo]]]:
        return [
            (info, [table for (schema, _), table in self.tables.items() if schema == name])
            for name, info in self.databases.items()
        ]

    def physical(self) -> dict[int, tuple[str, TableInfo]]:
        """By what has keys of its own: schema and info."""
        return {
            id_: (schema, info)
            for (schema, _), info in self.tables.items()
            for id_ in partition_ids(info) or (info.id,)
        }

    # --- databases

    def create_database(self, schema: str) -> Job:
        info = self.databases[schema] = DbInfo(id=self._new_id(), name=schema)
        return self._job(Action.CREATE_SCHEMA, schema, f"create database {schema}", db=info)

    def alter_database(self, schema: str) -> Job:
        info = self.databases[schema] = replace(self.databases[schema], collation="utf8mb4_general_ci")
        query = f"alter database {schema} collate utf8mb4_general_ci"
        return self._job(Action.MODIFY_SCHEMA_CHARSET_AND_COLLATE, schema, query, db=info)

    def drop_database(self, schema: str) -> Job:
        job = self._job(Action.DROP_SCHEMA, schema, f"drop database {schema}", db=self.databases[schema])
        del self.databases[schema]
        for name in [name for name in self.tables if name[0] == schema]:
            self.dropped[name] = self.tables.pop(name)
        return job

    # --- tables

    def create_table(self, schema: str, name: str, partitions: int = 0) -> Job:
        info = self.tables[schema, name] = self._new_table(name, partitions)
        query = f"create table {name} (id bigint primary key)"
        return self._job(Action.CREATE_TABLE, schema, query, table=info)

    def create_tables(self, schema: str, names: Iterable[str]) -> Job:
        infos = [self._new_table(name, 0) for name in names]
        for info in infos:
            self.tables[schema, info.name] = info
        return self._job(Action.CREATE_TABLES, schema, "create tables", tables=infos, table_id=infos[0].id)

    def create_view(self, schema: str, name: str) -> Job:
        info = TableInfo(id=self._new_id(), name=name, is_view=True)
        return self._job(Action.CREATE_VIEW, schema, f"create view {name}", table=info)

    def drop_table(self, schema: str, name: str) -> Job:
        info = self.dropped[schema, name] = self.tables.pop((schema, name))
        return self._job(Action.DROP_TABLE, schema, f"drop table {name}", table=info)

    def recover_table(self, schema: str, name: str) -> Job:
        info = self.tables[schema, name] = self.dropped.pop((schema, name))
        return self._job(Action.RECOVER_TABLE, schema, f"recover table {name}", table=info)

    def truncate_table(self, schema: str, name: str) -> Job:
        old = self.tables[schema, name]
        info = self.tables[schema, name] = self._with_new_ids(old)
        query = f"truncate table {name}"
        return self._job(Action.TRUNCATE_TABLE, schema, query, table=info, table_id=old.id)

    def rename_table(self, old: tuple[str, str], new: tuple[str, str]) -> Job:
        info = self.tables[new] = replace(self.tables.pop(old), name=new[1])
        query = f"rename table {'.'.join(old)} to {'.'.join(new)}"
        args = [self.databases[old[0]].id, {"O": new[1], "L": new[1].lower()}]
        return self._job(Action.RENAME_TABLE, new[0], query, table=info, args=args)

    def rename_tables(self, pairs: list[tuple[tuple[str, str], tuple[str, str]]], version: int = 1) -> Job:
        infos = []
        for old, new in pairs:
            info = self.tables[new] = replace(self.tables.pop(old), name=new[1])
            infos.append(info)
        new_schemas = [self.databases[new[0]].id for _, new in pairs]
        old_schemas = [self.databases[old[0]].id for old, _ in pairs]
        args: object = [old_schemas, new_schemas, [], [info.id for info in infos], []]
        if version == 2:
            renamed = zip(infos, new_schemas, strict=True)
            args = {"rename_table_infos": [{"table_id": i.id, "new_schema_id": s} for i, s in renamed]}
        query = "rename table " + ", ".join(f"{'.'.join(old)} to {'.'.join(new)}" for old, new in pairs)
        schema = pairs[-1][1][0]
        return self._job(
            Action.RENAME_TABLES, schema, query, table=infos[-1], tables=infos, args=args, job_version=version
        )

    # --- columns and what belongs to a table

    def alter(self, schema: str, name: str, type_: int, query: str, **changes: object) -> Job:
        info = self.tables[schema, name] = replace(self.tables[schema, name], **changes)
        return self._job(type_, schema, f"alter table {name} {query}", table=info)

    def add_column(self, schema: str, name: str, added: str, at: int | None = None, **more: Any) -> Job:
        old = self.tables[schema, name]
        columns = list(old.columns)
        new_id = max(c.id for c in columns) + 1 if columns else 1
        columns.insert(len(columns) if at is None else at, column(new_id, added, 0, **more))
        columns = [replace(c, offset=offset) for offset, c in enumerate(columns)]
        query = f"add column {added} bigint"
        return self.alter(schema, name, Action.ADD_COLUMN, query, columns=tuple(columns))

    def drop_column(self, schema: str, name: str, dropped: str) -> Job:
        columns = [c for c in self.tables[schema, name].columns if c.name != dropped]
        columns = [replace(c, offset=offset) for offset, c in enumerate(columns)]
        return self.alter(schema, name, Action.DROP_COLUMN, f"drop column {dropped}", columns=tuple(columns))

    def modify_column(self, schema: str, name: str, modified: str, query: str, **changes: object) -> Job:
        columns = tuple(
            replace(c, **changes) if c.name == modified else c for c in self.tables[schema, name].columns
        )
        return self.alter(schema, name, Action.MODIFY_COLUMN, f"modify column {query}", columns=columns)

    def comment(self, schema: str, name: str, text: str) -> Job:
        return self.alter(schema, name, Action.MODIFY_TABLE_COMMENT, f"comment '{text}'", comment=text)

    # --- partitions

    def _partitioned(self, schema: str, name: str) -> PartitionInfo:
        partition = self.tables[schema, name].partition
        assert partition is not None, f"{schema}.{name} has no partitions"
        return partition

    def add_partition(self, schema: str, name: str) -> Job:
        old = self._partitioned(schema, name)
        new = replace(old, definitions=(*old.definitions, self._new_partition(len(old.definitions))))
        return self.alter(schema, name, Action.ADD_TABLE_PARTITION, "add partition", partition=new)

    def drop_partition(self, schema: str, name: str) -> Job:
        old = self._partitioned(schema, name)
        new = replace(old, definitions=old.definitions[1:])
        return self.alter(schema, name, Action.DROP_TABLE_PARTITION, "drop partition p0", partition=new)

    def truncate_partition(self, schema: str, name: str) -> Job:
        old = self._partitioned(schema, name)
        first = replace(old.definitions[0], id=self._new_id())
        new = replace(old, definitions=(first, *old.definitions[1:]))
        query = "truncate partition p0"
        return self.alter(schema, name, Action.TRUNCATE_TABLE_PARTITION, query, partition=new)

    def reorganize_partition(self, schema: str, name: str) -> Job:
        old = self._partitioned(schema, name)
        new = replace(old, definitions=tuple(map(self._new_partition, range(len(old.definitions) + 1))))
        query = "reorganize partition"
        return self.alter(schema, name, Action.REORGANIZE_PARTITION, query, partition=new)

    def remove_partitioning(self, schema: str, name: str) -> Job:
        old = self.tables[schema, name]
        info = self.tables[schema, name] = replace(old, id=self._new_id(), partition=None)
        query = f"alter table {name} remove partitioning"
        return self._job(Action.REMOVE_PARTITIONING, schema, query, table=info, table_id=old.id)

    def exchange_partition(self, partitioned: tuple[str, str], other: tuple[str, str]) -> Job:
        """The job carries the partitioned table's info beside the other table's ids."""
        table, plain = self.tables[partitioned], self.tables[other]
        partition = self._partitioned(*partitioned)
        first, *rest = partition.definitions
        definitions = (replace(first, id=plain.id), *rest)
        info = replace(table, partition=replace(partition, definitions=definitions))
        self.tables[partitioned] = info
        self.tables[other] = replace(plain, id=first.id)
        query = f"alter table {partitioned[1]} exchange partition p0 with table {other[1]}"
        args = [first.id, self.databases[partitioned[0]].id, info.id, "p0", True]
        return self._job(
            Action.EXCHANGE_TABLE_PARTITION, other[0], query, table=info, table_id=plain.id, args=args
        )

    # --- the rest

    def _new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def _new_table(self, name: str, partitions: int) -> TableInfo:
        return TableInfo(
            id=self._new_id(),
            name=name,
            columns=(column(1, "id", 0, flags=NOT_NULL_PRIMARY),),
            pk_is_handle=True,
            partition=self._partitions(partitions),
        )

    def _partitions(self, count: int) -> PartitionInfo | None:
        return PartitionInfo(definitions=tuple(map(self._new_partition, range(count)))) if count else None

    def _new_partition(self, number: int) -> PartitionDefinition:
        return PartitionDefinition(self._new_id(), f"p{number}")

    def _with_new_ids(self, info: TableInfo) -> TableInfo:
        info = replace(info, id=self._new_id())
        if info.partition is None:
            return info
        return replace(info, partition=self._partitions(len(info.partition.definitions)))

    def _job(
        self,
        type_: int,
        schema: str,
        query: str,
        *,
        db: DbInfo | None = None,
        table: TableInfo | None = None,
        tables: Iterable[TableInfo] = (),
        table_id: int = 0,
        args: object = None,
        job_version: int = 1,
    ) -> Job:
        self.version += 1
        return Job(
            id=self._new_id(),
            type=type_,
            state=DONE,
            schema_state=PUBLIC,
            schema_id=self.databases[schema].id,
            table_id=table_id or (table.id if table else 0),
            schema_name=schema,
            query=query,
            raw_args=make_args(args),
            outcome=make_outcome(self.version, db=db, table=table, tables=tables),
            version=job_version,
        )


def change_of(job: Job, ts: int) -> KvChange:
    """The change that ends a job, as in TiDB up to v6.1."""
    return KvChange(ts, ts - 1, PUT, list_key(DDL_JOBS, 0), encode_job(job))
