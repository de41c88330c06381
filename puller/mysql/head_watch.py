"""How far a source's log goes, as far as is known from reading it."""

from __future__ import annotations

from ..puller import SourceHead
from .binlog import BinlogDecoder
from .options import MysqlOptions
from .retention import RetentionWatch

HEARTBEAT_GRACE_SECONDS = 1.0
"""Delay of a heartbeat after which it is no longer known that the server has nothing more."""


class HeadWatch:
    """Knowledge of the log's end: from heartbeats, and from the server's list of logs.

    Times are in Unix seconds.
    """

    def __init__(self, retention: RetentionWatch) -> None:
        self.retention = retention
        self._clock_offset: float | None = None
        self._heard_at = 0.0
        """When the last bytes came."""
        self._is_drained = False
        """The last bytes were a heartbeat: the server has nothing more."""
        self._caught_up_at: float | None = None

    def connected(self, now: float, clock_offset: float) -> None:
        """Note a connection to a server whose clock is `clock_offset` seconds ahead."""
        self._heard_at, self._clock_offset = now, clock_offset

    def disconnected(self) -> None:
        self._is_drained = False

    def heard(
        self, decoder: BinlogDecoder, received: int, options: MysqlOptions, now: float, pace: float = 1.0
    ) -> None:
        """Note that `received` bytes of the log were read, and look at the list of logs if it is time."""
        retention = self.retention
        if received:
            self._heard_at = now
            self._is_drained = decoder.caught_up
            if self._is_drained:
                self._caught_up_at = now
        if retention.is_due(now) and now - self._heard_at <= HEARTBEAT_GRACE_SECONDS:
            retention.look(options, now, pace)
            if retention.is_read_to(decoder.position):
                self._caught_up_at = now

    def head(self, decoder: BinlogDecoder | None, heartbeat_seconds: float, now: float) -> SourceHead:
        listed = self.retention.last
        if self._is_drained and now - self._heard_at <= heartbeat_seconds + HEARTBEAT_GRACE_SECONDS:
            self._caught_up_at = now
        ours = decoder.position if decoder is not None else None
        if ours is not None and (self._is_drained or listed is None or self.retention.is_read_to(ours)):
            end = str(ours.without_gtids) if ours.file else str(ours)
        else:
            end = listed.end if listed is not None else ""
        return SourceHead(
            end,
            decoder.epoch_seconds if decoder is not None and decoder.epoch_seconds else None,
            self._caught_up_at,
            self._clock_offset,
            resolution_seconds=1.0,
        )
