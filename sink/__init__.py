"""Sinks for rows: SQL databases, files, Python code; each target has its own checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .actor import Reports as Reports
    from .actor import RetryDelay as RetryDelay
    from .actor import spawn_sink as spawn_sink
    from .delivery import Delivery as Delivery
    from .delivery import DeliveryOptions as DeliveryOptions
    from .errors import LoadRequired as LoadRequired
    from .errors import ReplayRequired as ReplayRequired
    from .errors import TableFailed as TableFailed
    from .factory import SinkFactory as SinkFactory
    from .messages import Acknowledged as Acknowledged
    from .messages import Deliver as Deliver
    from .messages import Flush as Flush
    from .messages import FromSink as FromSink
    from .messages import Review as Review
    from .messages import Seek as Seek
    from .messages import ToSink as ToSink
    from .registry import open_sink as open_sink
    from .resume_filter import ResumeFilter as ResumeFilter
    from .sink import CheckpointStore as CheckpointStore
    from .sink import Sink as Sink
    from .sink import SinkStatistics as SinkStatistics
    from .sink import SinkTraits as SinkTraits

_NAMES = Names(
    __name__,
    {
        "Acknowledged": ".messages",
        "CheckpointStore": ".sink",
        "Deliver": ".messages",
        "Delivery": ".delivery",
        "DeliveryOptions": ".delivery",
        "Flush": ".messages",
        "FromSink": ".messages",
        "LoadRequired": ".errors",
        "ReplayRequired": ".errors",
        "Reports": ".actor",
        "ResumeFilter": ".resume_filter",
        "RetryDelay": ".actor",
        "Review": ".messages",
        "Seek": ".messages",
        "Sink": ".sink",
        "SinkFactory": ".factory",
        "SinkStatistics": ".sink",
        "SinkTraits": ".sink",
        "TableFailed": ".errors",
        "ToSink": ".messages",
        "open_sink": ".registry",
        "spawn_sink": ".actor",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
