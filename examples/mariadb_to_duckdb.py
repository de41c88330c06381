"""Copy a schema into a DuckDB file, exactly once, until stopped.

python examples/mariadb_to_duckdb.py mysql://user:password@host:port
"""

import sys

import tidemill


def main(source: str, data_dir: str = "state", until: str | None = None) -> None:
    copy = {"name": "copy", "url": f"duckdb:///{data_dir}/copy.duckdb"}
    with tidemill.open(source, ["shop.*"], data_dir=data_dir, until=until, sinks=[copy]) as feed:
        for txn in feed:  # the file has its own checkpoint
            feed.ack(txn)


if __name__ == "__main__":
    main(*sys.argv[1:])
