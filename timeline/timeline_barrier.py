"""A barrier that merges entries by time, without regard to transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Condition
from typing import Final

from ..errors import InvariantViolated
from .barrier import Interrupted
from .entry import Entry

_CLOSED: Final = float("-inf")


class TimelineBarrier:
    """Lets the entry with the lowest ts pass once every source has submitted one.

    The ts of the lowest is the threshold; entries with an equal one pass together. A source whose times go
    back lowers it. Nobody passes while a source has no entry, unless that one is idle: without an entry for
    `idle_seconds`.
    """

    def __init__(
        self,
        sources: Collection[str],
        *,
        now: Callable[[], float],
        idle_seconds: float | None = None,
    ) -> None:
        """`idle_seconds` None: every source is waited for."""
        self._changed = Condition()
        self._threshold: float = _CLOSED
        self._submitted: dict[str, int] = {}
        """The ts of each source's entry, from its submission until it is consumed."""
        self._passed: set[str] = set()
        """Sources whose entry has passed and isn't consumed yet."""
        self._heard = dict.fromkeys(sources, now())
        """Time at which each source last submitted or consumed an entry."""
        self._interrupted: set[str] = set()
        self._idle: set[str] = set()
        self._idle_seconds = idle_seconds
        self._now = now
        self._last: float = _CLOSED
        self.regressions = 0
        """Entries that passed after one with a higher ts."""

    def wait(self, source: str, entry: Entry, timeout: float | None = None) -> None:
        with self._changed:
            until = None if timeout is None else self._now() + timeout
            self._reject_interrupted(source)
            self._submit(source, entry.ts)
            while not self._may_pass(source, entry):
                try:
                    self._sleep(until)
                    self._reject_interrupted(source)
                except BaseException:
                    self._remove(source)
                    raise
            self._pass(source, entry)

    def clear(self, source: str, entry: Entry) -> None:  # noqa: ARG002
        with self._changed:
            self._consume(source)

    def withdraw(self, source: str, entry: Entry) -> None:
        self.clear(source, entry)

    def interrupt(self, source: str) -> None:
        with self._changed:
            self._interrupted.add(source)
            self._remove(source)
            self._changed.notify_all()

    def resume(self, source: str) -> None:
        with self._changed:
            self._interrupted.discard(source)
            self._heard[source] = self._now()

    def leave(self, source: str) -> None:
        with self._changed:
            if source not in self._submitted:
                self._idle.add(source)
                self._update()

    def silent(self) -> dict[str, float]:
        with self._changed:
            if self._submitted.keys() <= self._passed:
                return {}
            now = self._now()
            return {
                source: now - heard
                for source, heard in self._heard.items()
                if source not in self._submitted and source not in self._idle
            }

    # --- with the lock held

    def _submit(self, source: str, ts: int) -> None:
        if source in self._submitted:
            raise InvariantViolated(f"source {source} submits an entry before its last one is consumed")
        self._submitted[source] = ts
        self._idle.discard(source)
        self._heard[source] = self._now()
        self._update()

    def _update(self) -> None:
        """Set the threshold, and wake those that may pass by it."""
        # One that passed isn't there: its source's next entry may be lower.
        waiting = self._submitted.keys() - self._passed
        if waiting and self._heard.keys() <= waiting | self._idle:
            self._threshold = min([self._submitted[source] for source in waiting])
            self._changed.notify_all()
        else:
            self._threshold = _CLOSED

    def _may_pass(self, source: str, entry: Entry) -> bool:  # noqa: ARG002
        return entry.ts <= self._threshold

    def _pass(self, source: str, entry: Entry) -> None:
        self._passed.add(source)
        self.regressions += entry.ts < self._last
        self._last = max(self._last, entry.ts)

    def _sleep(self, until: float | None) -> None:
        """Wait for a change, for a source to become idle, or until a time; then raise TimeoutError."""
        times = [] if until is None else [until]
        if self._idle_seconds is not None:
            times += [self._heard[source] + self._idle_seconds for source in self._absent()]
        now = self._now()
        self._changed.wait(max(0.0, min(times) - now) if times else None)
        now = self._now()
        if self._idle_seconds is not None:
            idle = {source for source in self._absent() if self._heard[source] + self._idle_seconds <= now}
            if idle:
                self._idle |= idle
                self._update()
        if until is not None and now >= until:
            raise TimeoutError("the entry isn't the first one of all sources yet")

    def _absent(self) -> list[str]:
        return [one for one in self._heard if one not in self._submitted and one not in self._idle]

    def _consume(self, source: str) -> None:
        """Forget an entry that has passed. The threshold stays: equal ones pass, too."""
        if source in self._interrupted:
            return
        if source not in self._passed:
            raise InvariantViolated(f"source {source} consumes an entry that hasn't passed")
        self._leave(source)

    def _remove(self, source: str) -> None:
        """Forget the entry of a source, passed or not: all sources must be there again before one passes."""
        if source in self._submitted:
            self._leave(source)
            self._threshold = _CLOSED

    def _leave(self, source: str) -> None:
        self._passed.discard(source)
        del self._submitted[source]
        self._heard[source] = self._now()
        if self._idle_seconds is not None:
            self._changed.notify_all()  # those that sleep must watch this source from now on

    def _reject_interrupted(self, source: str) -> None:
        if source in self._interrupted:
            raise Interrupted(f"source {source} was interrupted")
