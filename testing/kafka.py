"""A private Kafka on loopback, run from the jars that tests/services/kafka4 copies."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from ..emulator.server import Tls
from .private_server import PASSWORD, PrivateServer, reserve
from .progress import RetryDelay, Stalled, eventually

HOME: Final = Path(os.environ.get("TIDEMILL_KAFKA4") or Path(__file__).parents[1] / "build/kafka4")
"""Where the jars are."""
WRITER: Final = "writer"
"""A user of the SASL listener, with PASSWORD, who may do nothing until a test grants it."""

_OPEN_SECONDS: Final = 3.0
"""Time after which a transaction counts as one that stays open."""
_CLUSTER: Final = "tidemill-tests-cluster"
_JAVA: Final = (
    "java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)  # fmt: skip
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def missing() -> str:
    """Return the reason why no Kafka can be started on this machine; empty if one can."""
    if not HOME.is_dir():
        return f"{HOME} doesn't hold Kafka: run tests/services/kafka4, which says why it can't"
    return "" if shutil.which("java") else "there is no java: apt-get install default-jre-headless"


class Kafka(PrivateServer):
    """A cluster of one broker, which is its own controller. Topics aren't created by being named. Options are
    pairs of "--override" and a setting.

    Clients without a login may do everything; those of the SASL listener need rights.
    """

    tls: Tls | None = None
    """Set before the start, to have a listener with TLS that wants certificates of clients."""
    client_tls: Tls | None = None
    """Files of a client that may do everything, whose certificate is for "client"."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory, *options)
        self._more_ports: list[socket.socket] = []
        self._was_killed = False

    @property
    def brokers(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def sasl_brokers(self) -> str:
        return f"{self.host}:{self._more_port(1)}"

    @property
    def tls_brokers(self) -> str:
        return f"{self.host}:{self._more_port(2)}"

    @property
    def proxied_port(self) -> int:
        """Port of a listener that tells its clients to use `advertised_port`, for a proxy there."""
        return self._more_port(3)

    @property
    def advertised_port(self) -> int:
        return self._more_port(4)

    def start(self) -> Self:
        if not self._more_ports:
            self._more_ports = [reserve(0) for _ in range(5)]
        return super().start()

    def stop(self) -> None:
        super().stop()
        for held in self._more_ports:
            held.close()
        self._more_ports = []

    def kill(self) -> None:
        self._was_killed = True
        super().kill()

    def install_to(self, data_directory: Path) -> None:
        data_directory.mkdir(parents=True)
        (data_directory / "meta.properties").write_text(
            f"version=1\ncluster.id={_CLUSTER}\nnode.id=1\ndirectory.id=nywdoZx0QkeqilA8SUa9vQ\n"
        )

    def command(self) -> list[str]:
        file = self.directory / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        return [*_JAVA, "-cp", f"{HOME}/*", "kafka.Kafka", str(file)]

    def _properties(self) -> Mapping[str, object]:
        controller = f"{self.host}:{self._more_port(0)}"
        proxied = f"PROXIED://{self.host}:{self.proxied_port}"
        listeners = f"PLAINTEXT://{self.brokers},CONTROLLER://{controller},SASL_PLAINTEXT://{self.sasl_brokers},{proxied}"
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,PROXIED:PLAINTEXT",
            "log.dirs": self.data_directory,
            "auto.create.topics.enable": "false",
            "num.partitions": 2,
            "default.replication.factor": 1,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # The next start of a killed broker waits until its session has expired.
            "broker.session.timeout.ms": 1000 if self._was_killed else 20_000,
            "broker.heartbeat.interval.ms": 200,
            "log.cleaner.dedupe.buffer.size": 2 << 20,
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} user_{WRITER}="{PASSWORD}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client",
        }
        if self.tls is not None:
            listeners += f",SSL://{self.tls_brokers}"
            properties |= self._tls_properties(self.tls)
        advertised = listeners.replace(f"CONTROLLER://{controller},", "")
        return properties | {
            "listeners": listeners,
            "advertised.listeners": advertised.replace(
                proxied, f"PROXIED://{self.host}:{self.advertised_port}"
            ),
        }

    def _tls_properties(self, tls: Tls) -> dict[str, object]:
        both = self.directory / "broker.pem"
        both.write_text(Path(tls.key_path).read_text() + Path(tls.cert_path).read_text())
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": both,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": tls.ca_path,
            "ssl.client.auth": "required",
        }

    def silence(self) -> str:
        try:
            self.admin().list_topics(timeout=5)
        except KafkaException as error:
            return str(error.args[0])
        return ""

    def url(self, database: str = "", **_: object) -> str:
        """Return the URL of a sink with this topic."""
        return f"kafka://{self.brokers}/{database}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self.admin()
        (future,) = admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
        future.result()
        eventually(lambda: _has_leaders(self.brokers, name, partitions))

    def _more_port(self, index: int) -> int:
        return int(self._more_ports[index].getsockname()[1])


def _has_leaders(brokers: str, topic: str, partitions: int) -> bool:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "tests", "log_level": 0})
    try:
        for number in range(partitions):
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=60)
    except KafkaException:
        return False
    finally:
        consumer.close()
    return True


def messages(brokers: str, topic: str, *, committed: bool = True, **settings: object) -> list[Message]:
    """Return the messages of a topic that are there now, those of each partition in order; with `committed`
    only those of transactions that have committed.

    A commit is confirmed before its messages can be read: `committed` waits for transactions that end soon.
    """
    return list(_messages(brokers, topic, "read_committed" if committed else "read_uncommitted", settings))


def _messages(brokers: str, topic: str, isolation: str, settings: dict[str, object]) -> Iterator[Message]:
    used = {
        "bootstrap.servers": brokers,
        "group.id": "tests",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        "log_level": 0,
        **settings,
    }
    every = Consumer(used | {"isolation.level": "read_uncommitted"})
    consumer = Consumer(used | {"isolation.level": isolation})
    ended: dict[int, int] = {}
    try:
        metadata = consumer.list_topics(topic, timeout=60).topics[topic]
        places = [TopicPartition(topic, number) for number in metadata.partitions]
        ends = {}
        for place in places:
            place.offset, ends[place.partition] = every.get_watermark_offsets(place, timeout=60)
        consumer.assign(places)
        patience = RetryDelay(lambda: sorted(ended.items()), _OPEN_SECONDS)
        while len(ended) < len(places) or any(offset < ends[number] for number, offset in ended.items()):
            message = consumer.poll(0.1)
            if message is None:
                if len(ended) == len(places) and _is_over(patience):
                    return  # a transaction stays open
            elif (error := message.error()) is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                number, end = message.partition(), message.offset()
                assert number is not None
                assert end is not None
                ended[number] = end
            else:
                raise KafkaException(error)
    finally:
        every.close()
        consumer.close()


def _is_over(delay: RetryDelay) -> bool:
    try:
        delay.check()
    except Stalled:
        return True
    return False
