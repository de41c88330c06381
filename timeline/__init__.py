"""Merging of several sources by their times: barriers for threads, and a queue that needs none."""

from .barrier import Barrier, Interrupted
from .barrier_group import BarrierGroup
from .entry import Entry, EntryPart
from .group import Consume, Group, GroupOptions, Merge, open_group
from .merge_queue import MergeQueue
from .queue_group import QueueGroup
from .timeline_barrier import TimelineBarrier
from .transaction_barrier import TimelineTransactionBarrier

__all__ = [
    "Barrier",
    "BarrierGroup",
    "Consume",
    "Entry",
    "EntryPart",
    "Group",
    "GroupOptions",
    "Interrupted",
    "Merge",
    "MergeQueue",
    "QueueGroup",
    "TimelineBarrier",
    "TimelineTransactionBarrier",
    "open_group",
]
