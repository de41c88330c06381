"""Writers: the entrance of one table into the sorter."""

from __future__ import annotations

from typing import Any, Final

from ..actors import ActorSystem, Clock, PooledActor, PooledFuture, PooledRef
from ..actors.future import Ask
from ..actors.mailbox import Mailbox
from ..errors import Fatal
from ..events import ActorName, Changes
from .admission import AdmissionControl
from .keyspace import SortKeyspace

WRITER_MESSAGES: Final = 64
"""Capacity of a Writer's mailbox: how far a source may be ahead of it."""


TURN_CHANGES: Final = 8
"""Changes that a Writer gives in its turn, but at least one message, so that no table waits long."""


class Writer(Mailbox):
    """A table's mailbox, which takes `Changes`.

    The Intake empties the mailboxes of all tables: an own turn for each of 100,000 tables would cost more
    than the work. An ask is answered once its changes, and all told before, are in the sorter."""

    __slots__ = ("_gate", "system", "table")

    def __init__(self, table: SortKeyspace, gate: AdmissionControl, system: ActorSystem) -> None:
        super().__init__(WRITER_MESSAGES, ActorName(f"Writer of table {table.id} ({table.uid})", table.id))
        self.table = table
        self.system = system
        self._gate = gate

    @property
    def clock(self) -> Clock:
        return self.system.clock

    def ref(self) -> PooledRef[Changes]:
        return WriterRef(self, PooledActor)  # type: ignore[arg-type]

    def schedule(self) -> None:
        self._gate.arrive(self)

    def drain(self) -> list[Any]:
        """Take the first message, and more if they are small. If something is left, or arrives at once, the
        Writer queues again after the others."""
        # Mailbox.take and the look for more under one lock.
        with self.lock:
            messages = self.messages
            if len(messages) == 1 and not self.line:  # nearly always
                self.messages = []
                self.scheduled = False
                return messages
            taken = self._fair(messages)
            self.messages = messages[taken:]
            admitted = self._admit() if self.line else None
            more = self.scheduled = bool(self.messages)
        if admitted:
            for waiter in admitted:
                waiter.resume()
        if more:
            self._gate.arrive(self)
        return messages[:taken] if taken < len(messages) else messages

    def _fair(self, messages: list[Any]) -> int:
        taken = room = 0
        for entry in messages:
            changes = (entry.message if isinstance(entry, Ask) else entry).changes
            room += len(changes)
            if taken and room > TURN_CHANGES:
                break
            taken += 1
        return taken

    def open(self, messages: list[Any], asks: list[Ask]) -> list[Any]:
        """Unwrap the messages; the asks among them are added to `asks`."""
        if not self.marks:
            return messages
        for n, entry in enumerate(messages):
            if isinstance(entry, Ask):
                asks.append(entry)
                messages[n] = entry.message
                with self.lock:
                    self.marks -= 1
        return messages

    def discard(self) -> None:
        """Drop the messages; answer the asks among them."""
        asks: list[Ask] = []
        self.open(self.drain(), asks)  # the rest arrives again, and is dropped then
        for ask in asks:
            ask.fail(Fatal(f"{self.name} is closed, the changes were dropped"))

    def stop(self, future: PooledFuture[bool] | None = None) -> None:
        """Accept nothing more; accepted messages are delivered unless the table is removed."""
        closed = self.close()
        if future is not None:
            future.set(closed)


class WriterRef(PooledRef[Changes]):
    """The ref of a Writer, which takes `Changes`."""

    __slots__ = ()
