"""A sorter with everything around it, and the model that its output is held against."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from tidemill.actors import ActorSystem, Failed, PooledActor, PooledRef, SeededSystem
from tidemill.codec.blocks import block_of
from tidemill.events import PUT, Changes, KvChange, Sorted
from tidemill.sorter import SorterOptions, open_sorter
from tidemill.testing.progress import STALL_SECONDS

ENGINES = {
    "memory": {"engine": "memory"},
    "unified": {"engine": "unified"},
    "unified, small": {"engine": "unified", "memory_bytes": 4000, "block_changes": 7, "merge_bytes": 3000},
    "db": {"engine": "db"},
    "db, through the disk": {"engine": "db", "memory_bytes": 0},
    "db, small": {"engine": "db", "memory_bytes": 4000, "block_changes": 7, "merge_bytes": 3000, "stores": 2},
    "db, one put an event": {"engine": "db", "memory_bytes": 4000, "layout": "event", "block_changes": 50},
}
"""Options by name: every engine and layout, with memory for all, a little or nothing."""


class Part(NamedTuple):
    """The part of one transaction in one Sorted."""

    commit_ts: int
    start_ts: int
    changes: list[KvChange]
    last: bool

    @property
    def tables(self) -> list[int]:
        return [change.region_id for change in self.changes]


def parts(message: Sorted) -> list[Part]:
    """A Sorted by its transactions; the rig's changes name their table as their region."""
    groups = groupby(message.changes, key=lambda change: (change.commit_ts, change.start_ts))
    found = [Part(*transaction, list(changes), True) for transaction, changes in groups]
    if found and message.continues:
        found[-1] = found[-1]._replace(last=False)
    return found


class Downstream(PooledActor):
    """Keeps what the sorter sends."""

    def __init__(self, received: list[Sorted]) -> None:
        self._received = received

    def on_receive(self, message: Sorted) -> None:
        self._received.append(message)


class Supervisor(PooledActor):
    def __init__(self, failures: list[Failed]) -> None:
        self._failures = failures

    def on_receive(self, message: Failed) -> None:
        self._failures.append(message)


class Rig:
    """A sorter of `options` in `system`, its output and failures, and a plain list of what went in."""

    def __init__(
        self, directory: Path, system: ActorSystem | None = None, *, capacity: int = 1 << 16, **options: Any
    ) -> None:
        self.directory = directory
        self.system = system or SeededSystem(1)
        self.received: list[Sorted] = []
        self.failures: list[Failed] = []
        self.downstream = self.system.spawn(Downstream, self.received, capacity=capacity)
        supervisor = self.system.spawn(Supervisor, self.failures)
        self.sorter = open_sorter(
            SorterOptions(directory=directory, **options), self.system, self.downstream, supervisor
        )
        self.writers: dict[int, PooledRef[Any]] = {}
        self.resolved: dict[int, int] = {}
        self.told: dict[int, list[KvChange]] = {}

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.sorter.close()
        self.system.stop(timeout=0.0 if isinstance(self.system, SeededSystem) else STALL_SECONDS)

    # --- input -----------------------------------------------------------------------------------

    def add(self, *tables: int, resolved: int = 0) -> None:
        for table in tables:
            self.writers[table] = self.sorter.add_table(table, resolved)
            self.resolved[table] = resolved
            self.told[table] = []

    def remove(self, table: int) -> None:
        self.sorter.remove_table(table)
        del self.writers[table], self.resolved[table], self.told[table]

    def tell(self, table: int, changes: Iterable[KvChange] = (), resolved: int = 0) -> None:
        changes = [replace(change, region_id=table) for change in changes]
        self.told[table] += changes
        self.resolved[table] = max(self.resolved[table], resolved)
        self.writers[table].tell(Changes(block_of(changes), resolved))

    def advance(self, **resolved: int) -> None:
        """Of several tables at once: `advance(_1=20, _2=30)`."""
        by_id = {int(name[1:]): ts for name, ts in resolved.items()}
        for table, ts in by_id.items():
            self.resolved[table] = max(self.resolved[table], ts)
        self.sorter.advance(by_id)

    def run(self, seconds: float = 0.0) -> None:
        assert isinstance(self.system, SeededSystem)
        self.system.run(seconds)

    # --- output ----------------------------------------------------------------------------------

    @property
    def changes(self) -> list[KvChange]:
        return [change for message in self.received for change in message.changes]

    @property
    def parts(self) -> list[Part]:
        return [part for message in self.received for part in parts(message)]

    def delivered(self, table: int) -> list[KvChange]:
        return [change for change in self.changes if change.region_id == table]

    def expected(self, table: int) -> list[KvChange]:
        """Return the changes due by now: each once, in commit order, up to the lowest resolved ts."""
        up_to = min(self.resolved.values())
        once = {(c.commit_ts, c.start_ts, c.op, c.key): c for c in self.told[table]}
        return sorted(change for change in once.values() if change.commit_ts <= up_to)

    def check(self) -> None:
        """All that must leave has left, nothing else has, and it is well formed."""
        assert [failed.error for failed in self.failures] == []
        self.check_form()
        for table in self.told:
            assert self.delivered(table) == self.expected(table)
        if self.resolved:
            assert self.sorter.statistics().sent >= min(self.resolved.values())

    def check_form(self) -> None:
        """Order, whole transactions, and nothing at or below a resolved ts after it."""
        resolved = -1
        split: int | None = None
        before = (-1, -1)
        for message in self.received:
            if message.changes:
                assert message.changes[0].commit_ts > before[0] or message.changes[0].commit_ts == split
            for part in parts(message):
                transaction = (part.commit_ts, part.start_ts)
                assert part.commit_ts > resolved, "a change came after everything up to its ts was sent"
                in_order = [(change.op, change.key) for change in part.changes]
                assert in_order == sorted(in_order)
                assert transaction > before or (transaction == before and part.commit_ts == split), "too late"
                before = transaction
            split = before[0] if message.continues else None
            assert message.resolved >= resolved
            resolved = message.resolved
            assert split is None or resolved < split, "resolved in the middle of a commit ts"


def put(commit_ts: int, key: bytes | str, value: bytes = b"", start_ts: int | None = None) -> KvChange:
    """A PUT that started one before it committed."""
    start_ts = commit_ts - 1 if start_ts is None else start_ts
    return KvChange(commit_ts, start_ts, PUT, key.encode() if isinstance(key, str) else key, value)
