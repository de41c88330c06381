"""The actor that writes to one sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import assert_never

from msgspec import Struct

from ..actors import ActorSystem, Failed, PooledActor, PooledRef, Restart, Timer
from ..errors import Retryable, SinkError
from ..events import Checkpoint, Item, TablePosition
from .delivery import Delivery
from .errors import ReplayRequired
from .messages import Acknowledged, Deliver, Flush, FromSink, Review, Seek, ToSink


class _Tick(Struct, frozen=True):
    """To itself: a checkpoint that advanced without rows is due."""


class Reports:
    """Reports of a Delivery to the coordinator, in the turns of the sink's actor."""

    def __init__(self, sink: str, coordinator: PooledRef[FromSink | Failed]) -> None:
        self.coordinator = coordinator
        self._sink = sink
        self._late: list[FromSink] = []
        """Reports for which the coordinator had no room, and those after them."""

    def acknowledged(self, checkpoint: Checkpoint) -> None:
        self._tell(Acknowledged(self._sink, checkpoint))

    def seek(self, place: TablePosition) -> None:
        self._tell(Seek(self._sink, place))

    def _tell(self, report: FromSink) -> None:
        if self._late or not self.coordinator.offer(report):
            self._late.append(report)

    def take_late(self) -> list[FromSink]:
        """Return, once, the reports that the actor has to send: it waits until there is room."""
        late, self._late = self._late, []
        return late


class SinkActor(PooledActor[ToSink | _Tick]):
    """Passes items to a Delivery, and sends the reports that the coordinator had no room for.

    All messages waiting when the sink is free make one batch: a single transaction when idle, many under
    load. While the target is unavailable the actor is between two starts (see `RetryDelay`) and takes no
    messages; its mailbox fills, and its senders wait. The work survives in its Delivery.
    """

    takes_all = True

    def __init__(
        self, delivery: Delivery, reports: Reports, parked_at: Callable[[], float] | None = None
    ) -> None:
        """With `parked_at`, which returns the time in Unix seconds, an error about one table is raised as
        TableFailed."""
        super().__init__()
        self._parked_at = parked_at
        self._delivery = delivery
        self._reports = reports
        self._timer: Timer | None = None

    def on_start(self) -> None:
        with self._reporting():
            self._run()

    def on_receive_batch(self, messages: Sequence[ToSink | _Tick]) -> None:
        with self._reporting():
            self._work(messages)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except SinkError as error:
            if self._parked_at is None:
                raise
            raise self._delivery.table_failed(error, self._parked_at()) from error
        finally:
            for report in self._reports.take_late():
                self.send(self._reports.coordinator, report)

    def _work(self, messages: Sequence[ToSink | _Tick]) -> None:
        flushes = False
        items: list[Item] = []
        for message in messages:
            match message:
                case Deliver():
                    items += message.items
                case Review():
                    self._accept(items)
                    self._delivery.review()
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

    def on_stop(self) -> None:
        with suppress(Retryable), self._reporting():  # then the checkpoint stays, and nothing is lost
            self._delivery.flush(self.clock.now())
        self._delivery.close()

    def on_failure(self, exc_type: object, exc: object, tb: object) -> None:  # noqa: ARG002
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
    reports: Reports,
    parked_at: Callable[[], float] | None = None,
    *,
    capacity: int = 16,
) -> PooledRef[ToSink]:
    """Start a sink's actor in a system for blocking work.

    `reports` are those of the delivery. Their coordinator is also the supervisor, which receives Failed: with
    `restart_seconds` the sink is being retried; without, its error is the reason of the stop: ReplayRequired
    (start again from the sink's checkpoint) or Fatal; with `parked_at` TableFailed, if it is about one table.
    `delivery.statistics()` may be read meanwhile.
    """
    return system.spawn(
        SinkActor,
        delivery,
        reports,
        parked_at,
        name=f"sink {delivery.sink.name}",
        capacity=capacity,
        supervisor=reports.coordinator,
        restart=RetryDelay(),
    )
