"""A group of sources with one consumer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeAlias

from msgspec import Meta

from ..errors import ConfigError
from .entry import Entry

Consume: TypeAlias = Callable[[Sequence[tuple[str, Entry]]], int]
"""Takes entries, each with its source; returns how many of them, all unless it was interrupted."""
Merge: TypeAlias = Literal["queue", "barrier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Options of a merge."""

    merge: Merge = "queue"
    """ "queue": a queue, emptied by the thread that completes it; "barrier": each source's thread waits for
    its turn."""
    transactions: bool = True
    """True if transactions stay whole; else their parts are merged by time, each by itself."""
    on_idle: Literal["wait", "pass"] = "wait"
    """ "wait": entries wait for a silent source; "pass": they pass without it after `idle_seconds`."""
    idle_seconds: Annotated[float, Meta(gt=0)] = 10.0
    """Seconds after which a source that sends nothing, not even heartbeats, is idle."""
    max_waiting: Annotated[int, Meta(ge=1)] = 10_000
    """Maximum number of entries of a source in the queue; the source waits when there are more."""

    @property
    def limit(self) -> float | None:
        """Seconds after which a source isn't waited for; None: never."""
        return self.idle_seconds if self.on_idle == "pass" else None


class Group(Protocol):
    """Merges the entries of several sources into calls of one consumer. Source: GroupEventSink of Canal."""

    def sink(self, source: str, entries: Sequence[Entry]) -> bool:
        """Accept entries of a source; False if it was interrupted. Blocks as long as they have no room.

        Called by one thread at a time for each source. After False, all its entries that were not consumed
        come again. What the consumer raises is raised here, in the thread that called it.
        """

    def advance(self, source: str, ts: int) -> bool:
        """Note that a source has nothing below `ts` left to send; False if it was interrupted."""

    def interrupt(self, source: str) -> None:
        """End the calls of `sink` of a source, with False. Any thread."""

    def resume(self, source: str) -> None:
        """Accept entries of a source again, from the beginning of a transaction."""

    def leave(self, source: str) -> None:
        """Wait for a source no longer: it has ended."""

    def silent(self) -> dict[str, float]:
        """Return the sources that entries wait for, with the seconds since each was heard of. Any thread."""

    @property
    def regressions(self) -> int:
        """Entries that were consumed after one with a higher ts."""


def open_group(
    sources: Collection[str], consume: Consume, options: GroupOptions, now: Callable[[], float]
) -> Group:
    """Return a group of these sources. Raises ConfigError for fewer than two, or equal names."""
    from .barrier_group import BarrierGroup
    from .queue_group import QueueGroup

    if len(sources) < 2 or len(set(sources)) < len(sources):
        raise ConfigError(
            f"sources: {', '.join(sources) or 'none'}: a merge needs two or more, each by its name"
        )
    kind = QueueGroup if options.merge == "queue" else BarrierGroup
    return kind(sources, consume, options, now)
