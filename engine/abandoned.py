"""Sinks that a closed pipeline has left with a thread in them."""

from __future__ import annotations

from collections.abc import Callable

import pykka

from ..actors import PooledFuture
from ..sink import Delivery


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
