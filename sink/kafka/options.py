"""Options of Kafka as a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta

from ...chain.selection.table_option import TABLES
from ...chain.selection.tables import TablePatterns
from ...errors import ConfigError
from ..encoding.options import EncodingName
from .canal_names import DynamicTopic, PartitionHash
from .template import HEADER_NAMES, Template, TopicTemplate

PartitionBy: TypeAlias = Literal["table", "key", "columns", "ts"]
"""Choice of a row's partition: one for each table, by the values of its primary key or of other columns, or
by the commit ts."""

BATCHING: Final = frozenset({"open-protocol", "canal-protobuf"})
"""Encodings whose messages have several rows, which must be of one partition."""
KEYED: Final = frozenset({"avro", "debezium", "debezium-avro"})
"""Encodings whose readers find a row by the message's key."""
EXACTLY_ONCE: Final = "exactly once"
DEFAULT_MAX_MESSAGE_BYTES: Final = 1_000_000
"""Below the largest record of a broker without settings of its own, 1,048,588 bytes."""

_OWN: Final = (
    "acks", "batch.size", "bootstrap.servers", "compression.type", "enable.idempotence",
    "max.in.flight.requests.per.connection", "message.timeout.ms", "security.protocol", "transactional.id",
    "transaction.timeout.ms",
)  # fmt: skip
"""Settings of librdkafka that options decide, or that the sink's promises rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Topic and partition of some tables. Raises ConfigError that names the accepted values."""

    tables: Annotated[TablePatterns, TABLES]
    """Patterns of tables, as in `source.tables`; the first entry that matches a table is used."""
    topic: str = ""
    """The topic, with {schema} and {table}; empty: the URL's."""
    partition: PartitionBy = "table"
    """Choice of a row's partition, as the sink's."""
    columns: tuple[str, ...] = ()
    """Columns for partition = "columns"."""

    def __post_init__(self) -> None:
        if self.topic:
            TopicTemplate(self.topic, "topic")
        _check_columns(self.partition, self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """Options of a Kafka cluster. Raises ConfigError that names the accepted values."""

    format: EncodingName = "canal-json"
    """Encoding of the messages (docs/reference/encodings.md)."""
    encoding: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoding, as in `[sink.encoding]`."""
    delivery: Literal["exactly once", "at least once"] = "exactly once"
    """With "exactly once" rows and checkpoint are in one transaction of Kafka; consumers must read with
    isolation.level = read_committed."""
    partition: PartitionBy = "table"
    """Choice of a row's partition: by its table, its key, the values of `columns`, or the commit ts."""
    columns: tuple[str, ...] = ()
    """Columns for partition = "columns"."""
    dispatch: tuple[Dispatch, ...] = ()
    """Topics and partitions of some tables; the first entry that matches a table is used."""
    partition_hash: str = ""
    """Partitions in Canal's notation (canal.mq.partitionHash), in place of `partition` and `dispatch`."""
    database_hash: bool = True
    """With `partition_hash`: also hash the schema's name (canal.mq.database.hash)."""
    dynamic_topic: str = ""
    """Topics in Canal's notation (canal.mq.dynamicTopic), in place of `dispatch`; else the URL's."""
    ddl: Literal["all partitions", "partition 0"] = "all partitions"
    """Partitions of its topic to which a schema change is written."""
    create_topics: bool = True
    """Create topics that don't exist, the one of checkpoints included."""
    partitions: Annotated[int, Meta(ge=0)] = 0
    """Number of partitions of a created topic; 0: the brokers' default."""
    replication: Annotated[int, Meta(ge=0)] = 0
    """Number of replicas of a created topic; 0: the brokers' default."""
    topic_config: dict[str, str] = field(default_factory=dict)
    """Settings of created topics, such as retention.ms."""
    checkpoint_topic: str = ""
    """Compacted topic of the checkpoint; empty: "tidemill-FEED-SINK-checkpoint"."""
    transactional_id: str = ""
    """Identity of the writer, by which a second one is fenced off; empty: "tidemill." with the names of feed
    and sink."""
    commit_seconds: Annotated[float, Meta(ge=0)] = 0.2
    """Minimum time between two commits under load; a sink that was idle commits at once."""
    transaction_seconds: Annotated[int, Meta(ge=1)] = 300
    """Time after which the brokers abort an open transaction; more than the source's longest takes. The
    brokers' transaction.max.timeout.ms, 15 minutes by default, limits it."""
    timeout_seconds: Annotated[float, Meta(ge=1)] = 15.0
    """Time without progress after which the cluster counts as unavailable."""
    watermark_seconds: Annotated[float, Meta(ge=0)] = 1.0
    """Minimum time between watermarks, which go to every partition of the topics written so far."""
    buffer_bytes: Annotated[int, Meta(ge=1 << 20)] = 64 << 20
    """Maximum memory for messages that wait for brokers."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """Compression of batches of messages."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of messages with rows, by name; values may have {schema}, {table}, {op}, {commit_ts} and {row},
    the message's number in its transaction."""
    tls: bool = False
    """Encrypt connections; the brokers' certificates and names are verified."""
    tls_ca: str = ""
    """File of the CA certificates; empty: those of the system."""
    tls_certificate: str = ""
    """File of the client's certificate, if the brokers require one; with `tls_key`."""
    tls_key: str = ""
    """File of its key."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """How to log in with the URL's user and password."""
    client: dict[str, str] = field(default_factory=dict)
    """Further settings of librdkafka's producer, such as linger.ms."""

    def __post_init__(self) -> None:
        _check_columns(self.partition, self.columns)
        canal = [name for name in ("partition_hash", "dynamic_topic") if getattr(self, name)]
        if canal and self.dispatch:
            raise ConfigError(f"{canal[0]} and dispatch: give one of them")
        if self.partition_hash and self.partition != "table":
            raise ConfigError("partition_hash and partition: give one of them")
        if not (self.database_hash or self.partition_hash):
            raise ConfigError("database_hash goes with partition_hash")
        _ = self.canal_topics, self.canal_hash
        if self.checkpoint_topic and TopicTemplate(self.checkpoint_topic, "checkpoint_topic").names:
            raise ConfigError(f"checkpoint_topic = {self.checkpoint_topic!r}: the name of one topic")
        for name, text in self.headers.items():
            made = Template(text, HEADER_NAMES, f"headers.{name}")
            if self.format in BATCHING and made.names & {"op", "row"}:
                raise ConfigError(f"headers.{name} = {text!r}: a message of {self.format} has several rows")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ConfigError("tls_certificate and tls_key go together")
        if (self.tls_ca or self.tls_certificate) and not self.tls:
            raise ConfigError("tls_ca and tls_certificate need tls = true")
        for name in self.client:
            if name in _OWN:
                raise ConfigError(f"client.{name} can't be given: the sink decides it")

    @property
    def canal_topics(self) -> DynamicTopic | None:
        return DynamicTopic(self.dynamic_topic, "dynamic_topic") if self.dynamic_topic else None

    @property
    def canal_hash(self) -> PartitionHash | None:
        return PartitionHash(self.partition_hash, "partition_hash") if self.partition_hash else None

    @property
    def is_exactly_once(self) -> bool:
        return self.delivery == EXACTLY_ONCE


def _check_columns(partition: str, columns: tuple[str, ...]) -> None:
    if (partition == "columns") != bool(columns):
        raise ConfigError('partition = "columns" and columns go together')
