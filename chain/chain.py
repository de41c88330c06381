"""The sequence of stages of one sink."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Checkpoint, Wait
from .stage import Element, Stage, StageContext


class Chain:
    """Stages in the order in which items pass them. Has the methods of a Stage."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)

    def open(self, context: StageContext) -> None:
        for stage in self._stages:
            stage.open(context)

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        for stage in self._stages:
            if not batch:
                break
            batch = stage.apply(batch)
        return batch

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        """Notify every stage. Items that a stage releases pass the later stages, after items held there."""
        released: Sequence[Element] = ()
        for stage in self._stages:
            own = stage.durable(checkpoint)
            released = [*own, *stage.apply(released)] if released else own
        return released

    def waits(self) -> list[Wait]:
        return [wait for stage in self._stages for wait in stage.waits()]

    def close(self) -> None:
        for stage in self._stages:
            stage.close()
