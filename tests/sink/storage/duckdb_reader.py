"""Run by the Python of `tests/services/duckdb-iceberg`: prints the rows of an Iceberg table as JSON."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import duckdb


def main(metadata: str) -> None:
    database = duckdb.connect(config={"allow_unsigned_extensions": True})
    for name in ("avro", "iceberg"):
        module = import_module(f"duckdb_extension_{name}")
        (path,) = Path(str(module.__file__)).parent.rglob("*.duckdb_extension")
        database.execute(f"LOAD '{path}'")
    rows = database.execute("SELECT * FROM iceberg_scan(?)", [metadata]).fetchall()
    print(json.dumps(rows, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
