"""The schema at any ts: which tables existed, and how they were defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from threading import Lock
from typing import Final

from msgspec import Struct

from ...codec.tidb.job import Job
from ...codec.tidb.table_info import (
    DbInfo,
    TableInfo,
    decode_table_info,
    encode_table_info,
    holds_rows,
    partition_ids,
)
from ...errors import InvariantViolated
from ...events import Ts
from ...store.store import Store
from .effects import DropDatabase, DropTable, Effect, SetDatabase, SetTable, effects
from .infos import InfoCache, Infos
from .timeline import PartitionOwner, TableVersion, entries_since, entry_at

SYSTEM_SCHEMAS: Final = frozenset(
    {"information_schema", "inspection_schema", "metrics_schema", "mysql", "performance_schema", "sys"}
)
"""TiDB's system databases in lower case; the history omits them."""

CACHE_BYTES: Final = 4 << 20
"""Size of cached infos as stored; decoded they take about ten times as much memory."""


class TableAt(Struct, frozen=True):
    """A table's definition at some ts."""

    schema: str
    info: TableInfo
    since: Ts
    """First ts of this version; with the table's id it identifies the version."""

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.info.name}"


class Physical(Struct, frozen=True, gc=False, order=True):
    """A physical table, which has its own keys: a table without partitions, or one partition."""

    id: int
    schema: str
    table: str


class TableSetChange(Struct, frozen=True):
    """Physical tables added and removed by a job.

    A renamed table or exchanged partition is removed under its old name and added under its new one.
    """

    added: tuple[Physical, ...] = ()
    removed: tuple[Physical, ...] = ()


class _Touched(Struct, frozen=True):
    """Ids of the tables and partitions that a job changed."""

    tables: set[int]
    partitions: set[int]


class SchemaHistory:
    """All versions of all tables since a ts; older versions are pruned as the checkpoint advances.

    Table infos are kept in `store`, which only this history uses; names and numbers (about 600 bytes a table)
    and a bounded cache are in memory. One thread applies jobs; any thread may read and prune. A ts that is
    read must not be below the pruned ts; the result is complete only up to the last applied job. A restart
    builds a new history from the schema at the checkpoint. All methods raise StoreError.
    """

    def __init__(
        self,
        store: Store,
        ts: Ts,
        databases: Iterable[tuple[DbInfo, Iterable[TableInfo]]] = (),
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """`databases` is the whole schema at `ts`, read one table at a time.

        Instead it may be added by `add_database` and `add_table` before the first job.
        """
        self._infos: Final = Infos(store)
        self._cache: Final = InfoCache(cache_bytes)
        self._lock: Final = Lock()
        self._floor = ts
        self._databases: dict[int, DbInfo] = {}
        """Databases by id after the last job."""
        self._versions: dict[int, tuple[TableVersion, ...]] = {}
        """Versions by table id, oldest first."""
        self._owners: dict[int, tuple[PartitionOwner, ...]] = {}
        """Owners of present and former partitions by id, oldest first."""
        self._jobs: dict[tuple[Ts, int], _Touched] = {}
        """Changed ids by ts and id of the job, in order."""
        self._touched = _Touched(set(), set())
        """Ids changed by the job that is being applied."""
        for database, infos in databases:
            self.add_database(database)
            for info in infos:
                self.add_table(database.id, info)

    def add_database(self, info: DbInfo) -> None:
        """Add a database that exists from the beginning."""
        with self._lock:
            self._databases[info.id] = info

    def add_table(self, database_id: int, info: TableInfo) -> None:
        """Add a table that exists from the beginning; its database must be added before."""
        with self._lock:
            self._set(SetTable(database_id, info), self._floor, "")

    # --- reading ---------------------------------------------------------------------------------

    def table_at(self, physical_id: int, ts: Ts) -> TableAt | None:
        """Return the table at `ts` of a table or partition id; None if there was none.

        Raises InvariantViolated for a ts that was pruned.
        """
        with self._lock:
            self._check(ts)
            table_id = self._owner_at(physical_id, ts)
            version = self._version_at(table_id, ts)
            if version is None or physical_id not in (version.partitions or (table_id,)):
                return None
            return self._table_at(version)

    def logical_at(self, table_id: int, ts: Ts) -> TableAt | None:
        """Return the table of this id at `ts`, also if it is partitioned; None if there was none."""
        with self._lock:
            self._check(ts)
            version = self._version_at(table_id, ts)
            return None if version is None else self._table_at(version)

    def was_dropped(self, table_id: int, ts: Ts) -> bool:
        """Return True if the table existed before, and a job that isn't pruned has dropped it."""
        with self._lock:
            version = entry_at(self._versions.get(table_id, ()), ts)
            return version is not None and version.place is None

    def tables(self, ts: Ts, matches: Callable[[str, str], bool] | None = None) -> Iterator[TableAt]:
        """Yield the tables at `ts` by id; with `matches` only those whose schema and name it accepts."""
        with self._lock:
            self._check(ts)
            ids = sorted(self._versions)
        for table_id in ids:
            with self._lock:
                version = self._version_at(table_id, ts)
                if version is None or (matches is not None and not matches(version.schema, version.name)):
                    continue
                table = self._table_at(version)
            yield table

    def named(self, schema: str, table: str, ts: Ts) -> TableAt | None:
        """Return the table of this name at `ts`; None if there was none."""
        with self._lock:
            self._check(ts)
            for table_id in self._versions:
                version = self._version_at(table_id, ts)
                if version is not None and (version.schema, version.name) == (schema, table):
                    return self._table_at(version)
            return None

    def schemas(self) -> list[str]:
        """Return the names of the databases after the last job."""
        with self._lock:
            return [database.name for database in self._databases.values()]

    def physical_tables(self, ts: Ts) -> list[Physical]:
        """Return the physical tables at `ts` by id, without reading from disk."""
        with self._lock:
            self._check(ts)
            return sorted(
                physical for table_id in self._versions for physical in self._physical_at(table_id, ts)
            )

    def changes(self, job_id: int, ts: Ts) -> list[tuple[TableAt | None, TableAt | None]]:
        """Return the tables that a job at `ts` changed, before and after it; None before creation or after
        removal.

        Raises InvariantViolated for a job that wasn't applied or was pruned.
        """
        with self._lock:
            self._check(ts - 1)
            touched = self._jobs.get((ts, job_id))
            if touched is None:
                raise InvariantViolated(f"DDL job {job_id} at ts {ts} wasn't applied to the schema history")
            changed = []
            for table_id in sorted(touched.tables):
                before, after = self._version_at(table_id, ts - 1), self._version_at(table_id, ts)
                if before is not None or after is not None:
                    changed.append((self._shown(before), self._shown(after)))
            return changed

    # --- changing --------------------------------------------------------------------------------

    def apply(self, job: Job, ts: Ts) -> TableSetChange:
        """Apply a finished job; `ts` is the commit ts of its key-value pair, not below the last job's.

        Raises SourceError if the job can't be decoded.
        """
        with self._lock:
            wanted = list(effects(job, self))
            touched = {table_id for effect in wanted for table_id in self._tables_of(effect)}
            before = {physical for table_id in touched for physical in self._physical_at(table_id, ts)}
            self._jobs[ts, job.id] = self._touched = _Touched(touched, set())
            for effect in wanted:
                self._do(effect, ts, job.schema_name)
            after = {physical for table_id in touched for physical in self._physical_at(table_id, ts)}
            return TableSetChange(tuple(sorted(after - before)), tuple(sorted(before - after)))

    def prune(self, ts: Ts) -> None:
        """Drop versions that only rows below `ts` need."""
        with self._lock:
            self._floor = max(self._floor, ts)
            passed = list(takewhile(lambda job: job[0] <= self._floor, self._jobs))
            for job in passed:
                touched = self._jobs.pop(job)
                for table_id in touched.tables:
                    self._prune_table(table_id)
                for partition_id in touched.partitions:
                    self._prune_owner(partition_id)
            if passed:
                self._infos.tidy()

    # --- for effects(), under the lock -----------------------------------------------------------

    def owner_of(self, physical_id: int) -> int:
        owners = self._owners.get(physical_id)
        return owners[-1].table_id if owners else physical_id

    def current(self, table_id: int) -> tuple[int, TableInfo] | None:
        version = self._last(table_id)
        return None if version is None else (version.schema_id, self._table_at(version).info)

    # --- under the lock --------------------------------------------------------------------------

    def _check(self, ts: Ts) -> None:
        if ts < self._floor:
            raise InvariantViolated(
                f"the schema at ts {ts} was asked for, and kept only from {self._floor} on"
            )

    def _last(self, table_id: int) -> TableVersion | None:
        versions = self._versions.get(table_id)
        return versions[-1] if versions and versions[-1].place is not None else None

    def _version_at(self, table_id: int, ts: Ts) -> TableVersion | None:
        version = entry_at(self._versions.get(table_id, ()), ts)
        return version if version is not None and version.place is not None else None

    def _owner_at(self, physical_id: int, ts: Ts) -> int:
        owner = entry_at(self._owners.get(physical_id, ()), ts)
        return physical_id if owner is None else owner.table_id

    def _table_at(self, version: TableVersion) -> TableAt:
        place = version.place
        assert place is not None
        info = self._cache.get(place)
        if info is None:
            info = decode_table_info(self._infos.get(place))
            self._cache.put(place, info)
        return TableAt(version.schema, info, version.since)

    def _shown(self, version: TableVersion | None) -> TableAt | None:
        return None if version is None else self._table_at(version)

    def _physical_at(self, table_id: int, ts: Ts) -> list[Physical]:
        version = self._version_at(table_id, ts)
        if version is None:
            return []
        ids = version.partitions or (table_id,)
        return [Physical(id_, version.schema, version.name) for id_ in ids]

    def _tables_of(self, effect: Effect) -> list[int]:
        match effect:
            case SetTable():
                return [effect.info.id]
            case DropTable():
                return [effect.id]
            case DropDatabase():
                return [
                    table_id
                    for table_id in self._versions
                    if (version := self._last(table_id)) and version.schema_id == effect.id
                ]
        return []

    def _do(self, effect: Effect, ts: Ts, schema_name: str) -> None:
        match effect:
            case SetDatabase():
                self._databases[effect.info.id] = effect.info
            case DropDatabase():
                for table_id in self._tables_of(effect):
                    self._drop(table_id, ts)
                self._databases.pop(effect.id, None)
            case SetTable():
                self._set(effect, ts, schema_name)
            case DropTable():
                self._drop(effect.id, ts)

    def _set(self, effect: SetTable, ts: Ts, schema_name: str) -> None:
        info = effect.info
        database = self._databases.get(effect.schema_id)
        schema = database.name if database else schema_name
        if schema.lower() in SYSTEM_SCHEMAS:
            self._drop(info.id, ts)
            return
        if not holds_rows(info):
            return
        partitions = partition_ids(info)
        last = self._last(info.id)
        self._give(last.partitions if last else (), partitions, info.id, ts)
        place = self._infos.put(encode_table_info(info))
        self._add(info.id, TableVersion(ts, effect.schema_id, schema, info.name, place, partitions))

    def _drop(self, table_id: int, ts: Ts) -> None:
        last = self._last(table_id)
        if last is not None:
            self._give(last.partitions, (), table_id, ts)
            self._add(table_id, TableVersion(ts, last.schema_id, last.schema, last.name, None, ()))

    def _add(self, table_id: int, version: TableVersion) -> None:
        self._versions[table_id] = (*self._versions.get(table_id, ()), version)

    def _give(self, before: tuple[int, ...], after: tuple[int, ...], table_id: int, ts: Ts) -> None:
        """Set the owners of partitions that leave or join a table."""
        if before == after:
            return
        kept = set(before) & set(after)
        for partition_id in before:
            if partition_id not in kept and self.owner_of(partition_id) == table_id:
                exchanged = self._last(partition_id) is not None  # it became a table itself
                self._own(partition_id, partition_id if exchanged else 0, ts)
        for partition_id in after:
            if partition_id not in kept:
                self._own(partition_id, table_id, ts)

    def _own(self, partition_id: int, table_id: int, ts: Ts) -> None:
        owners = self._owners.get(partition_id, ())
        self._owners[partition_id] = (*owners, PartitionOwner(ts, table_id))
        self._touched.partitions.add(partition_id)

    def _prune_table(self, table_id: int) -> None:
        versions = self._versions.get(table_id, ())
        kept = entries_since(versions, self._floor)
        for version in versions[: len(versions) - len(kept)]:
            if version.place is not None:
                self._cache.forget(version.place)
                self._infos.forget(version.place)
        if len(kept) == 1 and kept[0].place is None:
            del self._versions[table_id]
        elif kept:
            self._versions[table_id] = kept

    def _prune_owner(self, partition_id: int) -> None:
        kept = entries_since(self._owners.get(partition_id, ()), self._floor)
        if len(kept) == 1 and kept[0].table_id in (0, partition_id):
            del self._owners[partition_id]
        elif kept:
            self._owners[partition_id] = kept
