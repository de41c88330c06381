"""Status of a feed, kept in a file while it runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..codec.native.library import description
from ..errors import CheckpointError, ConfigError
from ..events import Wait
from ..sharding.status import LockStatus
from ..store.disk import is_locked, lock
from .lag import Lag, SinkHistograms
from .tables import TableStatus
from .verification import VerifyStatus, resting

if TYPE_CHECKING:
    from ..sorter import SorterOptions

State: TypeAlias = Literal["starting", "normal", "warning", "stopped", "failed", "finished"]
"""State of a feed: warning: it is retrying, has dead letters, or a target differs; stopped: on request;
failed: a user must act; finished: it reached its end."""
RUNNING: Final[Collection[State]] = ("starting", "normal", "warning")
"""States of a feed whose process runs."""


class SnapshotStatus(Struct, frozen=True):
    table: str
    """The table being read; empty once all are."""
    rows: int
    rows_estimated: int
    """Estimate by the source's statistics: may be wrong by tens of percent."""
    tables: int
    tables_done: int

    @property
    def percent(self) -> float:
        return min(100.0, 100.0 * self.rows / self.rows_estimated) if self.rows_estimated else 100.0


BackfillStage: TypeAlias = Literal["reading", "catching up", "merging", "loading"]


class BackfillProgress(Struct, frozen=True):
    stage: BackfillStage
    """`reading` chunks; `catching up`: reading later changes; `merging` them into the chunks; `loading` the
    sinks, if any."""
    chunks: int
    """Number of finished chunks of this stage, including earlier runs."""
    chunks_in_all: int
    rows: int
    """Number of rows read, over all tables; while `loading`, rows in one sink."""
    rows_estimated: int
    """Estimate by the source's statistics; 0 if it has none."""
    seconds_left: float | None
    """Estimated remaining time of this stage; None while it is unknown."""


class SinkStatus(Struct, frozen=True):
    name: str
    target: str
    position: str
    """Source position up to which the target is complete; empty before the first checkpoint."""
    ts: int
    lag_seconds: float | None
    """Source's clock minus the checkpoint's time; None before the first checkpoint."""
    rows: int
    loading: bool = False
    """True while its snapshot is incomplete."""
    state: State = "normal"
    detail: str = ""
    workers: int = 0
    """Number of connections that apply transactions in parallel; 0 if the sink has none."""
    workers_busy: int = 0
    transactions_waiting: int = 0
    """Transactions that the workers have and that aren't durable."""
    dead_letters: int = 0
    """Number of changes that the target rejected, as of the last checkpoint."""
    dead_letter_tables: dict[str, int] = {}
    """Number of them by table."""
    safe_mode: dict[str, int] = {}
    """Reasons for safe mode, each with a count; empty if it isn't active."""
    lag: Lag = Lag()
    batches: int = 0
    """Number of batches made durable since the start."""
    retries: int = 0
    """Number of batches that were rolled back and written again since the start."""
    histograms: SinkHistograms | None = None
    """None before the first pipeline."""


class Received(Struct, frozen=True):
    """Counts of a source since the start of the feed's process."""

    changes: int = 0
    """Number of changes, as the source sends them: a change of a binlog may have many rows."""
    bytes: int = 0
    """Bytes of the changes in memory."""
    log_bytes: int = 0
    """Bytes of the log that were read, of followed tables or not; 0 if the source doesn't count them."""
    retries: int = 0
    """Number of failed connections and requests that were repeated."""
    reconnects: int = 0
    """Number of connections after a failure."""


class FeedStatus(Struct, frozen=True):
    name: str
    state: State
    detail: str
    """For a warning, the failure and the time of the next attempt; for a failed feed, the error."""
    pid: int
    updated: float
    """Time of this status, in Unix seconds."""
    started: float
    source: str
    position: str
    """Position up to which the source has been read."""
    rows: int
    """Number of row changes passed to the sinks since the start."""
    transactions: int | None
    """Number of transactions; None if not counted."""
    rows_per_second: float
    """Row changes per second over the last few seconds, or since the last burst began."""
    memory_bytes: int
    """Resident memory of the whole process."""
    sorter_memory_bytes: int
    sorter_disk_bytes: int
    sinks: list[SinkStatus]
    snapshot: SnapshotStatus | None = None
    backfill: BackfillProgress | None = None
    waits: list[Wait] = []
    decoder: str = ""
    """ "native", or "python" with the reason; empty before the source is known."""
    locks: list[LockStatus] = []
    """Schema changes of merged tables that wait for shards."""
    blamed: str = ""
    """The part whose error has ended the feed: "source", "sink copy", or another; empty: not known."""
    lag: Lag = Lag()
    """Lag of the sink furthest behind."""
    idle: bool = False
    """True if the source's end was seen recently, and everything up to it is durable in all targets."""
    connected: bool = False
    """True if the source is connected."""
    head: str = ""
    """The source's end as last seen; empty before that."""
    head_time: float | None = None
    """Source's time, in Unix seconds, when its end had been reached last; None before that."""
    last_event_seconds: float | None = None
    """Seconds since a change was received last; None before the first."""
    checkpoint_moved_seconds: float | None = None
    """Seconds since the checkpoint moved of the sink for which that is longest ago; None before that."""
    log_hours_left: float | None = None
    """Hours until the source discards what comes after the lowest checkpoint, at the present rate; None if
    that isn't known, or if it keeps everything."""
    memory_quota_bytes: int = 0
    """Quota of `sorter_memory_bytes`; 0: none."""
    disk_quota_bytes: int = 0
    """Quota of `sorter_disk_bytes`; 0: none."""
    received: Received = Received()
    table_states: dict[str, int] = {}
    """Number of tables by state."""
    tables: list[TableStatus] = []
    """Tables that aren't following, at most 100, and the 20 that lag most behind their sinks."""
    verify: list[VerifyStatus] = []
    """The sinks whose targets are compared with the source; empty without the section `[verify]`."""


def first_status(
    name: str,
    source: str,
    sinks: Sequence[SinkStatus],
    *,
    state: State,
    now: float,
    sorter: SorterOptions | None = None,
) -> FeedStatus:
    """Return the initial status of a feed of this process that begins at `now`, in Unix seconds. `sorter` has
    its quotas."""
    return FeedStatus(
        name=name,
        state=state,
        detail="",
        pid=os.getpid(),
        updated=now,
        started=now,
        source=source,
        position="",
        rows=0,
        transactions=0,
        rows_per_second=0.0,
        memory_bytes=resident_bytes(),
        sorter_memory_bytes=0,
        sorter_disk_bytes=0,
        sinks=list(sinks),
        decoder=description(),
        memory_quota_bytes=sorter.memory_bytes if sorter is not None and sorter.engine != "memory" else 0,
        disk_quota_bytes=(sorter.max_disk_bytes or 0) if sorter is not None else 0,
    )


class StatusFile:
    """`status.json` in a feed's data directory; replaced atomically, so a reader never sees a part."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "status.json"
        self._lock_path = directory / "feed.lock"
        self._lock = -1

    def claim(self) -> None:
        """Lock the directory for this feed; the system unlocks it when the process ends.

        Raises ConfigError if another feed has locked it.
        """
        try:
            self._lock = lock(self._lock_path)
        except BlockingIOError:
            raise ConfigError(
                f"data_dir: a feed is running in {self.path.parent} already; give each one its own directory"
            ) from None

    def release(self) -> None:
        """Unlock the directory. Safe to repeat."""
        held, self._lock = self._lock, -1
        if held >= 0:
            os.close(held)

    def save(self, status: FeedStatus) -> None:
        fresh = self.path.with_suffix(".tmp")
        fresh.write_bytes(msgspec.json.encode(status))
        fresh.replace(self.path)

    def load(self) -> FeedStatus:
        """Return the last status; "failed" if its process died without a final status: then nothing holds
        the directory's lock.

        Raises CheckpointError when no feed has run here.
        """
        try:
            status = msgspec.json.decode(self.path.read_bytes(), type=FeedStatus)
        except OSError as error:
            raise CheckpointError(f"{self.path}: {error.strerror}: no feed has run here") from None
        except msgspec.DecodeError as error:
            raise CheckpointError(f"{self.path}: not a status file: {error}") from None
        if status.state in RUNNING and not is_locked(self._lock_path):
            detail = f"process {status.pid} ended without stopping the feed; start it again to go on"
            return replace(
                status,
                state="failed",
                detail=detail,
                waits=[],
                sinks=at_rest(status.sinks),
                verify=resting(status.verify),
            )
        return status


def at_rest(sinks: Sequence[SinkStatus], state: State = "stopped") -> list[SinkStatus]:
    """Return the statuses of sinks before anything is written to them."""
    return [replace(sink, state=state, detail="") for sink in sinks]


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes (Linux; 0 elsewhere)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
