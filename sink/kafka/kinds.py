"""Registry entry for Kafka as a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ...actors import SystemClock
from ...config import Finding
from ...errors import ConfigError
from ..kind import NotOnSpark, SinkContext, SinkKind
from ..sink import Sink
from .address import EXAMPLE, parsed
from .options import DEFAULT_MAX_MESSAGE_BYTES, KafkaOptions
from .template import TopicTemplate

if TYPE_CHECKING:
    from ..encoding.encoder import Encoder
    from ..encoding.options import EncodingOptions
    from ..files.claims import Claims
    from .client import KafkaClient

_LIMIT: Final = "max_message_bytes"
_WITH_SCHEMAS: Final = ("avro", "debezium-avro")
"""Encodings whose schemas are registered under the names of topics."""
_DEFINITIONS: Final = {"send_bootstrap_interval_in_sec": 120, "send_bootstrap_in_msg_count": 10_000}
"""Repetition of definitions, for consumers that begin later."""


def _open(url: str, options: KafkaOptions, context: SinkContext) -> Sink:
    from ..encoding.encodings import encoding_options, make_encoder
    from .acknowledgements import BrokerAcknowledgements
    from .home import Home
    from .kafka import KafkaSink
    from .messages import Messages
    from .outbox import Outbox
    from .route import Destinations
    from .topics import Topics
    from .transactions import KafkaTransactions

    address, options = parsed(url, options)
    client, clock = _client(url, options, context), SystemClock()
    destinations = Destinations(address.topic, options)
    encoding = _encoding(address.topic, options)
    made = encoding_options(options.format, encoding)
    claims = _claims(made, clock)

    def encoder() -> Encoder:
        return make_encoder(options.format, encoding, lambda: int(clock.time() * 1000), claims=claims)

    def make_messages(topics: Topics) -> Messages:
        return Messages(
            encoder,
            destinations,
            topics,
            ddl_to_all=options.ddl == "all partitions",
            headers=options.headers,
        )

    encoder()  # raises for options that don't fit
    batch_bytes = made.max_message_bytes
    identity = options.transactional_id or f"tidemill.{context.feed}.{context.name}"
    outbox: Outbox
    if options.is_exactly_once:
        outbox = KafkaTransactions(client, clock.now, batch_bytes, identity)
    else:
        outbox = BrokerAcknowledgements(client, clock.now, batch_bytes)
    home = Home(client, context.feed, context.name, clock.now)
    topics = destinations.constant_topics()
    return KafkaSink(context.name, client, home, outbox, make_messages, topics, clock.now, claims)


def _claims(encoding: EncodingOptions, clock: SystemClock) -> Claims | None:
    """Return the store for claim checks; None if the encoding's options want none."""
    from ..encoding.options import LargeOptions

    if not (isinstance(encoding, LargeOptions) and encoding.claim_check_storage_uri):
        return None
    from ..files.claims import claims_of

    return claims_of(encoding, clock.now)


def _client(url: str, options: KafkaOptions, context: SinkContext) -> KafkaClient:
    from .client import KafkaClient

    address, options = parsed(url, options)
    return KafkaClient(address, options, f"tidemill-{context.feed}-{context.name}", f"feed {context.feed!r}")


def _encoding(topic: TopicTemplate, options: KafkaOptions) -> Mapping[str, object]:
    """Return the options of the encoding with those that a topic asks for."""
    written = {name.replace("-", "_"): value for name, value in options.encoding.items()}
    encoding = {_LIMIT: DEFAULT_MAX_MESSAGE_BYTES, **written}
    has_schemas = options.format in _WITH_SCHEMAS or encoding.get("schema_registry")
    if has_schemas and "topic" not in encoding:
        by_rules = [name for name in ("dispatch", "dynamic_topic") if getattr(options, name)]
        if options.dynamic_topic or any(entry.topic not in ("", topic.text) for entry in options.dispatch):
            raise ConfigError(
                f"encoding.topic: {options.format} names its schemas by one rule, and {by_rules[0]} has "
                "topics of its own: give the rule, with {schema} and {table}"
            )
        encoding["topic"] = topic.text
    if options.format == "simple":
        encoding = _DEFINITIONS | encoding
    return encoding


def _survey(url: str, options: KafkaOptions, context: SinkContext) -> Iterator[Finding]:
    from ..encoding.encodings import encoding_options, make_encoder
    from ..encoding.options import LargeOptions
    from ..files.claims import survey_claims
    from .survey import survey

    address, options = parsed(url, options)
    encoding, clock = _encoding(address.topic, options), SystemClock()
    made = encoding_options(options.format, encoding)
    make_encoder(options.format, encoding, int, claims=_claims(made, clock))
    if isinstance(made, LargeOptions) and made.claim_check_storage_uri:
        yield survey_claims(made, clock.now)
    yield from survey(address, options, _client(url, options, context), context)


KAFKA: Final = SinkKind(
    name="Kafka",
    schemes=("kafka",),
    examples=(EXAMPLE,),
    options=KafkaOptions,
    open=_open,
    survey=_survey,
    on_spark=NotOnSpark(reason="its tasks would need a transaction over all of them"),
    extra="kafka",
    has_definitions=lambda *_: True,
)
