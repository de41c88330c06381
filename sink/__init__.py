"""Sinks for rows: SQL databases, files, Python code; each target has its own checkpoint."""

from .actor import RetryDelay, SinkActor, spawn_sink
from .delivery import Delivery, DeliveryOptions, DeliveryStatistics, LoadRequired, ReplayRequired
from .messages import Acknowledged, Deliver, Flush, LoadAgain, Review, Seek
from .registry import open_sink
from .resume_filter import ResumeFilter
from .sink import CheckpointStore, NotReproducible, Sink

__all__ = [
    "Acknowledged",
    "CheckpointStore",
    "Deliver",
    "Delivery",
    "DeliveryOptions",
    "DeliveryStatistics",
    "Flush",
    "LoadAgain",
    "LoadRequired",
    "NotReproducible",
    "ReplayRequired",
    "ResumeFilter",
    "RetryDelay",
    "Review",
    "Seek",
    "Sink",
    "SinkActor",
    "open_sink",
    "spawn_sink",
]
