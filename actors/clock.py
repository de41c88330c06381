"""Time, as an argument: the one place that asks the operating system for it."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from itertools import count
from threading import Condition, Thread
from typing import Protocol

log = logging.getLogger("tidemill.actors")


class Clock(Protocol):
    """Where actors get the time and are woken by it."""

    def now(self) -> float:
        """Seconds since some fixed moment; never steps back."""

    def time(self) -> float:
        """Seconds since 1970 (UTC); may step."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call once `now()` has reached `when`, in a thread of the clock's choice; must be quick."""


class Alarm:
    """A call that a clock owes."""

    __slots__ = ("_alarms", "callback", "when")

    def __init__(self, when: float, callback: Callable[[], None], alarms: Alarms) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback
        self._alarms = alarms

    def cancel(self) -> bool:
        """True if this prevented the call; False if it was made, has begun or was cancelled before."""
        return self._alarms.cancel(self)


class Alarms:
    """A heap of alarms by time; a cancelled one stays in it, empty, until it is worth removing."""

    def __init__(self) -> None:
        self.changed = Condition()
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._cancelled = 0

    def add(self, when: float, callback: Callable[[], None]) -> Alarm:
        alarm = Alarm(when, callback, self)
        with self.changed:
            heapq.heappush(self._heap, (when, next(self._numbers), alarm))
            if self._heap[0][2] is alarm:  # else the clock sleeps no longer than it has to
                self.changed.notify()
        return alarm

    def cancel(self, alarm: Alarm) -> bool:
        with self.changed:
            if alarm.callback is None:
                return False
            alarm.callback = None
            self._cancelled += 1
            if self._cancelled * 2 > len(self._heap):
                self._heap = [entry for entry in self._heap if entry[2].callback is not None]
                heapq.heapify(self._heap)
                self._cancelled = 0
                self.changed.notify()
            return True

    def next(self) -> float | None:
        """When the next call is due; None if there is none."""
        with self.changed:
            while self._heap and self._heap[0][2].callback is None:
                heapq.heappop(self._heap)
                self._cancelled -= 1
            return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> Callable[[], None] | None:
        """The next call if it is due; it can't be cancelled any more."""
        with self.changed:
            due = self.next()
            if due is None or due > now:
                return None
            alarm = heapq.heappop(self._heap)[2]
            callback, alarm.callback = alarm.callback, None
            return callback


class SystemClock:
    """The machine's clock. Its thread lives only while a call is owed."""

    now = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def __init__(self) -> None:
        self._alarms = Alarms()
        self._running = False

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        with self._alarms.changed:
            alarm = self._alarms.add(when, callback)
            if not self._running:
                self._running = True
                Thread(target=self._run, name="tidemill-clock", daemon=True).start()
        return alarm

    def _run(self) -> None:
        while True:
            with self._alarms.changed:
                callback = self._alarms.pop(self.now())
                if callback is None:
                    due = self._alarms.next()
                    if due is None:
                        self._running = False
                        return
                    self._alarms.changed.wait(due - self.now())
            if callback is not None:
                try:
                    callback()
                except Exception:  # one alarm must not silence the others
                    log.exception("a call made by the clock raised")


class ManualClock:
    """A clock that moves only when told to. Calls are made in the thread that moves it."""

    def __init__(self, now: float = 0.0, *, epoch: float = 1_700_000_000.0) -> None:
        self._now = now
        self._epoch = epoch - now
        self._alarms = Alarms()

    def now(self) -> float:
        return self._now

    def time(self) -> float:
        return self._epoch + self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        return self._alarms.add(when, callback)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass; every call due on the way is made at its own moment, in order."""
        until = self._now + seconds
        while self.jump(until):
            pass
        self._now = max(self._now, until)

    def jump(self, until: float | None = None) -> bool:
        """Go to the next call and make it; False, without moving, if none is due by `until`."""
        due = self._alarms.next()
        if due is None or (until is not None and due > until):
            return False
        self._now = max(self._now, due)
        callback = self._alarms.pop(self._now)
        if callback is not None:
            callback()
        return True
