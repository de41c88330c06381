"""Options of encodings. Names and defaults are those of TiCDC and Maxwell."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Meta

from ...config import Given, Hyphenated
from ...errors import ConfigError
from ...events import Table

EncodingName: TypeAlias = Literal[
    "canal-json",
    "canal-protobuf",
    "open-protocol",
    "debezium",
    "avro",
    "debezium-avro",
    "maxwell",
    "csv",
    "simple",
]


def _time_zone(name: str, _: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError('no such time zone; give a name such as "Asia/Shanghai"') from None
    return name


def _topic(template: str, _: str) -> str:
    try:
        template.format(schema="s", table="t")
    except (LookupError, ValueError):
        raise ValueError("accepted are {schema} and {table}") from None
    return template


Topic: TypeAlias = Annotated[str, Given(parse=_topic)]
"""Topic with `{schema}` and `{table}`."""
BatchRows: TypeAlias = Annotated[int, Meta(ge=1)]
UnsignedForm: TypeAlias = Literal["long", "string"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingOptions(Hyphenated):
    """Options of all encodings. Raises ConfigError that names the accepted values."""

    time_zone: Annotated[str, Given(parse=_time_zone)] = "UTC"
    """Time zone in which timestamps are printed, as "Asia/Shanghai"; debezium always writes UTC."""
    max_message_bytes: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of bytes of a message as a Kafka record, which has 36 more than key and value; 0: no
    limit. In Kafka the default is 1,000,000."""

    def __post_init__(self) -> None:
        if 0 < self.max_message_bytes < 100:
            raise ConfigError(
                f"max-message-bytes = {self.max_message_bytes}: at least 100, or 0 for no limit"
            )

    @property
    def zone(self) -> tzinfo:
        return ZoneInfo(self.time_zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedOptions(EncodingOptions):
    """Options of encodings whose messages may be compressed."""

    large_message_handle_compression: Literal["none", "lz4", "snappy"] = "none"
    """Compression of each message, before its size counts; not in files. Needs the extra `arrow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeOptions(CompressedOptions):
    """Options of encodings that have a form for messages that are too large."""

    large_message_handle_option: Literal["none", "handle-key-only", "claim-check"] = "none"
    """Handling of a row whose message is larger: none (an error), handle-key-only (the columns of its key),
    or claim-check (these, and the location of the whole message in a store)."""
    claim_check_storage_uri: str = ""
    """Store for claim checks: a URL such as "s3://bucket/prefix" or "directory:///var/claims"."""
    claim_check_storage_options: dict[str, Any] = field(default_factory=dict)
    """Options of that store, such as endpoint, access_key and secret_key."""
    claim_check_raw_value: bool = False
    """Store the value of the message alone, not JSON with its key and value; not in open-protocol."""

    def __post_init__(self) -> None:
        EncodingOptions.__post_init__(self)
        keeps = self.large_message_handle_option == "claim-check"
        if keeps and not self.claim_check_storage_uri:
            raise ConfigError('large-message-handle-option = "claim-check" needs claim-check-storage-uri')
        claims = {
            "claim-check-storage-uri": self.claim_check_storage_uri,
            "claim-check-storage-options": self.claim_check_storage_options,
            "claim-check-raw-value": self.claim_check_raw_value,
        }
        for name, value in claims.items():
            if value and not keeps:
                raise ConfigError(f'{name} needs large-message-handle-option = "claim-check"')


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalOptions(LargeOptions):
    """Options of canal-json."""

    enable_tidb_extension: bool = False
    """Add the field _tidb with the commit ts, and write watermarks."""
    content_compatible: bool = False
    """Write what Canal itself writes: full types, and in `old` only the columns that changed."""
    only_output_updated_columns: bool = False
    """Write in `old` only the columns that changed."""
    delete_only_output_handle_key_columns: bool = False
    """Write only the columns of its key for a deleted row."""

    def __post_init__(self) -> None:
        LargeOptions.__post_init__(self)
        if self.large_message_handle_option != "none" and not self.enable_tidb_extension:
            raise ConfigError("large-message-handle-option needs enable-tidb-extension = true")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalProtobufOptions(EncodingOptions):
    """Options of canal-protobuf."""

    max_batch_size: BatchRows = 16
    """Maximum number of rows of a message."""
    filter_transaction_entry: bool = True
    """Leave out the entries at the begin and the end of transactions."""
    enable_tidb_extension: bool = False
    """Add the commit ts to the properties of each entry's header, and write watermarks as heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions(LargeOptions):
    """Options of open-protocol."""

    max_batch_size: BatchRows = 16
    """Maximum number of rows of a message."""
    output_old_value: bool = True
    """Write the values before an update."""
    only_output_updated_columns: bool = False
    """Write of the values before an update only those that changed."""
    delete_only_output_handle_key_columns: bool = False
    """Write only the columns of its key for a deleted row."""

    def __post_init__(self) -> None:
        LargeOptions.__post_init__(self)
        if self.claim_check_raw_value:
            raise ConfigError("claim-check-raw-value: a value of open-protocol can't be read without its key")


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumOptions(CompressedOptions):
    """Options of debezium."""

    cluster_id: str = "default"
    """Name of the source in messages and in the names of schemas."""
    debezium_disable_schema: bool = False
    """Write payloads without their schema."""
    enable_tidb_extension: bool = False
    """Add the type of TiDB to each column of a schema, and write watermarks."""
    debezium_include_start_ts: bool = False
    """Add the start ts of the transaction to the source."""
    output_old_value: bool = True
    """Write the values before an update."""
    decimal_handling_mode: Literal["double", "string"] = "double"
    """Form of decimals."""
    bigint_unsigned_handling_mode: UnsignedForm = "long"
    """Form of unsigned BIGINT."""
    refuse_inexact: bool = True
    """Refuse a value that its type here can't hold: a decimal that isn't a double, an unsigned BIGINT from
    2^63 on as long, a zero date. False writes the nearest double, the negative number of the same 64 bits,
    and NULL or the start of 1970, as TiCDC does."""
    schema_registry: str = field(default="", repr=False)
    """URL of a schema registry: then messages are payloads in Confluent's frame, with JSON Schemas there; it
    may contain a user and a password. Empty: schemas are in the messages."""
    topic: Topic = "{schema}_{table}"
    """With `schema-registry`: topic of a table's rows, of which the schemas' subjects are made; in Kafka
    the default is that of the URL."""
    object_additional_properties: bool = True
    """With `schema-registry`: objects may have further properties, as by the converter's option of this
    name. False: a column can be added without breaking compatibility, but not dropped."""

    def __post_init__(self) -> None:
        EncodingOptions.__post_init__(self)
        if self.schema_registry and self.debezium_disable_schema:
            raise ConfigError("schema-registry and debezium-disable-schema: give one of them")
        if self.schema_registry and self.large_message_handle_compression != "none":
            raise ConfigError("large-message-handle-compression: readers of Confluent's frame don't know it")

    def topic_of(self, table: Table) -> str:
        return self.topic.format(schema=table.schema, table=table.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions(EncodingOptions):
    """Options of encodings whose schemas are in a schema registry."""

    schema_registry: str = field(default="", repr=False)
    """URL of the schema registry, as "http://registry:8081"; it may contain a user and a password."""
    topic: Topic = "{schema}_{table}"
    """Topic of a table's rows, of which the schemas' subjects are made; in Kafka
    the default is that of the URL."""
    enable_tidb_extension: bool = False
    """Add TiDB's fields: in avro the operation and the commit ts, in debezium-avro the types."""
    avro_decimal_handling_mode: Literal["precise", "string"] = "precise"
    """Form of decimals; precise: bytes."""
    avro_bigint_unsigned_handling_mode: UnsignedForm = "long"
    """Form of unsigned BIGINT."""
    avro_enable_watermark: bool = False
    """Write schema changes and watermarks; needs enable-tidb-extension."""
    refuse_inexact: bool = True
    """Refuse a value that its type here can't hold. False writes what TiCDC writes in its place."""

    def __post_init__(self) -> None:
        EncodingOptions.__post_init__(self)
        if self.avro_enable_watermark and not self.enable_tidb_extension:
            raise ConfigError("avro-enable-watermark needs enable-tidb-extension = true")

    def topic_of(self, table: Table) -> str:
        return self.topic.format(schema=table.schema, table=table.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroOptions(RegistryOptions):
    """Options of avro."""

    keyspace: str = "default"
    """First part of the namespace of schemas."""
    avro_include_before_value: bool = False
    """Write the values before an update or delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumAvroOptions(RegistryOptions):
    """Options of debezium-avro."""

    cluster_id: str = "default"
    """Name of the source in messages and in the names of schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions(CompressedOptions):
    """Options of csv."""

    delimiter: str = ","
    """One to three characters between values."""
    quote: str = '"'
    """Character around text; empty: none, and special characters are escaped by a backslash."""
    terminator: str = "\r\n"
    """Characters after a row."""
    null: str = "\\N"
    """Text of NULL, never quoted."""
    include_commit_ts: bool = False
    """Write the commit ts before the values."""
    binary_encoding_method: Literal["base64", "hex"] = "base64"
    """Form of binary values."""
    output_old_value: bool = False
    """Write an update as a deleted and an inserted row, and a column that says so."""
    output_field_header: bool = False
    """Write the names of the columns as the key of each message."""
    refuse_inexact: bool = True
    """With an empty quote, refuse text that equals `null`. False writes it, as TiCDC does."""

    def __post_init__(self) -> None:
        EncodingOptions.__post_init__(self)
        if not 1 <= len(self.delimiter) <= 3 or set(self.delimiter) & set("\r\n"):
            raise ConfigError(f"delimiter = {self.delimiter!r}: one to three characters without a line break")
        if len(self.quote) > 1 or self.quote in ("\r", "\n"):
            raise ConfigError(f"quote = {self.quote!r}: one character, or empty")
        if self.quote and self.quote in self.delimiter:
            raise ConfigError(f"quote = {self.quote!r} is in delimiter = {self.delimiter!r}")
        if not self.terminator:
            raise ConfigError("terminator: at least one character")
        if not self.quote and "\\" in self.delimiter:
            raise ConfigError("delimiter: a backslash needs a quote")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxwellOptions(CompressedOptions):
    """Options of maxwell, as Maxwell names them."""

    output_ddl: bool = False
    """Write schema changes."""
    output_commit_info: bool = True
    """Write `xid`, and `xoffset` or `commit`."""
    output_primary_keys: bool = False
    """Write the values of the primary key."""
    output_primary_key_columns: bool = False
    """Write the names of the primary key's columns."""
    output_nulls: bool = True
    """Write columns whose value is NULL."""
    kafka_key_format: Literal["hash", "array"] = "hash"
    """Form of keys; hash: an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleOptions(LargeOptions):
    """Options of simple."""

    encoding_format: Literal["json", "avro"] = "json"
    """Form of messages; in files json only."""
    send_bootstrap_interval_in_sec: Annotated[int, Meta(ge=0)] = 0
    """Seconds after which a table's definition is sent again with its next rows, besides that before its
    first rows since the start; 0: never. In Kafka the default is 120."""
    send_bootstrap_in_msg_count: Annotated[int, Meta(ge=0)] = 0
    """Rows after which a table's definition is sent again; 0: never. In Kafka the default is 10,000."""
