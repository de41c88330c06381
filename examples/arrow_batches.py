"""Rows and changes of a table as Arrow columns; the cluster is in this process."""

import tempfile

import pyarrow as pa
import pyarrow.compute as pc

import tidemill
from tidemill.emulator.sql.sql import Tidb


def read(feed: tidemill.OpenFeed[tidemill.Transaction]) -> list[pa.RecordBatch]:
    """Return all changes up to the source's present end, acknowledged."""
    batches: list[pa.RecordBatch] = []
    for batch in feed.arrow_batches():
        batches.append(batch.data)
        feed.ack(batch)
    return batches


def main() -> None:
    with Tidb(stores=1) as tidb, tempfile.TemporaryDirectory() as state:
        source = f"tikv://{tidb.pd_address}"
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id bigint primary key, total decimal(10,2))")
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 1, "total": "9.99"})
            txn.insert("shop.orders", {"id": 2, "total": "0.01"})

        with tidemill.open(source, ["shop.*"], data_dir=state, until="now", arrow=True) as feed:
            existing = pa.Table.from_batches(read(feed))
        print(existing.num_rows, "rows of", pc.sum(pc.struct_field(existing["after"], "total")))

        with tidb.transaction() as txn:
            txn.update("shop.orders", 1, {"total": "19.99"})
            txn.delete("shop.orders", 2)

        with tidemill.open(source, ["shop.*"], data_dir=state, until="now", arrow=True) as feed:
            changes = pa.Table.from_batches(read(feed))
        print(changes["op"].to_pylist(), changes["before"].to_pylist())


if __name__ == "__main__":
    main()
