"""The checkpoint of a sink in a compacted topic."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...errors import Retryable
from ...events import Checkpoint
from ..encoding.encoder import Message
from .client import NOT_YET, KafkaClient, Now, Patience
from .outbox import Outgoing

_PARTITION: Final = 0
_LOOK_SECONDS: Final = 0.1


class Stored(NamedTuple):
    """A sink's records in the topic."""

    checkpoint: Checkpoint | None
    topics: tuple[str, ...]
    """Topics that were written, for watermarks after a restart."""


class Home:
    """Records of one sink: its checkpoint, and one for each topic whose name depends on a table."""

    def __init__(self, client: KafkaClient, feed: str, sink: str, now: Now) -> None:
        self._client: Final = client
        self._now: Final = now
        self.topic: Final = client.checkpoint_topic
        self._where: Final = f"topic {self.topic!r}, feed {feed!r}, sink {sink!r}"
        self._owner: Final = [feed, sink]

    def records(self, checkpoint: Checkpoint, topics: Iterable[str]) -> Outgoing:
        """Return the records of a checkpoint, and of topics that are written for the first time."""
        topic_records = [self._record([*self._owner, topic], topic) for topic in topics]
        return {
            (self.topic, _PARTITION): [
                *topic_records,
                self._record(self._owner, encode_checkpoint(checkpoint)),
            ]
        }

    def _record(self, key: list[str], value: str) -> Message:
        return Message(_key(key), value.encode(), 0)

    def read(self, end: int) -> Stored:
        """Return what committed transactions have stored before the offset `end` of the topic.

        Raises Retryable, also if a transaction is open there; SinkError, and CheckpointError for a damaged
        checkpoint.
        """
        latest = self._latest(end)
        content = latest.get(_key(self._owner))
        checkpoint = content and decode_checkpoint(content.decode("utf-8", "replace"), self._where)[0]
        prefix = _key(self._owner)[:-1] + b","
        topics = tuple(value.decode() for key, value in latest.items() if key.startswith(prefix))
        return Stored(checkpoint or None, topics)

    def _latest(self, end: int) -> dict[bytes, bytes]:
        """Return the last value of each key."""
        doing = f"read topic {self.topic!r}"
        consumer = Consumer(
            self._client.settings(
                group_id="tidemill",  # librdkafka wants one; offsets are neither read nor committed
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                fetch_wait_max_ms=10,  # the end of the topic is known after an empty answer
            )
        )
        latest: dict[bytes, bytes] = {}
        patience = Patience(self._client, self._now)
        count = 0
        try:
            with self._client.explaining(doing):
                consumer.assign([TopicPartition(self.topic, _PARTITION, self._first(consumer, patience))])
                while True:
                    message = consumer.poll(_LOOK_SECONDS)
                    patience.check(count, doing)
                    if message is None:
                        continue
                    if (error := message.error()) is not None:
                        if error.code() != KafkaError._PARTITION_EOF:
                            raise KafkaException(error)
                        if (message.offset() or 0) < end:
                            raise Retryable(
                                f"topic {self.topic!r} has an open transaction of another writer: it ends "
                                "with that one's time-out, or its next start"
                            )
                        return latest
                    count += 1
                    key, value = message.key(), message.value()
                    if key is not None and value is not None:
                        latest[key] = value
        finally:
            consumer.close()

    def _first(self, consumer: Consumer, patience: Patience) -> int:
        """Return the first offset: a consumer that looks for it itself takes half a second."""
        partition = TopicPartition(self.topic, _PARTITION)
        while True:
            try:
                offsets = consumer.get_watermark_offsets(partition, self._client.options.timeout_seconds)
                return int(offsets[0])
            except KafkaException as error:
                if error.args[0].code() not in NOT_YET:
                    raise
                patience.check(None, f"read topic {self.topic!r}")
                consumer.poll(_LOOK_SECONDS)


def _key(parts: list[str]) -> bytes:
    return json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
