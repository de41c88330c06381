"""A feed of an emulated TiDB in this process, by a `tidemill` in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.datum import Flag
from tidemill.codec.tidb.job import Job, encode_job
from tidemill.codec.tidb.job_entry import JOB_COLUMN, JOB_TABLE_ID
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.old_row import join_row
from tidemill.codec.tidb.table_info import TableInfo, encode_table_info
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.feeds import CopiedTable


class TidbPlace(CopiedTable):
    """A table `shop.item`, and a feed that copies it into SQLite."""

    server: Tidb  # type: ignore[assignment]
    source_line = "pd_retry_seconds = 0.2\ngc_interval_seconds = 0.1"

    def __init__(self, directory: Path, server: Tidb) -> None:
        self.rows: dict[int, str] = {}
        super().__init__(directory, server, "shop")  # type: ignore[arg-type]

    # --- the source

    def execute(self, *statements: str) -> list[Any]:
        if not self.server.schema.has_database(self.schema):
            self.server.execute(f"create database {self.schema}")
        for statement in statements:
            self.server.execute(statement)
        return []

    def insert(self, *ids: int, text: str = "item {}") -> None:
        with self.server.transaction() as txn:
            for number in ids:
                self.rows[number] = text.format(number)
                txn.insert(f"{self.schema}.item", (number, self.rows[number]))

    def present(self) -> list[tuple[Any, ...]]:
        return sorted(self.rows.items())

    @property
    def source_url(self) -> str:
        return f"tikv://{self.server.pd_address}"

    # --- what no statement can do

    def info(self, table: str = "item") -> TableInfo:
        return self.server.schema.table(f"{self.schema}.{table}").info

    def write(self, key: bytes, value: bytes) -> int:
        """The commit ts."""
        return self.server.write([("put", key, value)])

    def write_row(self, number: int, value: bytes) -> int:
        """A row of item as it is in storage; the commit ts."""
        return self.write(record_key(self.info().id, number), value)

    def write_info(self, info: TableInfo | bytes, table: str = "item") -> int:
        """Write a table's info into the schema without a job; return the commit ts."""
        database = self.server.schema.database(self.schema)
        key = meta.hash_key(meta.database_field(database.id), meta.table_field(self.info(table).id))
        return self.write(key, info if isinstance(info, bytes) else encode_table_info(info))

    def write_job(self, job: Job) -> int:
        """Write a job's row into the table of running jobs; return the commit ts."""
        row = join_row({JOB_COLUMN: (Flag.COMPACT_BYTES, encode_job(job))})
        return self.write(record_key(JOB_TABLE_ID, job.id), row)

    def configure(self, *, source: str | Sequence[str] = "", **more: Any) -> None:
        super().configure(source=source if isinstance(source, str) else "\n".join(source), **more)
