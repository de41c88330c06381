"""Follow a database inside this process: python examples/embedded.py mysql://user:password@host:port"""

import sys

import tidemill


def main(source: str, data_dir: str = "state", until: str | None = None) -> None:
    with tidemill.open(source=source, tables=["shop.*"], data_dir=data_dir, until=until) as feed:
        for txn in feed:
            for row in txn.rows:
                print(row.op, row.table.full_name, row.before_dict(), row.after_dict())
            feed.ack(txn)  # after a restart the feed continues after this transaction


if __name__ == "__main__":
    main(*sys.argv[1:])
