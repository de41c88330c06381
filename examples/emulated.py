"""A TiDB cluster and its feed, both in this process, for testing your own code."""

import tempfile

import tidemill
from tidemill.emulator.sql.sql import Tidb


def main() -> None:
    with Tidb(stores=3) as tidb, tempfile.TemporaryDirectory() as state:
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id bigint primary key, total decimal(10,2))")
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 1, "total": "9.99"})

        tables = ["shop.*"]
        with tidemill.open(f"tikv://{tidb.pd_address}", tables, data_dir=state, until="now") as feed:
            for transaction in feed:  # the existing rows
                for row in transaction.rows:
                    print(row.op, row.after_dict())
                feed.ack(transaction)

        with tidb.transaction() as txn:
            txn.update("shop.orders", 1, {"total": "19.99"})
        tidb.drop_streams()  # one of many faults: nothing is lost by it

        with tidemill.open(f"tikv://{tidb.pd_address}", tables, data_dir=state, until="now") as feed:
            for transaction in feed:  # later changes
                for row in transaction.rows:
                    print(row.op, row.before_dict(), row.after_dict())
                feed.ack(transaction)


if __name__ == "__main__":
    main()
