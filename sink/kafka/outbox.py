"""The protocol of outboxes, which send messages and make them durable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ..encoding.encoder import Message

Partition: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Outgoing: TypeAlias = Mapping[Partition, list[Message]]
"""Messages in order, by their place."""


class Outbox(Protocol):
    """Sends messages in order. Its methods raise Retryable or SinkError."""

    @property
    def is_connected(self) -> bool: ...

    @property
    def keeps(self) -> bool:
        """True if after Retryable everything sent is still on its way, so that it needn't be sent again."""

    def connect(self) -> None:
        """Connect; what earlier writers of this sink left open is aborted."""

    def send(self, messages: Outgoing) -> None:
        """Send messages."""

    def commit(self, messages: Outgoing, records: Outgoing) -> None:
        """Make everything sent durable with `messages`, and with `records`, which tell that it is."""

    def drop(self) -> None:
        """Give up what isn't durable, and disconnect. Doesn't raise."""
