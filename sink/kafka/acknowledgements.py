"""The outbox of delivery at least once."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from ...failpoint import reach
from .client import KafkaClient, Now
from .outbox import Outgoing
from .sender import Sender


class BrokerAcknowledgements(Sender):
    """At least once. A message stays queued until a broker has it, so that those of a partition keep their
    order: nothing is sent again from here that may still arrive."""

    def __init__(self, client: KafkaClient, now: Now, batch_bytes: int) -> None:
        super().__init__(client, now, batch_bytes)
        self._failed: KafkaError | None = None

    @property
    def keeps(self) -> bool:
        return self._failed is None and self._producer is not None

    def connect(self) -> None:
        self._failed = None
        self._settings["on_delivery"] = self._delivered
        self._make(message_timeout_ms=0, delivery_report_only_error=True)  # 0: never given up

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _check(self) -> None:
        if (error := self._failed) is not None:
            raise self._client.explained(error, "write")

    def send(self, messages: Outgoing) -> None:
        producer = self._producer
        assert producer is not None
        self._backlog.extend(messages.items())
        with self._client.explaining("write"):
            self._push(producer)
            producer.poll(0)
        self._check()
        reach("kafka.sent")

    def commit(self, messages: Outgoing, records: Outgoing) -> None:
        producer = self._producer
        assert producer is not None
        self.send(messages)
        with self._client.explaining("write"):
            self._drain(producer)
        reach("kafka.before_commit")
        self.send(records)
        with self._client.explaining("commit"):
            self._drain(producer)
        reach("kafka.committed")

    def drop(self) -> None:
        producer, self._producer = self._producer, None
        self._backlog.clear()
        if producer is not None:
            producer.purge(blocking=False)
