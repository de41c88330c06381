"""Rows into Kafka, in rows per second, beside a bare loop of confluent-kafka that produces the same messages.

The rows are Python tuples in transactions of 1,000; the sink encodes them and chooses a partition by their
key. The yardstick has the messages and their partitions ready, calls `produce` for each and waits until all
are acknowledged, with an idempotent producer. Both start with topics that exist. The CPU time is that of this
process with librdkafka's threads, without the broker's, which shares the machine.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from ..engine.checkpoint import CheckpointFile
from ..events import Checkpoint, RowChange, Rows, Transaction, runs_of
from ..sink import Delivery, open_sink
from ..sink.encoding.encodings import make_encoder
from ..sink.kafka.route import Destination, PartitionRoute
from ..testing.kafka import Kafka
from .in_turn import Taken
from .sink import TABLE

_TRANSACTION: Final = 1_000
_ACCEPTED: Final = 10
"""Transactions that reach the sink at once."""
_PARTITIONS: Final = 4
_MOMENT: Final = datetime(2026, 3, 1, 4, 5, 6)  # noqa: DTZ001 - a datetime column has no zone
_DELIVERIES: Final = {"exactly_once": "exactly once", "at_least_once": "at least once"}


def run(*, rows: int = 200_000, rounds: int = 5, encoding: str = "canal-json") -> dict[str, object]:
    """Return one result in the form that all benchmarks share."""
    changes = _changes(rows)
    items = [
        Transaction(
            2 + first, 0, "bench", Rows(runs_of(changes[first : first + _TRANSACTION])), f"log:{first}"
        )
        for first in range(0, rows, _TRANSACTION)
    ]
    prepared = _prepared(changes, encoding)
    spent: dict[str, list[Taken]] = {name: [] for name in (*_DELIVERIES, "bare")}
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, Kafka(Path(name, "kafka")) as broker:
        for number in range(rounds + 1):  # the first one warms the broker up
            broker.create_topic(f"bare_{number}", _PARTITIONS)
            spent["bare"].append(_bare(broker, f"bare_{number}", prepared))
            for key, delivery in _DELIVERIES.items():
                broker.create_topic(f"{key}_{number}", _PARTITIONS)
                spent[key].append(_deliver(broker.url(f"{key}_{number}"), items, delivery, encoding))
    medians_of = {name: statistics.median([one.clock for one in all_[1:]]) for name, all_ in spent.items()}
    cpu = {name: statistics.median([one.cpu for one in all_[1:]]) for name, all_ in spent.items()}

    def ratio(ours: str, theirs: str) -> float:
        pairs = zip(spent[ours][1:], spent[theirs][1:], strict=True)
        return round(statistics.median([bare.clock / here.clock for here, bare in pairs]), 2)

    return {
        "bench": "kafka",
        "settings": {"rows": rows, "rounds": rounds, "partitions": _PARTITIONS, "encoding": encoding},
        "figures": {f"{name}_rows_per_second": round(rows / medians_of[name]) for name in _DELIVERIES}
        | {f"{name}_cpu_microseconds_per_row": round(cpu[name] / rows * 1e6, 2) for name in cpu},
        "yardstick": {"bare_produce_rows_per_second": round(rows / medians_of["bare"])},
        "ratio": {name: ratio(name, "bare") for name in _DELIVERIES}
        | {"exactly_once_to_at_least_once": ratio("exactly_once", "at_least_once")},
    }


def _changes(rows: int) -> list[RowChange]:
    """Return inserts of this number of rows."""
    return [
        RowChange(
            448231984775593985,
            448231984775593984,
            TABLE,
            "insert",
            None,
            (n, n * 7_919, Decimal(n).scaleb(-2), n / 7, f"customer {n}", _MOMENT, n % 100, f"note {n} " * 4),
        )
        for n in range(rows)
    ]


def _prepared(changes: Sequence[RowChange], encoding: str) -> list[tuple[bytes | None, bytes | None, int]]:
    """Return the key, value and partition of each message."""
    encoder = make_encoder(encoding, {}, lambda: 1_700_000_000_000)
    _, partitions = PartitionRoute(TABLE, Destination("bench", "key", ()), _PARTITIONS).distribute(
        list(changes)
    )
    messages = encoder.rows(changes)
    return [
        (message.key, message.value, number) for message, number in zip(messages, partitions, strict=True)
    ]


def _bare(broker: Kafka, topic: str, prepared: Sequence[tuple[bytes | None, bytes | None, int]]) -> Taken:
    """Return the time until all messages are acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": broker.brokers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 0,
            "log_level": 0,
        }
    )
    producer.produce(topic, b"connects", partition=0)
    producer.flush()
    begun = Taken.now()
    for key, value, partition in prepared:
        producer.produce(topic, value, key, partition)
    producer.flush()
    return Taken.now().since(begun)


def _deliver(url: str, items: Sequence[Transaction], delivery: str, encoding: str) -> Taken:
    """Return the time until all rows are durable with their checkpoint."""
    options = {"delivery": delivery, "partition": "key", "format": encoding}
    feed = url.rpartition("/")[2]  # a checkpoint of its own
    sink = open_sink("bench", url, feed=feed, store=CheckpointFile(Path("unused")), options=options)
    with closing(sink):
        sink.open()
        work = Delivery(sink, Checkpoint(1, "log:0", None, "bench"), "bench")  # nothing is to be loaded
        begun = Taken.now()
        for first in range(0, len(items), _ACCEPTED):
            work.accept(items[first : first + _ACCEPTED])
            work.run(time.monotonic())
        work.flush(time.monotonic())
        spent = Taken.now().since(begun)
        assert work.statistics().rows == sum(len(item.rows) for item in items)
        return spent
