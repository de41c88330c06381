"""The test kit: emulated databases, feeds that a test waits for, and suites for sinks and stages.

The names below are public; the modules beside them are tidemill's own servers and workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from ..emulator import Mysql as Mysql
    from ..emulator import Tidb as Tidb
    from .live_feed import LiveFeed as LiveFeed
    from .sink_conformance import SinkConformance as SinkConformance
    from .sink_conformance import SinkPlace as SinkPlace
    from .stage_conformance import StageConformance as StageConformance

_NAMES = Names(
    __name__,
    {
        "LiveFeed": ".live_feed",
        "Mysql": "..emulator.mysql.mysql",
        "SinkConformance": ".sink_conformance",
        "SinkPlace": ".sink_conformance",
        "StageConformance": ".stage_conformance",
        "Tidb": "..emulator.sql.sql",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
