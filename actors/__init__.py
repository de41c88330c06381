"""Actors on shared threads: pykka's classes, bounded mailboxes and nothing that blocks a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .actor import PooledActor as PooledActor
    from .actor import Target as Target
    from .backoff import Backoff as Backoff
    from .backoff import pause_seconds as pause_seconds
    from .clock import Alarm as Alarm
    from .clock import Clock as Clock
    from .clock import ManualClock as ManualClock
    from .clock import SystemClock as SystemClock
    from .future import PooledFuture as PooledFuture
    from .mailbox import Mailbox as Mailbox
    from .mailbox import MailboxFull as MailboxFull
    from .mailbox import Waiting as Waiting
    from .outbox import DeadlockError as DeadlockError
    from .ref import PooledRef as PooledRef
    from .runtime import Joinable as Joinable
    from .runtime import Machine as Machine
    from .runtime import Queue as Queue
    from .runtime import Runtime as Runtime
    from .runtime import Signal as Signal
    from .seeded import SeededSystem as SeededSystem
    from .statistics import ActorStatistics as ActorStatistics
    from .statistics import StreamStatistics as StreamStatistics
    from .statistics import SystemStatistics as SystemStatistics
    from .stream import Stream as Stream
    from .supervision import Failed as Failed
    from .supervision import Restart as Restart
    from .system import ActorSystem as ActorSystem
    from .timer import Timer as Timer
    from .workers import Workers as Workers

_NAMES = Names(
    __name__,
    {
        "ActorStatistics": ".statistics",
        "ActorSystem": ".system",
        "Alarm": ".clock",
        "Backoff": ".backoff",
        "Clock": ".clock",
        "DeadlockError": ".outbox",
        "Failed": ".supervision",
        "Joinable": ".runtime",
        "Machine": ".runtime",
        "Mailbox": ".mailbox",
        "MailboxFull": ".mailbox",
        "ManualClock": ".clock",
        "PooledActor": ".actor",
        "PooledFuture": ".future",
        "PooledRef": ".ref",
        "Queue": ".runtime",
        "Restart": ".supervision",
        "Runtime": ".runtime",
        "SeededSystem": ".seeded",
        "Signal": ".runtime",
        "Stream": ".stream",
        "StreamStatistics": ".statistics",
        "SystemClock": ".clock",
        "SystemStatistics": ".statistics",
        "Target": ".actor",
        "Timer": ".timer",
        "Waiting": ".mailbox",
        "Workers": ".workers",
        "pause_seconds": ".backoff",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
