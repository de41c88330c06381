"""The emulated cluster with a TiDB on top: DDL statements, and transactions of rows.

with Tidb() as tidb:
    tidb.execute("create database shop")
    tidb.execute("create table shop.orders (id bigint primary key, price decimal(10,2))")
    with tidb.transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "price": "9.99"})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...codec.tidb.key import record_span
from ...codec.tidb.table_info import TableInfo, partition_ids
from ...events import Row, Ts
from ..cluster import Cluster
from .ddl import DdlWriter
from .schema import Schema
from .statements import Statements
from .transaction import SqlTransaction


class Tidb(Cluster):
    """A cluster with keys in the format of TiDB v8.1.

    `row_format` is 1 or 2; `row_checksum` adds checksums to rows; without `job_table` DDL jobs are in a list,
    as up to TiDB v6.1; with `args_version` 2 their arguments are objects, as from v8.4 on; with
    `removes_late` a rewritten column is public one step before the job is done. `execute` isn't
    thread-safe; transactions may run in several threads.
    """

    def __init__(
        self,
        stores: int = 3,
        *,
        row_format: int = 2,
        row_checksum: bool = False,
        job_table: bool = True,
        args_version: int = 1,
        removes_late: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(stores, **options)
        self.schema = Schema(row_format, row_checksum)
        ddl = DdlWriter(self, self.schema, self.pumps, job_table=job_table)
        self._statements = Statements(
            self, self.schema, ddl, args_version=args_version, removes_late=removes_late
        )

    def transaction(self) -> SqlTransaction:
        return SqlTransaction(self, self.schema, self.pumps)

    def read(self, key: bytes, ts: Ts) -> bytes | None:
        """Return the value of a raw key at `ts`; None if there is none. Ignores locks."""
        return self._loop.call(self._read, key, ts)

    def _read(self, key: bytes, ts: Ts) -> bytes | None:
        self.resolved.observe(ts)
        write = self.keyspace.locate_raw(key).shard.read(key, ts)
        return write.value if write else None

    def rows(self, name: str) -> list[Row]:
        """Return the present rows of a table by its qualified name. Ignores locks."""
        table = self.schema.table(name)
        return table.decoder.decode(self.pairs(table.info, self.tso()))

    def pairs(self, info: TableInfo, ts: Ts) -> list[tuple[bytes, bytes]]:
        """Return the raw keys and values of a table's rows at `ts`. Ignores locks."""
        return [
            pair
            for physical_id in partition_ids(info) or (info.id,)
            for pair in self._loop.call(self._scan, *record_span(physical_id), ts)
        ]

    def _scan(self, start: bytes, end: bytes, ts: Ts) -> list[tuple[bytes, bytes]]:
        self.resolved.observe(ts)
        pairs = []
        for region in self.keyspace:
            for key in region.shard.range(start, end):
                write = region.shard.read(key, ts)
                if write is not None:
                    pairs.append((key, write.value))
        return pairs

    def execute(self, statement: str, between: Callable[[], object] = lambda: None) -> Ts:
        """Run a DDL statement; return the ts at which the schema changed, 0 if it didn't.

        A job of several steps calls `between` after each of them but the last one.

        CREATE, ALTER and DROP DATABASE; CREATE, ALTER, DROP, RENAME and TRUNCATE TABLE; CREATE and DROP
        INDEX; USE. Raises ValueError for what the emulator doesn't know or the schema doesn't allow.
        """
        return self._statements.run(statement, between)
