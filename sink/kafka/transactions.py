"""The outbox of delivery exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from ...errors import SinkError, TidemillError
from ...failpoint import reach
from .client import FENCED, KafkaClient, Now, Patience
from .outbox import Outgoing
from .sender import LOOK_SECONDS, Sender

_ABORT_SECONDS: Final = 2.0


class KafkaTransactions(Sender):
    """Exactly once: everything between two commits becomes visible together."""

    keeps = False

    def __init__(self, client: KafkaClient, now: Now, batch_bytes: int, transactional_id: str) -> None:
        super().__init__(client, now, batch_bytes)
        self._id: Final = transactional_id
        self._began: float | None = None

    def connect(self) -> None:
        options = self._client.options
        producer = self._make(
            transactional_id=self._id, transaction_timeout_ms=options.transaction_seconds * 1000
        )
        try:
            with self._explaining("begin transactions"):
                self._initialize(producer)
        except BaseException:
            self.drop()
            raise

    def _initialize(self, producer: Producer) -> None:
        patience = Patience(self._client, self._now)
        while True:
            try:
                producer.init_transactions(1.0)
                return
            except KafkaException as error:
                kafka_error: KafkaError = error.args[0]
                if not kafka_error.retriable() and kafka_error.code() != KafkaError._TIMED_OUT:
                    raise
                producer.poll(0)  # problems are reported there
                patience.check(None, "begin transactions")

    def send(self, messages: Outgoing) -> None:
        producer = self._producer
        assert producer is not None
        with self._explaining("write"):
            if self._began is None:
                producer.begin_transaction()
                self._began = self._now()
            self._backlog.extend(messages.items())
            self._push(producer)
        reach("kafka.sent")

    def commit(self, messages: Outgoing, records: Outgoing) -> None:
        producer = self._producer
        assert producer is not None
        self.send({**messages, **records})
        with self._explaining("write"):
            self._drain(producer)
        reach("kafka.before_commit")
        with self._explaining("commit"):
            self._end(producer)
        self._began = None
        reach("kafka.committed")

    def _end(self, producer: Producer) -> None:
        patience = Patience(self._client, self._now)
        while True:
            try:
                producer.commit_transaction(self._client.options.timeout_seconds)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                patience.check(None, "commit")

    @contextmanager
    def _explaining(self, doing: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise self._explained(self._cause(error.args[0]), doing) from error

    def _cause(self, error: KafkaError) -> KafkaError:
        """Return the error that made the transaction fail, if this one says only that it did."""
        if error.code() == KafkaError._STATE and self._producer is not None:
            try:
                self._producer.commit_transaction(LOOK_SECONDS)  # which a failed transaction refuses
            except KafkaException as cause:
                kafka_error: KafkaError = cause.args[0]
                return kafka_error
        return error

    def _explained(self, error: KafkaError, doing: str) -> TidemillError:
        """As the client's; the brokers fence off also a producer whose transaction took too long."""
        limit = self._client.options.transaction_seconds
        if error.code() in FENCED and self._began is not None and self._now() - self._began >= limit:
            return SinkError(
                f"{self._client.address.name}: a transaction took longer than transaction_seconds = {limit}: "
                "raise it, and the brokers' transaction.max.timeout.ms if it is lower, or use "
                'delivery = "at least once"'
            )
        return self._client.explained(error, doing)

    def drop(self) -> None:
        producer, self._producer = self._producer, None
        self._backlog.clear()
        began, self._began = self._began, None
        if producer is not None:
            if began is not None:
                with suppress(KafkaException):  # the next one that connects aborts it, or the brokers do
                    producer.abort_transaction(_ABORT_SECONDS)
            producer.purge(blocking=False)
