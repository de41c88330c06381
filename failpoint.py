"""Named points at which a test can end the process, as kill -9 would, or be told.

`TIDEMILL_FAILPOINT=sink.committed:3` kills the process at the third pass of that point. Unarmed,
a pass costs two comparisons.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count

POINTS = (
    "snapshot.chunk_read",
    "binlog.batch_read",
    "definitions.written",
    "tikv.batch_read",
    "tikv.mounted",
    "pump.pulled",
    "pump.mounted",
    "drainer.notified",
    "drainer.accepted",
    "relay.before_sync",
    "relay.synced",
    "shard.held",
    "shard.forgotten",
    "shard.synced",
    "shard.released",
    "shard.sought",
    "shard.joined",
    "shard.reported",
    "shard.taken",
    "shard.passed",
    "shard.excused",
    "shard.forced",
    "kafka.sent",
    "kafka.before_commit",
    "kafka.committed",
    "claims.kept",
    "storage.writing",
    "storage.publishing",
    "storage.published",
    "lake.adding",
    "lake.telling",
    "copy.changing",
    "copy.part",
    "copy.committing",
    "copy.committed",
    "copy.indexed",
    "upkeep.written",
    "upkeep.committed",
    "upkeep.expired",
    "upkeep.removing",
    "merge.staged",
    "merge.committed",
    "sink.mid_batch",
    "sink.altered",
    "sink.before_commit",
    "sink.committed",
    "store.compacting",
    "renewal.stored",
    "server.before_write",
    "server.written",
    "server.intended",
    "server.started",
    "server.data_removed",
    "server.file_removed",
    "server.removed",
    "verify.found",
    "verify.repaired",
    "verify.saved",
    "tables.stored",
    "tables.kept",
    "tables.begun",
)

_name, _, _nth = os.environ.get("TIDEMILL_FAILPOINT", "").partition(":")
_passes = count(1)
if _name and _name not in POINTS:
    raise ValueError(f"TIDEMILL_FAILPOINT: no point {_name!r}; there are: {', '.join(POINTS)}")


_observer: Callable[[str], object] | None = None


def observe(observer: Callable[[str], object] | None) -> None:
    """Have each pass reported to `observer`, by the point's name; None ends that."""
    global _observer
    _observer = observer


def reach(name: str) -> None:
    """Kill the process by SIGKILL if this pass is the armed one."""
    if _observer is not None:
        _observer(name)
    if name == _name and next(_passes) == int(_nth or 1):
        os.kill(os.getpid(), signal.SIGKILL)
