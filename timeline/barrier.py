"""The protocol of barriers: threads of several sources pass one at a time, in the order of their times.

Source: GroupBarrier of Canal's sink.
"""

from __future__ import annotations

from typing import Protocol

from ..errors import TidemillError
from .entry import Entry


class Interrupted(TidemillError):
    """The source was interrupted: its entry was withdrawn, and is to be submitted again."""


class Barrier(Protocol):
    """Lets entries of several sources pass in order. Each source uses it from one thread at a time."""

    def wait(self, source: str, entry: Entry, timeout: float | None = None) -> None:
        """Submit an entry, and return when it may pass; `clear` must follow.

        Raises Interrupted, and TimeoutError after `timeout` seconds. Either withdraws the entry.
        """

    def clear(self, source: str, entry: Entry) -> None:
        """Note that an entry which passed has been consumed."""

    def withdraw(self, source: str, entry: Entry) -> None:
        """Note that an entry which passed wasn't consumed: the source submits it again."""

    def interrupt(self, source: str) -> None:
        """Withdraw the entry and the transaction of a source. Its calls of `wait` raise until `resume`."""

    def resume(self, source: str) -> None:
        """Accept entries of an interrupted source again."""

    def leave(self, source: str) -> None:
        """Let entries pass without this source, until it submits one."""

    def silent(self) -> dict[str, float]:
        """Return the sources that entries wait for, with the seconds since each was heard of. Any thread."""
