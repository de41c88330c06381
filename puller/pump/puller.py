"""The actor that pulls one pump."""

from __future__ import annotations

import logging
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ...actors import PooledActor, Target
from ...actors.backoff import pause_seconds
from ...codec.tidb.record import (
    JobRecord,
    UnreadableRecord,
    is_fake,
    job_record,
    read_record,
    rows_change,
)
from ...errors import SourceError
from ...events import KvChange
from ...failpoint import reach
from ..puller import Connected, Retrying, SourceReport
from ..tikv.client import TikvClient
from .messages import Pause, Pulled, Resume
from .options import PumpOptions
from .progress import PumpProgress
from .stream import BinlogsArrived, Ended, PumpStream

log = logging.getLogger("tidemill.puller")

MAX_CHANGES: Final = 1024
"""Maximum number of binlogs per message, as the Collector's mailbox is bounded in messages."""


class _Reopen(Struct, frozen=True):
    """To itself: pull again after an error."""


PumpMessage: TypeAlias = BinlogsArrived | Ended | _Reopen | Pause | Resume


class PumpPuller(PooledActor[PumpMessage]):
    """Pulls a pump from the last commit ts on, and sends its binlogs to the Collector.

    After an error it pulls again, with growing pauses. Fails with SourceError for a binlog that can't be
    read, and for a pump of another cluster.
    """

    def __init__(
        self,
        client: TikvClient,
        options: PumpOptions,
        origin: int,
        progress: PumpProgress,
        collector: Target[Pulled],
        coordinator: Target[SourceReport],
        source: str,
    ) -> None:
        """Everything above `progress.last` is pulled. `origin` is the number of the pump in its changes."""
        self._client = client
        self._options = options
        self._origin = origin
        self._progress = progress
        self._collector = collector
        self._coordinator = coordinator
        self._source = source
        self._stream: PumpStream | None = None
        self._paused = False
        self._failures = 0
        self._last = progress.last

    def on_start(self) -> None:
        self._open()

    def on_stop(self) -> None:
        self._cancel()

    def on_failure(self, *_error: object) -> None:
        self._cancel()

    def on_receive(self, message: PumpMessage) -> None:
        match message:
            case BinlogsArrived(stream) if stream is self._stream:
                self._take(stream)
            case BinlogsArrived():
                pass  # of a stream that was cancelled
            case Ended(stream, error) if stream is self._stream:
                self._take(stream)
                self._stream = None
                self._ended(error)
            case Ended():
                pass
            case _Reopen():
                self._open()
            case Pause():
                self._paused = True
                self._cancel()
            case Resume(host):
                moved = host != self._progress.host
                self._progress.host = host
                if moved:
                    self._cancel()
                if self._paused or moved:
                    self._paused = False
                    self._open()
            case _:
                assert_never(message)

    # --- its stream ------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._paused or self._stream is not None:
            return
        client, options = self._client, self._options
        self._stream = stream = PumpStream(
            client.channels,
            client.pd.cluster_id,
            self._progress.host,
            self._last,
            options.compression,
            self.actor_ref,
        )
        client.loop.submit(stream.run(), f"pull {self._progress.name}")

    def _cancel(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._client.loop.call(stream.cancel)
        self._progress.connected_at = 0.0

    def _ended(self, error: Exception | None) -> None:
        progress, options = self._progress, self._options
        if isinstance(error, SourceError):
            raise error
        self._failures += 1
        progress.retries += 1
        progress.connected_at = 0.0
        pause = pause_seconds(self._failures, options.retry_seconds, options.max_retry_seconds)
        said = str(error or "the pump has ended the stream")
        self.send(self._coordinator, Retrying(said, pause, progress.name))
        self.after(pause, _Reopen())

    # --- its messages ----------------------------------------------------------------------------

    def _take(self, stream: PumpStream) -> None:
        messages = stream.take()
        if not messages:
            return
        progress = self._progress
        if not progress.connected_at:
            progress.connected_at = self.clock.now()
            if self._failures:
                self._failures = 0
                self.send(self._coordinator, Connected(self._source, progress.name, progress.name))
        for at in range(0, len(messages), MAX_CHANGES):
            self._read(messages[at : at + MAX_CHANGES])
        progress.binlogs += len(messages)
        progress.bytes += sum(map(len, messages))
        reach("pump.pulled")

    def _read(self, messages: list[bytes]) -> None:
        changes: list[KvChange] = []
        jobs: list[JobRecord] = []
        last, unsorted = self._last, 0
        least = (1 << 64) - 1
        origin = self._origin
        for data in messages:
            try:
                record = read_record(data)
                ts = record.commit_ts
                if is_fake(record):
                    pass
                elif record.ddl_job_id:
                    jobs.append(job_record(record))
                else:
                    changes.append(rows_change(record, origin))
            except ValueError as error:
                raise self._unreadable(error, last) from error
            if ts > last:
                last = ts
            else:
                unsorted += 1
            if ts < least:
                least = ts
        if unsorted:
            self._note_unsorted(least, last, unsorted)
        self._last = last
        self.send(self._collector, Pulled(self._progress.node_id, origin, changes, jobs, least, last))

    def _note_unsorted(self, least: int, last: int, unsorted: int) -> None:
        progress = self._progress
        if not progress.unsorted:
            log.warning("%s: a binlog of commit ts %d came after one of %d", progress.name, least, last)
        progress.unsorted += unsorted

    def _unreadable(self, error: ValueError, last: int) -> SourceError:
        place = error.position if isinstance(error, UnreadableRecord) else None
        where = f"at position {place[0]}:{place[1]}" if place is not None else "at an unknown position"
        return SourceError(
            f"{self._progress.name}: a binlog {where}, after commit ts {last}, can't be read: {error}."
            " Check the pump's log and version"
        )
