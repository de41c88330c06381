"""A resume filter with the checkpoint of a target that applies what it lets through."""

from __future__ import annotations

from msgspec.structs import replace

from ..chain import Barrier, Keep, Lag, StageContext
from ..events import Checkpoint, Item
from ..sink.reached import Reached
from ..sink.resume_filter import START, ResumeFilter


class Resumed:
    """Filters items one by one, from `checkpoint` on; None: from the begin of a snapshot."""

    def __init__(self, checkpoint: Checkpoint | None, source: str = "") -> None:
        start = replace(checkpoint or START, source=source or (checkpoint or START).source)
        self._filter = ResumeFilter()
        self._filter.open(
            StageContext(feed="feed", sink="sink", checkpoint=start, now=float, seek=lambda _: None)
        )
        self._reached = Reached(start)

    def admit(self, item: Item) -> Item | None:
        """Return the item, or the rest of it that the target lacks; None if the target has all of it."""
        admitted: Item | None = None
        for element in self._filter.apply([item]):
            match element:
                case Lag():
                    self._reached.mark(element)
                case Keep():
                    self._reached.keep(element)
                case Barrier():
                    raise AssertionError("a resume filter sets no barrier")
                case _:
                    self._reached.add(element)
                    admitted = element
        return admitted

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the target after the items; None inside a transaction."""
        return self._reached.checkpoint
