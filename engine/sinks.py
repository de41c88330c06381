"""The sinks of a pipeline: their actors, and those that don't stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pykka

from ..actors import Clock, PooledFuture, PooledRef
from ..sink import Delivery, Flush, Review, ToSink


class AbandonedSink:
    """A sink whose thread didn't return from its driver in time.

    The sink belongs to that thread until its actor has stopped; nothing else may write to its target before.
    """

    def __init__(self, delivery: Delivery, stopped: PooledFuture[bool]) -> None:
        """`stopped` is done once the sink's actor has stopped."""
        self.name = delivery.sink.name
        self.target = delivery.sink.target
        self._delivery = delivery
        self._stopped = stopped

    def has_ended(self, timeout: float = 0.0) -> bool:
        """Wait up to `timeout` seconds for the thread; return True once it is gone and the sink is closed."""
        try:
            self._stopped.get(timeout=timeout)
        except pykka.Timeout:
            return False
        self._delivery.close()  # an actor that stopped between two attempts didn't
        return True

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call once the thread is gone, in that thread; at once if it is."""
        self._stopped.when_done(call)


class SinkActors:
    """The actors of all sinks, each with its Delivery. Used by the feed's threads."""

    def __init__(self, clock: Clock, actors: Sequence[tuple[Delivery, PooledRef[ToSink]]]) -> None:
        self.deliveries = [delivery for delivery, _ in actors]
        self._refs = [ref for _, ref in actors]
        self._clock = clock

    def tell(self, message: Flush | Review) -> None:
        """Send to every sink that has room; a busy one gets to it after its current batch."""
        for ref in self._refs:
            ref.offer(message)

    def stop(self, seconds: float) -> list[AbandonedSink]:
        """Let the sinks write their waiting items; return those that haven't stopped after `seconds`."""
        until = self._clock.now() + seconds
        stops = [ref.stop(block=False) for ref in self._refs]
        abandoned = []
        for delivery, stopped in zip(self.deliveries, stops, strict=True):
            try:
                stopped.get(timeout=max(0.0, until - self._clock.now()))
            except pykka.Timeout:
                abandoned.append(AbandonedSink(delivery, stopped))
        return abandoned
