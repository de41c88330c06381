"""An emulated TiKV with the workload, in a process of its own: `python -m tests.spark.backlog.tikv_server`.

Takes the numbers of changes to make, one a line, and answers each with a line of JSON: the addresses of PD
and the ts. Ends when stdin closes.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.sql.sql import Tidb

from .workload import DELETE, TABLES, Changes, Workload

SPLIT_ROWS: Final = 8_000
"""Number of ids in each region of a table."""
_SPLITS: Final = 75


def main() -> None:
    with Tidb(stores=2, tick_seconds=0.2) as tidb:
        tidb.execute("create database shop")
        for table in TABLES:
            tidb.execute(
                f"create table shop.{table} (id bigint primary key, v bigint not null, price decimal(12,2), "
                "name varchar(80))"
            )
            id_ = tidb.schema.table(f"shop.{table}").info.id
            for number in range(_SPLITS):
                tidb.split(record_key(id_, (number + 1) * SPLIT_ROWS))
        workload = Workload()
        for line in sys.stdin:
            if rows := int(line):
                begun = workload.transactions
                workload.run(rows)
                for mutations in _mutations(tidb, workload.net_changes().since(begun)):
                    tidb.write(mutations)
            gc.collect()
            gc.freeze()
            sys.stdout.write(json.dumps({"pd": tidb.pd_address, "ts": tidb.tso()}) + "\n")
            sys.stdout.flush()


def _mutations(tidb: Tidb, changes: Changes) -> Iterator[list[tuple[str, bytes, bytes]]]:
    """Yield the mutations of each transaction."""
    encoders = [tidb.schema.table(f"shop.{table}").encoder.encode for table in TABLES]
    open_, found = -1, []
    for txn, table, op, id_, _, v in zip(*(column.tolist() for column in changes), strict=True):
        if txn != open_ and found:
            yield found
            found = []
        open_ = txn
        key, value = encoders[table](_row(id_, v))
        found.append(("delete", key, b"") if op == DELETE else ("put", key, value))
    yield found


def _row(id_: int, v: int) -> tuple[Any, ...]:
    return id_, v, Decimal(v % 100_000) + Decimal("0.25"), f"row {v} {'x' * (v % 50)}"


if __name__ == "__main__":
    main()
