"""URLs of Kafka: kafka://user:password@broker:9092,broker:9092/topic?option=value."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ...config import with_query
from ...config.url import PERCENT_ENCODE
from ...errors import ConfigError
from .options import KafkaOptions
from .template import TopicTemplate

EXAMPLE: Final = "kafka://broker:9092/{schema}_{table}"
_PORT: Final = 9092
_TABLES: Final = frozenset({"encoding", "dispatch", "topic_config", "headers", "client"})
"""Options that a URL can't contain."""


class Address(NamedTuple):
    """Brokers, topic and login of a URL."""

    brokers: str
    """Separated by commas, each with its port."""
    topic: TopicTemplate
    user: str
    password: str

    @property
    def name(self) -> str:
        """Canonical name, without login."""
        return f"kafka:{','.join(sorted(self.brokers.split(',')))}/{self.topic.text}"


def parsed(url: str, options: KafkaOptions) -> tuple[Address, KafkaOptions]:
    """Return the address, and the options with those in the URL. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
    except ValueError as error:
        raise ConfigError(f"the URL can't be read: {PERCENT_ENCODE}; for instance {EXAMPLE}") from error
    brokers = [_broker(host) for host in hosts.split(",") if host]
    topic = unquote(parts.path.strip("/"))
    if not brokers or not topic:
        missing = "topic" if brokers else "broker"
        raise ConfigError(f"the URL names no {missing}; for instance {EXAMPLE}")
    if parts.fragment or "/" in topic:
        raise ConfigError(f"the URL can't be read: {PERCENT_ENCODE}; for instance {EXAMPLE}")
    user, _, password = login.partition(":")
    address = Address(",".join(brokers), TopicTemplate(topic, "topic"), unquote(user), unquote(password))
    return address, with_query(options, parts.query, _TABLES)


def _broker(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return f"{host}:{_PORT}"
    if not name or not port.isdecimal():
        raise ConfigError(f"{host!r} is no broker; for instance {EXAMPLE}")
    return host
