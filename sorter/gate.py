"""Where Writers wait while the sorter has enough."""

from __future__ import annotations

from typing import Any, Final

from ..actors import PooledActor
from ..actors.mailbox import Mailbox
from .arrivals import Arrivals
from .tier import Tier

LEAVING_BYTES: Final = 16 << 20
"""Beyond this, what goes to disk waits for the disk."""

READY_BYTES: Final = 8 << 20
"""With this much here, in memory or on disk, what can leave does so before more comes in. It keeps the
Merger busy; more would only wait longer, and cost the way through the disk."""

_WIDE: Final = 1 << 30


class Gate(Mailbox):
    """A mailbox that nobody reads: it has room while the gate is open, and an actor that has sent to it
    while it is shut gets no messages until it opens.

    Whoever changes what `is_needed` looks at calls `open_if_possible` afterwards, so a Writer that
    finds it needed, shuts it and finds it still needed is sure to be let through later.
    """

    __slots__ = ("_arrivals", "_tier")

    def __init__(self, tier: Tier, arrivals: Arrivals) -> None:
        super().__init__(_WIDE, "room in the sorter")
        self._tier = tier
        self._arrivals = arrivals

    @property
    def actor_inbox(self) -> Gate:
        return self

    @property
    def is_closed(self) -> bool:
        """The sorter is closed or has failed."""
        return not self.limit

    def is_needed(self) -> bool:
        """Whether more from the sources would do no good now."""
        tier = self._tier
        if tier.leaving_bytes > LEAVING_BYTES:
            return True
        return self._arrivals.busy and tier.used_bytes + tier.stored_bytes > READY_BYTES

    def hold(self, writer: PooledActor) -> None:
        """Have a Writer, in its turn, get no more messages until the gate is open."""
        with self.lock:
            if self.limit:
                self.limit = 1
                self.messages = [None]
        if self.is_needed():
            writer.send(self, None)
        else:
            self._open()

    def open_if_possible(self) -> None:
        if self.limit == 1 and not self.is_needed():
            self._open()

    def _open(self) -> None:
        with self.lock:
            if self.limit:
                self.limit = _WIDE
        self.take(_WIDE)

    def schedule(self) -> None:
        """Nobody has to run."""


class Part(PooledActor):
    """An actor of a sorter. When it fails no source waits for the sorter any more, and nothing is kept:
    who supervises it hears of the failure and must be able to stop the rest."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def on_failure(self, *_exc_info: Any) -> None:
        self._gate.close()
