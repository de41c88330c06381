"""Transactions of the source as units of parallel work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from ....events import Checkpoint, Item, Run, Transaction, Ts

State: TypeAlias = Literal["waiting", "ready", "taken", "done"]


class Unit:
    """Everything of one commit ts: applied in one SQL transaction, or not at all."""

    __slots__ = (
        "checkpoint", "dependents", "is_alone", "is_held", "obstacle", "order", "reads", "rows", "runs",
        "seq", "since", "state", "ts", "waits", "writes",
    )  # fmt: skip

    def __init__(
        self,
        seq: int,
        ts: Ts,
        runs: list[Run],
        checkpoint: Checkpoint,
        writes: Iterable[int] = (),
        reads: Iterable[int] = (),
        since: float = 0.0,
    ) -> None:
        self.seq: Final = seq
        """Its place in commit order."""
        self.ts: Final = ts
        self.runs: Final = runs
        self.rows: Final = sum([len(run) for run in runs])
        self.checkpoint: Final = checkpoint
        """Valid once this unit and all before it are applied."""
        self.writes: Final = frozenset(writes)
        """Hashes of keys whose rows it changes."""
        self.reads: Final = frozenset(reads) - self.writes
        """Hashes of keys that must not change meanwhile; several units may read the same one."""
        self.since: Final = since
        """Time when the pool got it."""
        self.state: State = "waiting"
        self.waits = 0
        """Number of units before it that conflict with it and aren't committed."""
        self.dependents: list[Unit] = []
        self.order = seq
        """Ready units are taken in this order; a unit that met a lock goes to the end."""
        self.is_alone = False
        """True if it must have a SQL transaction of its own."""
        self.is_held = False
        """True if it must wait for all units before it."""
        self.obstacle = ""
        """Why it was rolled back last; empty if it wasn't."""


def units_of(items: Sequence[Item]) -> list[list[Transaction]]:
    """Return the transactions grouped by commit ts."""
    groups: list[list[Transaction]] = []
    for item in items:
        assert isinstance(item, Transaction)
        if groups and groups[-1][0].commit_ts == item.commit_ts:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups
