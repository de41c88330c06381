"""Messages that an actor sends to itself, later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import Alarm

if TYPE_CHECKING:
    from .life import Life


class Timer:
    """A message due later, once or periodically. Belongs to the actor that made it.

    Ticks coalesce: at most one waits in the mailbox, and the periods that pass meanwhile are
    skipped. After `cancel()`, called by its actor, nothing comes, not even a tick that waits.
    """

    __slots__ = ("_alarm", "_due", "_period", "_process", "_waiting", "message")

    def __init__(self, process: Life, seconds: float, message: object, *, periodic: bool) -> None:
        if seconds < 0 or (periodic and seconds == 0):
            raise ValueError(f"a timer of {seconds} seconds")
        self._process: Life | None = process
        self.message = message
        self._period = seconds if periodic else None
        self._due = process.clock.now() + seconds
        self._waiting = False
        self._alarm: Alarm | None = None
        if seconds > 0:
            self._alarm = process.clock.call_at(self._due, self._ring)
        else:
            self._ring()

    def cancel(self) -> None:
        process, self._process = self._process, None
        if self._alarm is not None:
            self._alarm.cancel()
        if process is not None and process.timers is not None:
            process.timers.discard(self)

    def _ring(self) -> None:
        """In the clock's thread."""
        process = self._process
        if process is None:
            return
        if self._period is not None:
            late = process.clock.now() - self._due
            self._due += self._period * (1 + late // self._period)
            self._alarm = process.clock.call_at(self._due, self._ring)
        if not self._waiting:
            self._waiting = True
            process.post(self, 1)

    def take(self) -> bool:
        """The tick has come to its actor: whether it still counts."""
        self._waiting = False
        if self._process is None:
            return False
        if self._period is None:
            self.cancel()
        return True
