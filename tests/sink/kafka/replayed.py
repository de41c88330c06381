"""Topics as a target of the conformance suite: their messages are played again."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from typing import Any

from tidemill.events import Row, Table
from tidemill.sink import Sink, open_sink
from tidemill.testing.changes import MemoryStore
from tidemill.testing.kafka import messages

_numbers = count(1)


class KafkaPlace:
    """A topic of one partition. At least once, a message that was seen before is skipped, by its header."""

    def __init__(self, brokers: str, **options: Any) -> None:
        self.at_least_once = options.get("delivery") == "at least once"
        self.brokers = brokers
        self.topic = f"rows_{next(_numbers)}"
        self.options = {
            "checkpoint_topic": f"{self.topic}_checkpoint",
            "commit_seconds": 0,
            "partitions": 1,
            "headers": {"at": "{commit_ts}/{row}"},
            "encoding": {"enable-tidb-extension": True},
            **options,
        }

    def sink(self, name: str = "copy", **options: Any) -> Sink:
        url = f"kafka://{self.brokers}/{self.topic}"
        return open_sink(name, url, feed="test", store=MemoryStore(), options=self.options | options)

    def documents(self) -> list[Any]:
        """Return the messages without watermarks, each once."""
        found = {}
        for message in messages(self.brokers, self.topic, committed=not self.at_least_once):
            document = json.loads(message.value() or b"")
            if document["type"] != "TIDB_WATERMARK":
                at = dict(message.headers() or ()).get("at") or document["_tidb"]["commitTs"]
                found.setdefault(at if self.at_least_once else len(found), document)
        return list(found.values())

    def rows(self, table: Table) -> list[Row]:
        there: Counter[str] = Counter()
        for document in self.documents():
            if (document["database"], document["table"]) != (table.schema, table.name):
                continue
            if document["isDdl"]:
                there = _altered(there, document["sql"])
                continue
            gone = {"UPDATE": document["old"], "DELETE": document["data"]}.get(document["type"])
            for row in gone or ():
                text = json.dumps(row, sort_keys=True)
                assert there[text]
                there[text] -= 1
            for row in document["data"] if document["type"] != "DELETE" else ():
                there[json.dumps(row, sort_keys=True)] += 1
        return [
            tuple(_value(column.kind, row[column.name]) for column in table.columns)
            for row in map(json.loads, there.elements())
        ]


def _altered(rows: Counter[str], statement: str) -> Counter[str]:
    changed: Counter[str] = Counter()
    for text, number in rows.items():
        row = json.loads(text)
        if "ADD" in statement:
            row["paid"] = "7"
        elif "DROP" in statement:
            del row["note"]
        changed[json.dumps(row, sort_keys=True)] += number
    return changed


def _value(kind: str, value: str | None) -> Any:
    return int(value) if value is not None and kind in ("int", "bigint") else value
