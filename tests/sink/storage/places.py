"""Prefixes that outlive their sinks, and what a reader finds in them."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidemill.events import Row, Table
from tidemill.sink import Sink, open_sink
from tidemill.testing.changes import MemoryStore
from tidemill.testing.s3 import S3Store

from ..test_conformance import altered


class Place:
    """Plays the changes of the layout "tables" again, and checks that no change is there twice."""

    at_least_once = False

    def __init__(self, **options: Any) -> None:
        self.options = {"format": "ndjson", "flush_seconds": 0.0, **options}

    def url(self) -> str:
        raise NotImplementedError

    def objects(self) -> dict[str, bytes]:
        raise NotImplementedError

    def sink(self, feed: str = "test", **options: Any) -> Sink:
        return open_sink("copy", self.url(), feed=feed, store=MemoryStore(), options=self.options | options)

    def changes(self, folder: str) -> list[dict[str, Any]]:
        """Return the changes in a folder, in their order."""
        found = []
        for name, content in self.objects().items():
            if name.startswith(f"{folder}/"):
                found += _changes(name, content)
        keys = [_key(change) for change in found]
        assert len(set(keys)) == len(keys)
        return sorted(found, key=_key)

    def rows(self, table: Table) -> list[Row]:
        statements = self.changes("table=ddl")
        changes = self.changes(f"table={table.full_name}")
        changes += [one for one in statements if (one["schema"], one["table"]) == (table.schema, table.name)]
        found: Counter[str] = Counter()
        for change in sorted(changes, key=_key):
            if change["op"] == "alter":
                found = altered(found, change)
            if change.get("before") is not None:
                before = json.dumps(change["before"], sort_keys=True)
                assert found[before]
                found[before] -= 1
            if change.get("after") is not None:
                found[json.dumps(change["after"], sort_keys=True)] += 1
        rows = [json.loads(text) for text in found.elements()]
        return [tuple(_value(column, row[column.name]) for column in table.columns) for row in rows]


def _changes(name: str, content: bytes) -> list[dict[str, Any]]:
    if name.endswith(".parquet"):
        return pq.read_table(io.BytesIO(content)).to_pylist()
    return [json.loads(line) for line in content.splitlines()]


def _key(change: dict[str, Any]) -> tuple[Any, ...]:
    if "commit_ts" in change:
        return change.get("source", ""), change["commit_ts"], change["start_ts"], change["sequence"]
    return change["source"], int(change["ts"]), change.get("n", 0)


def _value(column: Any, value: Any) -> Any:
    return int(value) if column.kind == "bigint" and value is not None else value


class DirectoryPlace(Place):
    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(**options)
        self.path = path

    def url(self) -> str:
        return f"directory://{self.path}"

    def objects(self) -> dict[str, bytes]:
        paths = [path for path in sorted(self.path.rglob("*")) if path.is_file()]
        names = [(str(path.relative_to(self.path)), path) for path in paths]
        return {name: path.read_bytes() for name, path in names if not name.startswith("_tidemill/")}


class BucketPlace(Place):
    def __init__(self, server: S3Store, path: str, **options: Any) -> None:
        super().__init__(**options)
        self.server = server
        self.path = path

    def url(self) -> str:
        return self.server.url(self.path)

    def objects(self) -> dict[str, bytes]:
        return self.server.objects(self.path)
