"""Admission control: Writers wait here for the Intake, and longer while the sorter is full."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from ..actors import Clock, PooledActor
from ..actors.mailbox import Mailbox
from ..events import Ts
from .arrivals import WAKE, Arrivals, Uid
from .tier import Tier

if TYPE_CHECKING:
    from .writer import Writer

LEAVING_BYTES: Final = 16 << 20
"""Bytes on their way to disk above which the Intake waits for the disk."""

READY_BYTES: Final = 8 << 20
"""Bytes ready to leave, in memory or on disk, above which they leave before more is taken in. This much
keeps the Merger busy; more would only wait longer and go through the disk."""

STUCK_SECONDS: Final = 5.0
"""Time without a turn of the Merger after which more is taken in all the same: a server gives up a reader
that doesn't read for a minute (`net_write_timeout`)."""


class AdmissionControl:
    """The Writers that have changes, first come first served.

    While admission is closed the Intake takes nothing from them: their mailboxes fill, and the sources
    wait. Code that changes what `is_needed` reads calls `open_if_possible` afterwards, so an Intake that
    closes admission and still finds it needed is certain to be woken later.
    """

    def __init__(self, tier: Tier, arrivals: Arrivals, clock: Clock, ahead_bytes: int = 0) -> None:
        """`ahead_bytes` are the bytes ready to leave that are taken in while what is downstream is stuck."""
        self._tier = tier
        self._arrivals = arrivals
        self._clock = clock
        self._ahead_bytes = ahead_bytes
        self.stuck_seconds = STUCK_SECONDS
        self.moved_at = clock.now()
        """When the Merger had its last turn: it gets none before its output has room downstream."""
        self.intake: Mailbox | None = None
        """The Intake's mailbox, which is woken; set when the Intake is spawned."""
        self.writers: deque[Writer] = deque()
        self.shut_since: float | None = None
        """The clock's `now()` when admission was closed; None while it is open."""
        self.is_closed = False
        """True if the sorter is closed or has failed: further changes are dropped."""
        self._busy = False
        self._lock = Lock()  # guards what follows
        self._advanced: dict[Uid, Ts] = {}

    def arrive(self, writer: Writer) -> None:
        """Add a Writer that has changes and isn't queued yet."""
        self.writers.append(writer)
        # In this order, and the reverse in `rest` and `close`: one of the two sees the other.
        if self.is_closed:
            self._discard()
        elif not self._busy:
            self._busy = True
            self._wake()

    def advance(self, resolved: dict[Uid, Ts]) -> None:
        """Record the resolved ts of tables, in a dict that is this object's from then on; the Intake applies
        them in order with the changes it takes."""
        with self._lock:
            if self._advanced:
                self._advanced.update(resolved)
            else:
                self._advanced = resolved
        if not self._busy:
            self._busy = True
            self._wake()

    def advanced(self) -> dict[Uid, Ts]:
        """Return and clear the resolved ts recorded since the last call."""
        if not self._advanced:
            return {}
        with self._lock:
            advanced, self._advanced = self._advanced, {}
        return advanced

    def rest(self) -> bool:
        """Note that the Intake is idle; False if a Writer arrived meanwhile."""
        self._busy = False
        if self.writers or self._advanced:
            self._busy = True
        return not self._busy

    def is_needed(self) -> bool:
        """True if the sorter has enough, so that taking in more would only cost space."""
        tier = self._tier
        if tier.quota_bytes is None:
            return False
        if tier.flushing_bytes > LEAVING_BYTES:
            return True
        ready = tier.used_bytes + tier.stored_bytes
        if not self._arrivals.busy or ready <= READY_BYTES:
            return False
        return ready > self._ahead_bytes or self._clock.now() - self.moved_at < self.stuck_seconds

    def shut_if_needed(self) -> bool:
        """Close admission if needed; True if the Intake must wait to be woken."""
        if self.is_needed():
            if self.shut_since is None:
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
        """Drop all further changes, so that no source waits."""
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


M = TypeVar("M", contravariant=True)


class SorterActor(PooledActor[M]):
    """An actor of a sorter. Its failure closes admission, so that no source waits and its supervisor can stop
    the rest."""

    def __init__(self, gate: AdmissionControl) -> None:
        self._gate = gate

    def on_failure(self, *_exc_info: object) -> None:
        self._gate.close()
