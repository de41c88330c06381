"""The protocol of outboxes, which send messages and make them durable, and a thread for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Final, Protocol, TypeAlias

from ..encoding.encoder import Message

Partition: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Outgoing: TypeAlias = Mapping[Partition, list[Message]]
"""Messages in order, by their partition."""


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


class Task:
    """One call in a thread of its own, which doesn't keep the process from ending."""

    def __init__(self, call: Callable[[], None], name: str) -> None:
        self._call: Final = call
        self._error: BaseException | None = None
        self._thread: Final = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> None:
        """Wait for the end of the call. Raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
