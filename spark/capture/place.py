"""Place: a point between two transactions of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...engine.options import FeedOptions
from ...events import Ts
from ...sources.source import Rank
from ..reading import reading_of_kind

RankOf: TypeAlias = Callable[[str], Rank]


class LogPoint(NamedTuple):
    rank: Rank
    ts: Ts
    """Ts by the clock of the capture's own feed. A binlog's ts depends on where reading started, so places
    of two feeds are compared by their ranks only."""
    position: str

    def __str__(self) -> str:
        return f"{self.position} (ts {self.ts})"


def rank_of(options: FeedOptions) -> RankOf:
    """Return the sort key function of the source's positions, which raises CheckpointError for others."""
    return reading_of_kind(options.source.kind).rank
