"""A puller with a cluster, and actors that collect what it sends on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from threading import Condition
from typing import Any

from tidemill.actors import ActorSystem, Failed, PooledActor, PooledRef, SystemClock
from tidemill.emulator.cluster import Cluster
from tidemill.events import Changes, KvChange
from tidemill.puller.tikv.client import TikvClient
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.puller.tikv.feed.request import Request
from tidemill.puller.tikv.options import TikvOptions, endpoints
from tidemill.puller.tikv.puller import TikvPuller
from tidemill.puller.tikv.span import table_span
from tidemill.store.store import Store
from tidemill.testing.progress import STALL_SECONDS, RetryDelay, Stalled, changed_to

"""Timeout, which only a failing test reaches."""


class Collected:
    """The changes received for one table, in order, and failures; each wakes the waiting threads."""

    def __init__(self, table: int, arrived: list[tuple[int, Changes]], changed: Condition) -> None:
        self.table = table
        self.changed = changed
        self.messages: list[Changes] = []
        self.arrived = arrived

    def take(self, message: Changes) -> None:
        with self.changed:
            self.messages.append(message)
            self.arrived.append((self.table, message))
            self.changed.notify_all()

    @property
    def changes(self) -> list[KvChange]:
        return [change for message in self.messages for change in message.changes]

    @property
    def resolved(self) -> int:
        return max((message.resolved for message in self.messages), default=0)

    def check(self) -> None:
        """Nothing at or below a resolved ts comes after it, and it never goes back."""
        resolved = 0
        for message in self.messages:
            assert all(change.commit_ts > resolved for change in message.changes)
            assert message.resolved == 0 or message.resolved > resolved
            resolved = message.resolved or resolved


class Collector(PooledActor):
    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    def on_receive(self, message: Changes) -> None:
        self._collected.take(message)


class Supervisor(PooledActor):
    def __init__(self, failures: list[Failed], changed: Condition) -> None:
        self._failures = failures
        self._changed = changed

    def on_receive(self, message: Failed) -> None:
        with self._changed:
            self._failures.append(message)
            self._changed.notify_all()


class Rig:
    """Leaves no thread; an error of a part that no test asked for fails the test."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        clock: Any = None,
        feed: EventFeedOptions | None = None,
        workers: int = 2,
        **options: Any,
    ) -> None:
        self.cluster = cluster
        self.changed = Condition()
        self.failures: list[Failed] = []
        self.tables: dict[int, Collected] = {}
        self.arrived: list[tuple[int, Changes]] = []
        """Table and message, in the order they came."""
        self._stack = ExitStack()
        clock = clock or SystemClock()
        self.system = ActorSystem("rig", workers=workers, clock=clock)
        self._stack.callback(self.system.stop, STALL_SECONDS)
        scratch = Store(directory)
        self._stack.callback(scratch.close)
        supervisor = self.system.spawn(Supervisor, self.failures, self.changed)
        self.client = TikvClient(
            TikvOptions(pd=endpoints(cluster.pd_address), **options), clock, Random(7), self._failed
        )
        with self._stack:
            self.client.start()
            self._stack.callback(self.client.stop)
            self.puller = TikvPuller(self.client, self.system, scratch, feed, supervisor=supervisor)
            self.puller.start()
            self._stack.callback(self.puller.stop)
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc_info: object) -> None:
        self._stack.close()
        if kind is None:
            assert [failed.error for failed in self.failures] == []

    def _failed(self, error: BaseException) -> None:
        self.puller.fail(error)

    def add(self, table: int, checkpoint_ts: int = 0, writer: PooledRef[Any] | None = None) -> Collected:
        collected = self.tables[table] = Collected(table, self.arrived, self.changed)
        writer = writer or self.system.spawn(Collector, collected, capacity=64)
        self.puller.add(table, table_span(table), checkpoint_ts, writer)
        return collected

    def remove(self, table: int) -> None:
        self.puller.remove(table)

    def until(self, reached: Callable[[], object], why: str = "it never came") -> None:
        """Wait for something that a message changes; in between nothing is polled."""
        try:
            with self.changed:
                changed_to(self.changed, lambda: reached() or self.failures)
        except Stalled as error:
            raise self._explained(why) from error
        if self.failures and not reached():
            raise self.failures[0].error

    def eventually(self, reached: Callable[[], object], why: str = "it never came to be") -> None:
        """Wait for something inside the puller that no message tells of."""
        patience = RetryDelay()
        while not reached():
            self.client.run(asyncio.sleep(0.002))
            try:
                patience.check()
            except Stalled as error:
                raise self._explained(why) from error

    def _explained(self, why: str) -> AssertionError:
        return AssertionError(f"{why}: {self.puller.explain()}, {self.puller.statistics()}")

    @property
    def requests(self) -> list[Request]:
        """Return the requests of all tables, in any order."""
        feed = self.puller.feed
        return [r for s in list(feed.subscriptions.values()) for r in list(s.requests)]

    def until_resolved(self, ts: int, *tables: int) -> None:
        """Until all of these tables, or all there are, have everything up to `ts`."""
        found = [self.tables[table] for table in tables or self.tables]
        self.until(lambda: all(collected.resolved >= ts for collected in found), f"not resolved up to {ts}")
