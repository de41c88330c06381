"""Sinks for rows: SQL databases, files, Python code; each target has its own checkpoint."""

from .actor import RetryDelay, SinkActor, spawn_sink
from .delivery import Delivery, DeliveryOptions, DeliveryStatistics, ReplayRequired
from .messages import Acknowledged, Deliver, Flush, Seek
from .registry import open_sink
from .resume_filter import ResumeFilter
from .sink import CheckpointStore, NotReproducible, Reloadable, Sink

__all__ = [
    "Acknowledged",
    "CheckpointStore",
    "Deliver",
    "Delivery",
    "DeliveryOptions",
    "DeliveryStatistics",
    "Flush",
    "NotReproducible",
    "Reloadable",
    "ReplayRequired",
    "ResumeFilter",
    "RetryDelay",
    "Seek",
    "Sink",
    "SinkActor",
    "open_sink",
    "spawn_sink",
]
