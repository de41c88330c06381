"""What a feed says of itself: its status, kept in a file while it runs, and what waits on what."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError, ConfigError
from ..events import Wait
from ..store.disk import lock

State: TypeAlias = Literal["starting", "normal", "warning", "stopped", "failed", "finished"]
"""warning: it goes on trying; stopped: asked to; failed: a person must act; finished: it reached its end."""


class Retry(Struct, frozen=True):
    """One thing that failed and will be tried again; times are the clock's `now()`."""

    who: str
    error: str
    at: float
    """When it is tried next."""
    since: float
    """When it failed first."""

    def sentence(self, now: float) -> str:
        return f"{self.who}: {self.error}; trying again in {self._pause(now):.1f} s"

    def wait(self, now: float) -> Wait:
        return Wait(
            str(self.who), "retry", now - self.since, reason=self.error, pause_seconds=self._pause(now)
        )

    def _pause(self, now: float) -> float:
        return max(0.0, self.at - now)


class SnapshotStatus(Struct, frozen=True):
    table: str
    """The table being read; empty once all are."""
    rows: int
    rows_estimated: int
    """By the source's own statistics: may be off by some tens of percent."""
    tables: int
    tables_done: int

    @property
    def percent(self) -> float:
        return min(100.0, 100.0 * self.rows / self.rows_estimated) if self.rows_estimated else 100.0


BackfillStage: TypeAlias = Literal["reading", "catching up", "merging", "loading"]


class BackfillProgress(Struct, frozen=True):
    stage: BackfillStage
    """`reading` chunks; `catching up`: reading what changed meanwhile; `merging` that into the chunks; and,
    where sinks are loaded, `loading`."""
    chunks: int
    """Finished, of this stage; those of earlier runs included."""
    chunks_in_all: int
    rows: int
    """Read, of all tables; while `loading` those that one sink has."""
    rows_estimated: int
    """By the source's own statistics; 0 where it has none."""
    seconds_left: float | None
    """Of this stage; None while there is nothing to tell it from."""


class SinkStatus(Struct, frozen=True):
    name: str
    target: str
    position: str
    """The source's position up to which the target has everything; empty before the first."""
    ts: int
    lag_seconds: float | None
    """The source's clock less the checkpoint's; None before the first checkpoint."""
    rows: int
    loading: bool = False
    """Its snapshot isn't whole yet."""
    state: State = "normal"
    detail: str = ""


class FeedStatus(Struct, frozen=True):
    name: str
    state: State
    detail: str
    """In a warning what failed and when it is tried again; in a failure the error."""
    pid: int
    updated: float
    """Unix seconds."""
    started: float
    source: str
    position: str
    """Up to where the source has been read."""
    rows: int
    """Row changes handed to the sinks since the start."""
    transactions: int | None
    """None: not counted."""
    rows_per_second: float
    """Over the last few seconds."""
    memory_bytes: int
    """Resident, of the whole process."""
    sorter_memory_bytes: int
    sorter_disk_bytes: int
    sinks: list[SinkStatus]
    snapshot: SnapshotStatus | None = None
    backfill: BackfillProgress | None = None
    waits: list[Wait] = []


def first_status(
    name: str, source: str, sinks: Sequence[SinkStatus], *, state: State, now: float
) -> FeedStatus:
    """Of a feed of this process that begins at `now`, in Unix seconds; nothing has happened yet."""
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
    )


class StatusFile:
    """`status.json` in a feed's data directory: written whole, so a reader never sees half of it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "status.json"
        self._lock = -1

    def claim(self) -> None:
        """From now on only this feed runs in the directory; the system lets go when a process ends.

        Raises ConfigError if another one does.
        """
        try:
            self._lock = lock(self.path.with_name("feed.lock"))
        except BlockingIOError:
            raise ConfigError(
                f"data_dir: a feed is running in {self.path.parent} already; give each one its own directory"
            ) from None

    def release(self) -> None:
        """Let another feed run in the directory. Safe to repeat."""
        held, self._lock = self._lock, -1
        if held >= 0:
            os.close(held)

    def save(self, status: FeedStatus) -> None:
        fresh = self.path.with_suffix(".tmp")
        fresh.write_bytes(msgspec.json.encode(status))
        fresh.replace(self.path)

    def load(self) -> FeedStatus:
        """The last status; "failed" when its process died without saying so.

        Raises CheckpointError when no feed has run here.
        """
        try:
            status = msgspec.json.decode(self.path.read_bytes(), type=FeedStatus)
        except OSError as error:
            raise CheckpointError(f"{self.path}: {error.strerror}: no feed has run here") from None
        except msgspec.DecodeError as error:
            raise CheckpointError(f"{self.path}: not a status file: {error}") from None
        if status.state in ("starting", "normal", "warning") and not _alive(status.pid):
            detail = f"process {status.pid} ended without stopping the feed; start it again to go on"
            return replace(status, state="failed", detail=detail, waits=[], sinks=at_rest(status.sinks))
        return status


def at_rest(sinks: Sequence[SinkStatus], state: State = "stopped") -> list[SinkStatus]:
    """Sinks that nothing is written to."""
    return [replace(sink, state=state, detail="") for sink in sinks]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def resident_bytes() -> int:
    """The memory this process holds (Linux; 0 elsewhere)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
