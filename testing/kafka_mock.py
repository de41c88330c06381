"""librdkafka's own cluster of imitated brokers, whose answers a test decides.

It keeps messages and knows transactions, but consumers see those of aborted ones too, and it creates any
topic that is named.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Self

import confluent_kafka

PRODUCE: Final = 0
INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
END_TRANSACTION: Final = 26
"""Keys of requests."""


@cache
def _library() -> ctypes.CDLL:
    """Return the library that confluent-kafka's module is linked with."""
    folder = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*.so*"))))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


class MockKafka:
    """A cluster in this process."""

    def __init__(self, brokers: int = 1) -> None:
        library = self._library = _library()
        reason = ctypes.create_string_buffer(200)
        configuration = ctypes.c_void_p(library.rd_kafka_conf_new())
        library.rd_kafka_conf_set(configuration, b"log_level", b"0", reason, 200)
        self._client: object = ctypes.c_void_p(library.rd_kafka_new(0, configuration, reason, 200))
        self._cluster: object = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(self._client, brokers))

    @property
    def brokers(self) -> str:
        addresses: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return addresses.decode()

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, replicas)

    def answer(self, request: int, *errors: int) -> None:
        """Answer the next requests of a kind with these errors."""
        array = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(errors)), array
        )

    def move_leader(self, topic: str, partition: int, broker: int) -> None:
        self._library.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)

    def stop_brokers(self, numbers: Sequence[int] = (1,)) -> None:
        """Close connections to these brokers, and refuse new ones."""
        for number in numbers:
            self._library.rd_kafka_mock_broker_set_down(self._cluster, number)

    def start_brokers(self, numbers: Sequence[int] = (1,)) -> None:
        for number in numbers:
            self._library.rd_kafka_mock_broker_set_up(self._cluster, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)
