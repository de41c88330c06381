"""The actor that writes to one sink."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never

from msgspec import Struct

from ..actors import ActorSystem, Failed, PooledActor, PooledRef, Restart, Timer
from ..errors import Retryable, SinkError
from ..events import Checkpoint, Item, TablePosition
from .delivery import Delivery, ReplayRequired
from .messages import Acknowledged, Deliver, Flush, FromSink, LoadAgain, Review, Seek, ToSink


class _Tick(Struct, frozen=True):
    """To itself: a checkpoint that advanced without rows is due."""


class SinkActor(PooledActor[ToSink | _Tick]):
    """Passes items to a Delivery, and reports durable checkpoints to the coordinator.

    All messages waiting when the sink is free make one batch: a single transaction when idle, many under
    load. While the target is unavailable the actor is between two starts (see `RetryDelay`) and takes no
    messages; its mailbox fills, and its senders wait. The work survives in its Delivery.
    """

    takes_all = True

    def __init__(self, delivery: Delivery, coordinator: PooledRef[FromSink]) -> None:
        super().__init__()
        self._delivery = delivery
        self._coordinator = coordinator
        self._timer: Timer | None = None

    def on_start(self) -> None:
        self._delivery.acknowledged = self._tell
        self._delivery.seek = self._seek
        self._run()

    def on_receive_batch(self, messages: Sequence[ToSink | _Tick]) -> None:
        flushes = False
        items: list[Item] = []
        for message in messages:
            match message:
                case Deliver():
                    items += message.items
                case Review():
                    self._accept(items)
                    self._delivery.review()
                case LoadAgain(tables):
                    self._accept(items)
                    for table in tables:
                        self._delivery.load_again(table)
                case Flush():
                    flushes = True
                case _Tick():
                    pass
                case _:
                    assert_never(message)
        self._accept(items)
        self._run()
        if flushes:
            self._delivery.flush(self.clock.now())

    def _accept(self, items: list[Item]) -> None:
        """Pass on what neighbouring messages delivered, in one call: a relay syncs once a call."""
        if items:
            self._delivery.accept(items[:])
            items.clear()

    def _run(self) -> None:
        again = self._delivery.run(self.clock.now())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if again is None else self.after(again, _Tick())

    def _tell(self, checkpoint: Checkpoint) -> None:
        self.send(self._coordinator, Acknowledged(self._delivery.sink.name, checkpoint))

    def _seek(self, at: TablePosition) -> None:
        self.send(self._coordinator, Seek(self._delivery.sink.name, at))

    def on_stop(self) -> None:
        with suppress(Retryable):  # then the checkpoint stays, and nothing is lost
            self._delivery.flush(self.clock.now())
        self._delivery.close()

    def on_failure(self, exc_type: Any, exc: Any, tb: Any) -> None:  # noqa: ARG002
        if not isinstance(exc, Retryable):
            with suppress(SinkError):  # the first error is the one that is reported
                self._delivery.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDelay(Restart):
    """Start again after Retryable, not before its `wait`; stop after any other error."""

    def pause(self, failures: int, error: BaseException) -> float | None:
        if not isinstance(error, Retryable) or isinstance(error, ReplayRequired):
            return None
        return max(Restart.pause(self, failures, error) or 0.0, error.wait or 0.0)


def spawn_sink(
    system: ActorSystem,
    delivery: Delivery,
    coordinator: PooledRef[FromSink | Failed],
    *,
    capacity: int = 16,
    patience: Restart | None = None,
) -> PooledRef[ToSink]:
    """Start a sink's actor in a system for blocking work.

    The coordinator receives Acknowledged, and, as the supervisor, Failed. With `restart_seconds` the sink is
    being retried; without, its error is the reason of the stop: ReplayRequired (start again from the sink's
    checkpoint) or Fatal. `delivery.statistics()` may be read meanwhile.
    """
    return system.spawn(
        SinkActor,
        delivery,
        coordinator,
        name=f"sink {delivery.sink.name}",
        capacity=capacity,
        supervisor=coordinator,
        restart=patience or RetryDelay(),
    )
