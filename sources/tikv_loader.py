"""The actor that takes the steps of a load from TiKV: of a first snapshot, or of tables loaded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Final, Generic, TypeVar, assert_never

from msgspec import Struct

from ..actors import PooledActor, Target
from ..events import Ts
from ..puller.puller import SnapshotReport

T = TypeVar("T")


class SchemaKnown(Struct, frozen=True):
    """The schema is known up to `ts`."""

    ts: Ts


class _Continue(Struct, frozen=True):
    """To itself: take the next step."""


_CONTINUE: Final = _Continue()


class TikvLoader(PooledActor[SchemaKnown | _Continue], Generic[T]):
    """Takes the steps of a load, one per turn. For a system of blocking work."""

    def __init__(
        self,
        steps: Iterator[T | SnapshotReport | None],
        output: Target[T],
        coordinator: Target[SnapshotReport],
        known: Callable[[Ts], object] = lambda _: None,
    ) -> None:
        """After a step of None, it waits until `known` was called with a later ts."""
        super().__init__()
        self._steps = steps
        self._output = output
        self._coordinator = coordinator
        self._known = known
        self._waits = True

    def on_start(self) -> None:
        self._go_on()

    def on_receive(self, message: SchemaKnown | _Continue) -> None:
        match message:
            case SchemaKnown(ts):
                self._known(ts)
                if self._waits:
                    self._go_on()
            case _Continue():
                self._step()
            case _:
                assert_never(message)

    def _step(self) -> None:
        self._waits = True
        try:
            step = next(self._steps)
        except (CancelledError, StopIteration):  # the feed is being closed, or all is read
            self.stop()
            return
        if isinstance(step, SnapshotReport):
            self.send(self._coordinator, step)
        elif step is not None:
            self.send(self._output, step)
        if step is not None:
            self._go_on()

    def _go_on(self) -> None:
        self._waits = False
        self.post(_CONTINUE)
