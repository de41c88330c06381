"""The emulated cluster with a TiDB on top: DDL statements, and transactions of rows.

with Tidb() as tidb:
    tidb.execute("create database shop")
    tidb.execute("create table shop.orders (id bigint primary key, price decimal(10,2))")
    with tidb.transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "price": "9.99"})
"""

from __future__ import annotations

from typing import Any

from ...events import Ts
from ..cluster import Cluster
from .ddl import DdlWriter
from .schema import Schema
from .statements import Statements
from .transaction import SqlTransaction


class Tidb(Cluster):
    """A cluster with keys in the format of TiDB v8.1.

    `row_format` is 1 or 2; `row_checksum` adds checksums to rows; without `job_table` DDL jobs are in a list,
    as up to TiDB v6.1. `execute` isn't thread-safe; transactions may run in several threads.
    """

    def __init__(
        self,
        stores: int = 3,
        *,
        row_format: int = 2,
        row_checksum: bool = False,
        job_table: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(stores, **options)
        self.schema = Schema(row_format, row_checksum)
        self._statements = Statements(
            self, self.schema, DdlWriter(self, self.schema, self.pumps, job_table=job_table)
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

    def execute(self, statement: str) -> Ts:
        """Run a DDL statement; return the ts at which the schema changed, 0 if it didn't.

        CREATE, ALTER and DROP DATABASE; CREATE, ALTER, DROP, RENAME and TRUNCATE TABLE; CREATE and DROP
        INDEX; USE. Raises ValueError for what the emulator doesn't know or the schema doesn't allow.
        """
        return self._statements.run(statement)
