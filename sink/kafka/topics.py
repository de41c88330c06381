"""Topics of a cluster: they are looked up once, and created if they don't exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ...errors import SinkError
from .client import NOT_YET, KafkaClient, Now, Patience

CHECKPOINTS: Final = {
    "cleanup.policy": "compact",
    "max.message.bytes": str(16 << 20),  # a checkpoint has an entry per table while tables are loaded
    "segment.bytes": str(1 << 20),  # the last segment is never compacted, and is read at each start
}
"""Settings of a topic of checkpoints."""

_LIST_SECONDS: Final = 1.0
"""First limit for an answer about all topics."""
_LOOK_SECONDS: Final = 0.05


class Topics:
    """Numbers of partitions. Not thread-safe."""

    def __init__(self, client: KafkaClient, now: Now) -> None:
        self._client: Final = client
        self._now: Final = now
        self._admin: Final = AdminClient(client.settings())
        self._partitions: Final[dict[str, int]] = {}

    @property
    def data(self) -> Mapping[str, int]:
        """Topics that were looked up and their partitions, without the one of checkpoints."""
        home = self._client.checkpoint_topic
        return {topic: count for topic, count in self._partitions.items() if topic != home}

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, which is created if it doesn't exist.

        Raises SinkError if it doesn't exist and can't be created, Retryable if no broker answers.
        """
        if topic not in self._partitions:
            options = self._client.options
            self._ensure(topic, options.partitions or -1, options.topic_config)
        return self._partitions[topic]

    def ensure_checkpoints(self) -> None:
        """As `partitions`, for the topic of checkpoints, which must be compacted."""
        topic = self._client.checkpoint_topic
        if topic not in self._partitions:
            self._ensure(topic, 1, CHECKPOINTS)
            if problem := self.policy_problem():
                del self._partitions[topic]
                raise SinkError(problem)

    def policy_problem(self) -> str:
        """Return why the topic of checkpoints, which exists, can't be used; empty if it can."""
        topic = self._client.checkpoint_topic
        policy = self._setting(topic, "cleanup.policy")
        if policy is None or policy == "compact":
            return ""
        return (
            f"topic {topic!r} has cleanup.policy = {policy}, which would delete checkpoints: set it to "
            "compact, or name another checkpoint_topic"
        )

    def checkpoints_end(self) -> int:
        """Return the offset after the last record of the topic of checkpoints, also of open transactions."""
        partition = TopicPartition(self._client.checkpoint_topic, 0)
        doing = f"read topic {partition.topic!r}"
        patience = Patience(self._client, self._now)
        while True:
            offsets = self._admin.list_offsets(
                {partition: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
            )
            result = self._result(offsets, doing, patience)
            if not isinstance(result, KafkaError):
                return int(result.offset)
            if not result.retriable() and result.code() not in NOT_YET:
                raise self._client.explained(result, doing)
            patience.check(None, doing)
            self._admin.poll(_LOOK_SECONDS)

    def note_existing(self, topics: Iterable[str]) -> None:
        """Look up topics that were written before; those that are gone are forgotten."""
        for topic in topics:
            if topic not in self._partitions and (count := self.find(topic)):
                self._partitions[topic] = count

    def find(self, topic: str) -> int:
        """Return the number of partitions; 0 if there is no such topic."""
        doing = f"look up topic {topic!r}"
        patience = Patience(self._client, self._now)
        seconds = _LIST_SECONDS
        while True:
            try:  # of all topics: brokers may create a topic that a request names
                metadata = self._admin.list_topics(timeout=seconds).topics.get(topic)
                break
            except KafkaException:
                self._admin.poll(0)  # problems are reported there
                patience.check(None, doing)
                seconds *= 2
        if metadata is None:
            return 0
        if metadata.error is not None and not metadata.partitions:
            raise self._client.explained(metadata.error, doing)
        return len(metadata.partitions)

    def _setting(self, topic: str, name: str) -> str | None:
        """Return a setting of a topic; None if the cluster doesn't tell it."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        patience = Patience(self._client, self._now)
        result = self._result(
            self._admin.describe_configs([resource]), f"read settings of {topic!r}", patience
        )
        return None if isinstance(result, KafkaError) else result[name].value

    def _ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        count = self.find(topic)
        if not count:
            self._create(topic, partitions, config)
            count = self._until_there(topic)
        self._partitions[topic] = count

    def _create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        options = self._client.options
        if not options.create_topics:
            raise SinkError(f"topic {topic!r} doesn't exist: create it, or set create_topics = true")
        new = NewTopic(topic, partitions, options.replication or -1, config=dict(config))
        doing = f"create topic {topic!r}"
        result = self._result(self._admin.create_topics([new]), doing, Patience(self._client, self._now))
        if isinstance(result, KafkaError) and result.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise self._client.explained(result, doing)

    def _until_there(self, topic: str) -> int:
        """Wait until brokers know the topic that was created."""
        patience = Patience(self._client, self._now)
        while not (count := self.find(topic)):
            patience.check(0, f"create topic {topic!r}")
            self._admin.poll(_LOOK_SECONDS)
        return count

    def _result(self, futures: Mapping[Any, Any], doing: str, patience: Patience) -> Any:
        """Return the only future's result, or its error. Raises as `partitions` if there is no answer."""
        (future,) = futures.values()
        while not wait([future], _LOOK_SECONDS).done:
            patience.check(None, doing)
        try:
            return future.result()
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            if kafka_error.code() == KafkaError._TIMED_OUT:
                raise self._client.unavailable(doing) from error
            return kafka_error
