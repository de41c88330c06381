"""Where Writers wait for the Intake, and longer while the sorter has enough."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ..actors import Clock, PooledActor
from ..actors.mailbox import Mailbox
from ..events import Ts
from .arrivals import WAKE, Arrivals
from .tier import Tier

if TYPE_CHECKING:
    from .writer import Writer

LEAVING_BYTES: Final = 16 << 20
"""Beyond this, what goes to disk waits for the disk."""

READY_BYTES: Final = 8 << 20
"""With this much here, in memory or on disk, what can leave does so before more comes in. It keeps the
Merger busy; more would only wait longer, and cost the way through the disk."""


class AdmissionControl:
    """The Writers that have something, first come first served.

    While the gate is shut the Intake takes nothing from them: their mailboxes fill, and the sources
    wait. Whoever changes what `is_needed` looks at calls `open_if_possible` afterwards, so an Intake
    that finds it needed, shuts it and finds it still needed is sure to be woken later.
    """

    def __init__(self, tier: Tier, arrivals: Arrivals, clock: Clock) -> None:
        self._tier = tier
        self._arrivals = arrivals
        self._clock = clock
        self.intake: Mailbox | None = None
        """Whom to wake; set once it is spawned."""
        self.writers: deque[Writer] = deque()
        self.shut_since: float | None = None
        """The clock's `now()` when the gate was shut; None while it is open."""
        self.is_closed = False
        """The sorter is closed or has failed: what comes is dropped."""
        self._busy = False
        self._lock = Lock()  # guards what follows
        self._advanced: dict[int, Ts] = {}

    def arrive(self, writer: Writer) -> None:
        """A Writer has something, and is not here yet."""
        self.writers.append(writer)
        # In this order, and the reverse in `rest` and `close`: one of the two sees the other.
        if self.is_closed:
            self._discard()
        elif not self._busy:
            self._busy = True
            self._wake()

    def advance(self, resolved: Mapping[int, Ts]) -> None:
        """Tables, by id, are resolved so far; the Intake sees to it in the order of what it takes."""
        with self._lock:
            self._advanced.update(resolved)
        if not self._busy:
            self._busy = True
            self._wake()

    def advanced(self) -> dict[int, Ts]:
        """What was advanced since the last time."""
        if not self._advanced:
            return {}
        with self._lock:
            advanced, self._advanced = self._advanced, {}
        return advanced

    def rest(self) -> bool:
        """The Intake has nothing left to take; False if something came meanwhile."""
        self._busy = False
        if self.writers or self._advanced:
            self._busy = True
        return not self._busy

    def is_needed(self) -> bool:
        """Whether more from the sources would do no good now."""
        tier = self._tier
        if tier.quota_bytes is None:
            return False
        if tier.flushing_bytes > LEAVING_BYTES:
            return True
        return self._arrivals.busy and tier.used_bytes + tier.stored_bytes > READY_BYTES

    def shut_if_needed(self) -> bool:
        """For the Intake: True if it must wait to be woken."""
        if not self.is_needed():
            return False
        self.shut_since = self._clock.now()
        if self.is_needed():
            return True
        self.shut_since = None
        return False

    def open_if_possible(self) -> None:
        if self.shut_since is not None and not self.is_needed():
            self.shut_since = None
            self._wake()

    def close(self) -> None:
        """From now on what comes is dropped, so that nobody waits."""
        self.is_closed = True
        self.shut_since = None
        self._discard()

    def _discard(self) -> None:
        while self.writers:
            try:
                writer = self.writers.popleft()
            except IndexError:  # another thread discards too
                return
            writer.discard()

    def _wake(self) -> None:
        if self.intake is not None:
            self.intake.offer(WAKE)


class Part(PooledActor):
    """An actor of a sorter. When it fails no source waits for the sorter any more, and nothing is kept:
    who supervises it hears of the failure and must be able to stop the rest."""

    def __init__(self, gate: AdmissionControl) -> None:
        self._gate = gate

    def on_failure(self, *_exc_info: Any) -> None:
        self._gate.close()
