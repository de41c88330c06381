"""A sink that passes the items of its feed to a group of feeds with one consumer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import Retryable
from ..events import Batch, Checkpoint, Ddl, Item, Wait
from ..timeline import Entry, EntryPart, Group
from .python import Acknowledgements, PythonSink
from .sink import CheckpointStore


class MergedSink(PythonSink):
    """One source of a group, as a sink. An item counts as processed once the group's consumer took it."""

    def __init__(
        self,
        name: str,
        group: Group,
        store: CheckpointStore,
        acknowledgements: Acknowledgements,
        *,
        described: Callable[[], str],
        ddl: bool = True,
    ) -> None:
        """`name` is that of the source in the group. `described` returns the reason of waits."""
        super().__init__(name, self._submit, store, acknowledgements=acknowledgements, ddl=ddl)
        self.target = f"merge:{name}"
        self._group = group
        self._described = described
        self._taken: list[Batch] = []
        """Batches since the last flush, which come again after Retryable."""
        self._count = 0
        """Number of items of the batch being written that the group took."""
        self._is_inside = False
        """True inside a transaction in parts."""

    def open(self) -> Checkpoint | None:
        self._taken, self._count, self._is_inside = [], 0, False
        self._group.resume(self.name)
        return super().open()

    def write(self, batch: Batch) -> None:
        if any(batch is taken for taken in self._taken):
            return
        super().write(batch)
        if batch.checkpoint is not None and not self._group.advance(self.name, batch.checkpoint.ts):
            raise self._interrupted()
        self._taken.append(batch)
        self._count = 0

    def _submit(self, items: Sequence[Item]) -> None:
        for item in items[self._count :]:
            if not self._group.sink(self.name, [Entry(item.commit_ts, self._part(item), item)]):
                raise self._interrupted()
            self._count += 1
            self._is_inside = not item.last

    def _part(self, item: Item) -> EntryPart:
        if isinstance(item, Ddl):
            return "other"
        if self._is_inside:
            return "end" if item.last else "rows"
        return "whole" if item.last else "begin"

    def _interrupted(self) -> Retryable:
        return Retryable(f"sink {self.name}: the merge was interrupted", 0.1)

    def flush(self) -> Checkpoint | None:
        self._taken.clear()
        return super().flush()

    def waits(self) -> list[Wait]:
        """Return the wait of all sources of the group for those that are silent. Any thread."""
        silent = self._group.silent()
        if not silent or self.name in silent:
            return []
        names = sorted(silent)
        return [
            Wait(
                f"sink {self.name}",
                "merge",
                max(silent.values()),
                on=", ".join(names),
                reason=self._described(),
            )
        ]

    def close(self) -> None:
        self._group.interrupt(self.name)
