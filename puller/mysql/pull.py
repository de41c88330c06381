"""The way of one source: the snapshot, what was logged until then, the binlog."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

from ... import failpoint
from ...codec.mysql.layout import Layouts
from ...errors import CheckpointError
from ...events import Changes, Checkpoint, compose_ts
from ..puller import Connected, PullerStatistics, SnapshotProgress, State
from .binlog import BinlogDecoder
from .connection import Dump, binlog_end, own_server_id
from .options import MysqlOptions
from .position import CommitClock, Position

Step: TypeAlias = Changes | Connected | SnapshotProgress | None
"""None: nothing came for a moment."""
Steps: TypeAlias = Generator[Step, None, None]

IDLE_MARGIN_SECONDS = 2.0
"""How far the clock of an idle source is kept behind the source's own."""


class Pull:
    """Makes a source's changes, one step at a time. What is already made survives a lost connection."""

    def __init__(
        self,
        options: MysqlOptions,
        follows: Callable[[str, str], bool],
        layouts: Layouts,
        start: Checkpoint | None,
        anchors: Sequence[Checkpoint],
        now: Callable[[], float],
    ) -> None:
        """Raises CheckpointError if `start` has no position that can be read."""
        self.options = replace(options, server_id=options.server_id or own_server_id())
        self._follows = follows
        self._layouts = layouts
        self._now = now
        self._source = start.source if start else ""
        self._clock = CommitClock(start.ts if start else 0, anchors)
        self._decoder: BinlogDecoder | None = None
        self._state: State = "connecting"
        self._sent = start.position if start else ""
        self._bytes = 0
        self._connected_at = 0.0
        self.retries = 0
        if start is not None and start.position:
            self._start_at(Position.parse(start.position))

    def steps(self) -> Steps:
        """Endless. Raises Retryable: call it again to go on where it was; SourceError: a person must act."""
        if self._decoder is None:
            yield from self._begin()
        yield from self._follow()

    def statistics(self) -> PullerStatistics:
        decoder = self._decoder
        return PullerStatistics(
            state=self._state,
            position=self._sent,
            bytes=self._bytes,
            events=decoder.events if decoder else 0,
            row_events=decoder.row_events if decoder else 0,
            transactions=decoder.transactions if decoder else 0,
            ingress_ts=compose_ts(decoder.epoch_seconds * 1000) if decoder else 0,
            resolved_ts=self._clock.last,
            connected_at=self._connected_at,
            retries=self.retries,
        )

    def _begin(self) -> Steps:
        position, epoch_seconds = binlog_end(self.options)
        if self.options.position:
            position = Position.parse(self.options.position)
        # Sent on as the first checkpoint, so that a restart doesn't begin later.
        self._start_at(position).idle(epoch_seconds)
        yield None

    def _start_at(self, position: Position) -> BinlogDecoder:
        self._decoder = BinlogDecoder(
            position,
            self._clock,
            self._follows,
            self._layouts.number_of,
            max_bytes=self.options.max_batch_bytes,
        )
        return self._decoder

    def _follow(self, until: Position | None = None) -> Steps:
        """The binlog from the decoder's position, to `until` if that is given."""
        decoder = self._decoder
        assert decoder is not None
        decoder.stop_at(until)
        if decoder.reached:
            return
        with closing(Dump(self.options, decoder.position)) as dump:
            yield self._recognised(dump)
            skew = dump.epoch_seconds - self._now()
            try:
                while not decoder.reached:
                    payloads = dump.read()
                    decoder.feed(payloads)
                    if decoder.caught_up:
                        decoder.idle(self._now() + skew - IDLE_MARGIN_SECONDS)
                    changes = decoder.take()
                    if changes is not None:
                        failpoint.reach("binlog.batch_read")
                    yield changes
            finally:
                decoder.rewind()

    def _recognised(self, dump: Dump) -> Connected:
        source = f"mariadb server {dump.server_id}"
        if self._source and self._source != source:
            raise CheckpointError(
                f"{self.options.address} is {source!r}, but the checkpoint is of {self._source!r}: "
                "connect to that server, or remove the checkpoint to begin with a new snapshot"
            )
        self._source = source
        return Connected(source, f"MariaDB {dump.version} at {self.options.address}")
