"""The sinks of a pipeline: their actors, what is asked of all of them, and those that don't stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

import pykka

from ..actors import Clock, PooledFuture, PooledRef
from ..sink import Delivery, Flush, LoadAgain, Review, ToSink

log = logging.getLogger("tidemill")


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

    def __init__(
        self,
        wants: Sequence[Callable[[str], bool]],
        clock: Clock,
        actors: Sequence[tuple[Delivery, PooledRef[ToSink]]],
        loads_again: Callable[[], object],
        *,
        can_reload: bool,
    ) -> None:
        """`wants` return True for full names of tables that each sink gets. `loads_again` is called before a
        sink is asked to load a table again. `can_reload` is True if the source can load single tables again.
        """
        self.deliveries = [delivery for delivery, _ in actors]
        self._refs = [ref for _, ref in actors]
        self._wants = wants
        self._clock = clock
        self._loads_again = loads_again
        self._can_reload = can_reload
        self._asked: set[tuple[str, str]] = set()
        """Names of sinks, and tables that they have been asked to load again."""

    def tell(self, message: Flush | Review) -> None:
        """Send to every sink that has room; a busy one gets to it after its current batch."""
        for ref in self._refs:
            ref.offer(message)

    def begin(self, load_again: Mapping[str, Collection[str]]) -> frozenset[str]:
        """Ask sinks, by name, to load tables again, by full name, before they get any item.

        Return the tables that every sink which is given them is asked for.
        """
        names = [delivery.sink.name for delivery in self.deliveries]
        self._ask(load_again)
        tables = {table for of_sink in load_again.values() for table in of_sink}
        self._asked.update((name, table) for name in names for table in tables)  # others have begun before
        sinks = [*zip((load_again.get(name, ()) for name in names), self._wants, strict=True)]
        return frozenset(
            table
            for table in tables
            if self._can_reload and all(table in of_sink for of_sink, wants in sinks if wants(table))
        )

    def load_again(self, tables: Collection[str]) -> None:
        """Ask all sinks to load tables again, each table once; a sink with a full mailbox in a later call."""
        self._ask({delivery.sink.name: tables for delivery in self.deliveries})

    def _ask(self, load_again: Mapping[str, Collection[str]]) -> None:
        for delivery, ref, wants in zip(self.deliveries, self._refs, self._wants, strict=True):
            name = delivery.sink.name
            wanted = [
                table
                for table in load_again.get(name, ())
                if (name, table) not in self._asked and wants(table)
            ]
            if not wanted:
                continue
            if not self._can_reload:
                log.warning("%s: this source can't load single tables again", ", ".join(wanted))
            else:
                self._loads_again()
                if not ref.offer(LoadAgain(tuple(wanted))):
                    continue
            self._asked.update((name, table) for table in wanted)

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
