from __future__ import annotations

import json
from collections import Counter

import pytest

from tidemill.events import Item, Table
from tidemill.sink import open_sink
from tidemill.testing.changes import MemoryStore
from tidemill.testing.sink_conformance import SinkConformance, apply


class FilePlace:
    """Plays the lines again."""

    at_least_once = False

    def __init__(self, path):
        self.path = path
        self.store = MemoryStore()

    def sink(self):
        return open_sink("copy", f"file://{self.path}", feed="test", store=self.store)

    def rows(self, table: Table):
        found: Counter[str] = Counter()
        for line in self.path.read_text().splitlines():
            document = json.loads(line)
            if f"{document['schema']}.{document['table']}" != table.full_name:
                continue
            if document["op"] == "alter":
                found = altered(found, document)
            if "before" in document:
                before = json.dumps(document["before"], sort_keys=True)
                assert found[before]
                found[before] -= 1
            if "after" in document:
                found[json.dumps(document["after"], sort_keys=True)] += 1
        rows = [json.loads(text) for text in found.elements()]
        return [tuple(_value(column, row[column.name]) for column in table.columns) for row in rows]


def _value(column, value):
    return int(value) if column.kind == "bigint" and value is not None else value


def altered(found, document):
    changed: Counter[str] = Counter()
    for text, count in found.items():
        row = json.loads(text)
        if "ADD" in document["query"]:
            row["paid"] = 7
        else:
            del row["note"]
        changed[json.dumps(row, sort_keys=True)] += count
    return changed


class PythonPlace:
    """Code that applies whole transactions, each once, by their ts: what comes again it has seen."""

    at_least_once = True

    def __init__(self):
        self.store = MemoryStore()
        self.tables = {}
        self.applied = 0
        self.open: list[Item] = []

    def sink(self):
        self.open = []
        return open_sink("copy", self.receive, feed="test", store=self.store)

    def receive(self, items):
        for item in items:
            self.open.append(item)
            if item.last:
                if item.commit_ts > self.applied:
                    apply(self.open, self.tables)
                    self.applied = item.commit_ts
                self.open = []

    def rows(self, table: Table):
        return list(self.tables[table.full_name].elements())


class TestFile(SinkConformance):
    @pytest.fixture
    def place(self, tmp_path):
        return FilePlace(tmp_path / "copy.ndjson")


class TestPython(SinkConformance):
    @pytest.fixture
    def place(self):
        return PythonPlace()
