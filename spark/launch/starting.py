"""The display of a command before it has a session, which takes a minute or two on a busy machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ...actors import SystemClock
from ...engine.options import FeedOptions
from ...engine.status import FeedStatus, SinkStatus, first_status
from ...sink import SinkFactory

STARTING: Final = "starting Spark"


def starting(options: FeedOptions, sinks: Sequence[SinkFactory]) -> FeedStatus:
    """Return the first status of a feed."""
    statuses = [SinkStatus(sink.name, sink.target, "", 0, None, 0, state="starting") for sink in sinks]
    now = SystemClock().time()
    status = first_status(options.name, options.source.options.address, statuses, state="starting", now=now)
    return replace(status, detail=STARTING)
