"""A sink without a target, which has everything at once."""

from __future__ import annotations

from ..events import Batch, Checkpoint
from ..sink.sink import Sink


class DroppingSink(Sink):
    name = target = "bench"

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self._reached = checkpoint

    def open(self) -> Checkpoint | None:
        return self._reached

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True

    def write(self, batch: Batch) -> None:
        self._reached = batch.checkpoint or self._reached

    def flush(self) -> Checkpoint | None:
        return self._reached

    def close(self) -> None:
        pass
