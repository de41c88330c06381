"""Preflight checks of Kafka: do the brokers answer, are the topics there, and where does the feed begin?"""

from __future__ import annotations

from collections.abc import Iterator

from ...actors import SystemClock
from ...config import Finding
from ...config.survey import begins
from ..kind import SinkContext
from .address import Address
from .client import KafkaClient
from .home import Home
from .options import KafkaOptions
from .route import Destinations
from .topics import Topics


def survey(
    address: Address, options: KafkaOptions, client: KafkaClient, context: SinkContext
) -> Iterator[Finding]:
    """Yield findings about a cluster. Raises TidemillError if it can't be used or doesn't answer."""
    clock = SystemClock()
    topics = Topics(client, clock.now)
    for topic in sorted(Destinations(address.topic, options).constant_topics()):
        yield _about(topic, topics.find(topic), options)
    partitions = topics.find(client.checkpoint_topic)
    yield _about(client.checkpoint_topic, partitions, options)
    if not partitions:
        yield begins(None)
        return
    if policy := topics.policy_problem():
        yield Finding("error", policy)
    end = topics.checkpoints_end()
    yield begins(Home(client, context.feed, context.name, clock.now).read(end).checkpoint)


def _about(topic: str, partitions: int, options: KafkaOptions) -> Finding:
    if partitions:
        return Finding("ok", f"topic {topic!r} has {partitions} partition{'s' * (partitions > 1)}")
    if options.create_topics:
        return Finding("ok", f"topic {topic!r} will be created")
    return Finding("error", f"topic {topic!r} doesn't exist: create it, or set create_topics = true")
