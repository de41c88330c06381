"""Parts that all pipelines of a feed have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..actors import Clock, Runtime
from ..chain import Stage
from ..events import Item
from ..sink import SinkFactory
from ..sources.source import Source
from .lag_model import LagModel
from .opening import open_source
from .options import FeedOptions
from .shared import Shared
from .tables import FeedTables
from .waits import Startup

OpenSource: TypeAlias = Callable[[FeedOptions, Clock], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedParts:
    """Everything that a feed gives each of its pipelines."""

    options: FeedOptions
    sinks: Sequence[SinkFactory]
    """A pipeline has a new sink of each."""
    runtime: Runtime
    startup: Startup
    """Has the step that the start of a pipeline is at."""
    lag: LagModel = field(default_factory=LagModel)
    """Lags of the feed."""
    stages: Mapping[str, Sequence[Stage]] = field(default_factory=dict)
    """Additional stages of sinks' chains, by the sink's name."""
    keeps_state: bool = True
    """True if the source keeps its state in the feed's directory."""
    checks_tables: bool = True
    """True if each pattern has to match a table of the source of a new feed."""
    before_sinks: Callable[[list[Item]], list[Item]] | None = None
    """Applied to the items that the sorter's output becomes, before the sinks' chains; None for no change."""
    shared: Shared | None = None
    """Resources shared with other feeds of the process; None: the feed has its own."""
    tables: FeedTables = field(default_factory=lambda: FeedTables(0.0))
    """The tables, over all pipelines."""
    open_source: OpenSource = open_source
    """Returns a source, not connected yet."""

    @property
    def clock(self) -> Clock:
        return self.runtime.clock
