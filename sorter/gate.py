"""Where Writers wait while the Merger has enough to send."""

from __future__ import annotations

from typing import Final

from ..actors.mailbox import Mailbox

_WIDE: Final = 1 << 30


class Gate(Mailbox):
    """Something to send to that has room only while it is open: an actor that sends to a shut gate is
    not polled until it opens. Nobody receives what is sent."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(_WIDE, name)

    @property
    def actor_inbox(self) -> Gate:
        return self

    def shut(self) -> None:
        with self.lock:
            if self.limit:
                self.limit = 1
                self.messages = [None]

    def open(self) -> None:
        with self.lock:
            if self.limit:
                self.limit = _WIDE
        self.take(_WIDE)

    def schedule(self) -> None:
        """Nobody has to run."""
