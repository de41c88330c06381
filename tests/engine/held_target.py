"""A target that gives no answer while it is held, and sinks that notice if another one uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, get_ident

from tidemill.errors import Retryable
from tidemill.events import Batch, Checkpoint, Row
from tidemill.sink import Sink, SinkFactory
from tidemill.testing.progress import changed_to


class HeldTarget:
    """Rows and a checkpoint; `held` has the name of the call that gets no answer."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.held = ""
        self.waiting = ""
        """Call that waits for an answer."""
        self.rows: dict[object, Row] = {}
        self.checkpoint: Checkpoint | None = None
        self.user: HeldSink | None = None
        """The open sink."""
        self.opened = 0
        self.failures = 0
        """Number of calls of `write` to come that find the target busy."""
        self.factory = SinkFactory(lambda: HeldSink(self))

    def hold(self, call: str) -> None:
        with self.changed:
            self.held = call

    def until_waiting(self) -> None:
        with self.changed:
            changed_to(self.changed, lambda: self.waiting)

    def answer(self) -> None:
        with self.changed:
            self.held = ""
            self.changed.notify_all()

    def reached(self, call: str) -> None:
        with self.changed:
            if call == self.held:
                self.waiting = call
                self.changed.notify_all()
                changed_to(self.changed, lambda: call != self.held)
                self.waiting = ""


class HeldSink(Sink):
    """Fails the test if two threads are in it, if it is opened twice, or if another one is open."""

    name = "held"
    target = "held target"

    def __init__(self, target: HeldTarget) -> None:
        self._of = target
        self._lock = Lock()
        self._thread: int | None = None
        self._is_new = True
        self._written: dict[object, Row | None] = {}
        self._at: Checkpoint | None = None

    @contextmanager
    def _alone(self, call: str) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise AssertionError(f"{call} in thread {get_ident()}, while {self._thread} is in the sink")
        self._thread = get_ident()
        try:
            self._of.reached(call)
            yield
        finally:
            self._lock.release()

    def open(self) -> Checkpoint | None:
        with self._alone("open"):
            assert self._is_new, "a sink was opened twice"
            assert self._of.user is None, "the target has a sink that isn't closed"
            self._is_new = False
            self._of.user = self
            self._of.opened += 1
            return self._of.checkpoint

    def write(self, batch: Batch) -> None:
        with self._alone("write"):
            assert self._of.user is self, "a sink was used after it was closed"
            if self._of.failures:
                self._of.failures -= 1
                self._written, self._at = {}, None
                raise Retryable("busy")
            for item in batch.items:
                for row in getattr(item, "rows", ()):
                    if row.after is not None:
                        self._written[row.after[0]] = row.after
            self._at = batch.checkpoint or self._at

    def flush(self) -> Checkpoint | None:
        with self._alone("flush"):
            self._of.rows.update(self._written)
            self._of.checkpoint = self._at or self._of.checkpoint
            self._written = {}
            return self._of.checkpoint

    def forget(self, table: tuple[str, str], checkpoint: Checkpoint) -> None:
        with self._alone("forget"):
            self._of.rows.clear()
            self._of.checkpoint = checkpoint

    def has_table(self, schema: str, table: str) -> bool:
        return True

    def close(self) -> None:
        with self._alone("close"):
            if self._of.user is self:
                self._of.user = None
