"""A producer with a bounded queue, common to both outboxes."""

from __future__ import annotations

from collections import deque
from typing import Final

from confluent_kafka import Producer

from ..encoding.encoder import Message
from .client import KafkaClient, Now, Patience
from .options import DEFAULT_MAX_MESSAGE_BYTES
from .outbox import Partition

LOOK_SECONDS: Final = 0.1
_MAX_RECORD_BYTES: Final = 16 << 20
"""Larger than any checkpoint; the encoders and brokers have limits of their own."""


class Sender:
    """A producer whose queue is bounded."""

    def __init__(self, client: KafkaClient, now: Now, batch_bytes: int) -> None:
        """`batch_bytes` is the maximum size of a batch of messages to a partition."""
        options = client.options
        self._client: Final = client
        self._now: Final = now
        self._settings: Final[dict[str, object]] = {
            "linger.ms": "5",
            **options.client,
            "enable.idempotence": True,
            "compression.type": options.compression,
            "queue.buffering.max.messages": 0,  # bounded by bytes
            "queue.buffering.max.kbytes": options.buffer_bytes >> 10,
            "message.max.bytes": _MAX_RECORD_BYTES,
            "batch.size": min(batch_bytes or DEFAULT_MAX_MESSAGE_BYTES, DEFAULT_MAX_MESSAGE_BYTES),
        }
        self._producer: Producer | None = None
        self._backlog: Final[deque[tuple[Partition, list[Message]]]] = deque()

    @property
    def is_connected(self) -> bool:
        return self._producer is not None

    def _make(self, **settings: object) -> Producer:
        """Connect a producer; librdkafka's settings have _ for the points."""
        with self._client.explaining("connect"):
            self._producer = Producer(self._client.settings(**settings) | self._settings)
        return self._producer

    def _push(self, producer: Producer) -> None:
        """Move the backlog into the producer's queue, which may have to drain first."""
        patience = Patience(self._client, self._now)
        while self._backlog:
            partition, messages = self._backlog[0]
            taken = _produce(producer, *partition, messages)
            if taken == len(messages):
                self._backlog.popleft()
                continue
            self._backlog[0] = partition, messages[taken:]
            producer.poll(LOOK_SECONDS)
            patience.check((len(self._backlog), len(messages) - taken, len(producer)), "take messages")

    def _drain(self, producer: Producer) -> None:
        patience = Patience(self._client, self._now)
        while left := len(producer):
            producer.flush(LOOK_SECONDS)
            self._check()
            patience.check(left, "take messages")
        self._check()

    def _check(self) -> None:
        """Raise the error of a message that can't be delivered."""


def _produce(producer: Producer, topic: str, partition: int, messages: list[Message]) -> int:
    """Queue messages in order; return the number of those for which there was room.

    `produce_batch` takes half as long again as these calls, and has to be given dictionaries.
    """
    produce = producer.produce
    count = 0
    try:
        for message in messages:
            if message.headers is None:
                produce(topic, message.value, message.key, partition)
            else:
                produce(topic, message.value, message.key, partition, headers=message.headers)
            count += 1
    except BufferError:
        pass
    return count
