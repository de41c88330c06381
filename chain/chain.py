"""The stages of one sink, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Checkpoint, Wait
from .stage import Element, Stage, StageContext


class Chain:
    """Stages in the order in which items pass them. Used as a Stage is."""

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
        """Tell every stage. What one lets go passes those after it, and what they held goes first."""
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
