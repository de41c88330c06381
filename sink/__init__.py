"""Rows to the outside: SQL databases, files, Python code; each target with its own checkpoint."""

from .actor import Patience, SinkActor, spawn_sink
from .delivery import Delivery, DeliveryOptions, DeliveryStatistics, NotKept
from .gate import Gate
from .messages import Acknowledged, Deliver, Flush
from .sink import PERCENT_ENCODE, CheckpointStore, Sink, open_sink

__all__ = [
    "PERCENT_ENCODE",
    "Acknowledged",
    "CheckpointStore",
    "Deliver",
    "Delivery",
    "DeliveryOptions",
    "DeliveryStatistics",
    "Flush",
    "Gate",
    "NotKept",
    "Patience",
    "Sink",
    "SinkActor",
    "open_sink",
    "spawn_sink",
]
