"""Candidates that are looked at until it is certain that they differ, while changes go on.

A row is read from the source, then from the target once its checkpoint has passed the source's end after that
reading. If both are the same, the row is right. If not, the row may have been changed in between: the same
pair of values must be seen in several rounds. A source that can be read as of the target's checkpoint needs
one round, unless the target has transactions after its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

from ..dialects.read import Key, Reader, Settled
from ..events import WHOLE, Checkpoint, Row, Table, progress_of
from .pace import Pace
from .side import SourceRows

OpenView: TypeAlias = Callable[[], AbstractContextManager[Checkpoint]]

ROUNDS: Final = 3
"""Number of rounds in which a difference must be the same."""
MOST_ROUNDS: Final = 60
"""Number of rounds after which a row that changes all the time is given up."""
LOOK_SECONDS: Final = 0.05
"""First pause between looks at the checkpoint, ..."""
MOST_LOOK_SECONDS: Final = 1.0
"""... and the longest."""
STALL_SECONDS: Final = 60.0
"""Time without a move of a running feed's checkpoint after which it isn't waited for any more."""


class Settling:
    """Looks at the candidates of one table. `moving` counts rows that never settled."""

    def __init__(
        self,
        source: SourceRows,
        target: Reader,
        table: Table,
        pace: Pace,
        is_running: Callable[[], bool],
        origins: Sequence[str] = (),
        *,
        rounds: int = ROUNDS,
        viewed: OpenView | None = None,
    ) -> None:
        """`origins` has the tables' names in checkpoints, if it isn't one with the name of `table`. `viewed`
        opens a view of the target for a source that is read at its checkpoint."""
        self._viewed = viewed or target.reading
        self._origins = tuple(origins) or (table.full_name,)
        self._source = source
        self._target = target
        self._table = table
        self._pace = pace
        self._is_running = is_running
        self._most = rounds
        self._rounds = rounds
        self.moving = 0

    def settle(self, keys: Sequence[Key]) -> Iterator[Settled]:
        """Yield the differences among these stored keys, in order."""
        seen: dict[Key, tuple[object, object, int]] = dict.fromkeys(keys, (None, None, 0))
        differing: dict[Key, Settled] = {}
        for _ in range(MOST_ROUNDS):
            if not seen:
                break
            ours, theirs, is_certain = self._read(list(seen))
            for key, (source, target, rounds) in list(seen.items()):
                in_source, in_target = ours.get(key), theirs.get(key)
                if in_source == in_target:
                    del seen[key]
                    continue
                rounds = rounds + 1 if (in_source, in_target) == (source, target) else 1
                seen[key] = in_source, in_target, rounds
                if not is_certain or rounds >= self._rounds:
                    differing[key] = Settled(key, in_source, in_target, is_certain)
                    del seen[key]
        self.moving += len(seen)
        yield from (differing[key] for key in keys if key in differing)

    def _read(self, keys: list[Key]) -> tuple[dict[Key, object], dict[Key, object], bool]:
        """Return both sides' values, and True if the target has applied what the source had."""
        if self._source.reads_at_checkpoint:
            with self._viewed() as checkpoint:
                theirs = self._theirs(keys)
                self._source.view(checkpoint, self._table.full_name)
                ours, last = self._ours(keys), self._target.ahead(checkpoint)
            self._rounds = 1 if last is None else self._most
            is_certain = last is None or self._awaited(lambda one: one.ts >= last)
            return ours, theirs, is_certain and self._is_whole(checkpoint)
        ours = self._ours(keys)
        end = self._source.end()
        is_certain = self._awaited(lambda one: self._has_passed(one, end))
        with self._target.reading() as checkpoint:
            return ours, self._theirs(keys), is_certain and self._is_whole(checkpoint)

    def _is_whole(self, checkpoint: Checkpoint) -> bool:
        """Return False while the table is loaded again, or parked: rows may be missing."""
        return all(progress_of(checkpoint.loading, name) == WHOLE for name in self._origins)

    def _has_passed(self, checkpoint: Checkpoint, end: str) -> bool:
        owns = {
            checkpoint.tables[name].position if name in checkpoint.tables else checkpoint.position
            for name in self._origins
        }
        return all(self._source.has_passed(position, end) for position in owns)

    def _awaited(self, is_reached: Callable[[Checkpoint], bool]) -> bool:
        return awaited(self._target, is_reached, self._pace, self._is_running)

    def _ours(self, keys: list[Key]) -> dict[Key, Any]:
        table, target = self._table, self._target
        if not table.key:
            return self._count(keys, (target.stored(table, page) for page in self._source.every(table)))
        wanted_keys = target.source_keys(table, keys)
        return self._by_key(target.stored(table, self._source.rows_of(table, wanted_keys)))

    def _theirs(self, keys: list[Key]) -> dict[Key, Any]:
        if not self._table.key:
            return self._count(keys, self._target.every(self._table))
        return self._by_key(self._target.rows_of(self._table, keys))

    def _count(self, keys: list[Key], pages: Iterable[list[Row]]) -> dict[Key, Any]:
        """Return the number of each of these rows; 0 for one that isn't there."""
        counts = dict.fromkeys(keys, 0)
        for page in pages:
            self._pace.spend(len(page))
            for row in page:
                if row in counts:
                    counts[row] += 1
        return counts

    def _by_key(self, rows: Sequence[Row]) -> dict[Key, Row]:
        return {tuple([row[i] for i in self._table.key]): row for row in rows}


def awaited(
    target: Reader, is_reached: Callable[[Checkpoint], bool], pace: Pace, is_running: Callable[[], bool]
) -> bool:
    """Wait until a target's checkpoint has reached a point; return False if it doesn't move."""
    before: Checkpoint | None = None
    waited = 0.0
    while True:
        checkpoint = target.checkpoint()
        if checkpoint is not None and is_reached(checkpoint):
            return True
        if checkpoint != before:
            before, waited = checkpoint, 0.0
        elif waited >= STALL_SECONDS or not is_running():
            return False
        pause = min(MOST_LOOK_SECONDS, max(LOOK_SECONDS, waited / 10))
        pace.pause(pause)
        waited += pause
