"""Actors on shared threads: pykka's classes, bounded mailboxes and nothing that blocks a worker."""

from .actor import PooledActor, Target
from .backoff import Backoff, pause_seconds
from .clock import Alarm, Clock, ManualClock, SystemClock
from .future import PooledFuture
from .mailbox import Mailbox, MailboxFull, Waiting
from .outbox import DeadlockError
from .ref import PooledRef
from .seeded import SeededSystem
from .statistics import ActorStatistics, StreamStatistics, SystemStatistics
from .stream import Stream
from .supervision import Failed, Restart
from .system import ActorSystem
from .timer import Timer

__all__ = [
    "ActorStatistics",
    "ActorSystem",
    "Alarm",
    "Backoff",
    "Clock",
    "DeadlockError",
    "Failed",
    "Mailbox",
    "MailboxFull",
    "ManualClock",
    "PooledActor",
    "PooledFuture",
    "PooledRef",
    "Restart",
    "SeededSystem",
    "Stream",
    "StreamStatistics",
    "SystemClock",
    "SystemStatistics",
    "Target",
    "Timer",
    "Waiting",
    "pause_seconds",
]
