"""A fault of a live feed: how it is made, which part is to blame, and what must be said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .place import Place


@dataclass(frozen=True)
class Fault:
    """A fault of a live feed."""

    name: str
    make: Callable[[Place], None]
    """Start the feed, and make the fault."""
    stage: str
    """Pattern of the part to blame: the first line has it ..."""
    words: tuple[str, ...]
    """... and these patterns: the cause, and what to do."""
    innocent: str
    """Pattern that the first line mustn't have."""
    quick: bool = False
    """True if it is soon explained, so that it is a test of every run."""

    def is_named(self, line: str) -> bool:
        """Return True if the line names the cause, and what to do."""
        return self.stage in line and all(re.search(word, line) for word in self.words)

    def is_wrong(self, line: str) -> bool:
        """Return True if the line blames the innocent."""
        return bool(self.innocent) and re.search(self.innocent, line) is not None


FAULTS: list[Fault] = []


def fault(
    *words: str, stage: str, innocent: str = "", quick: bool = False
) -> Callable[[Callable[[Place], None]], Callable[[Place], None]]:
    def add(make: Callable[[Place], None]) -> Callable[[Place], None]:
        FAULTS.append(Fault(make.__name__, make, stage, words, innocent or INNOCENT.get(stage, ""), quick))
        return make

    return add


SINK, SOURCE = "sink copy", "source"
INNOCENT = {
    SINK: r": source\b|the source is|catches up|region",
    SOURCE: r"sink \w+ (is slow|has waited)|slowest",
}
