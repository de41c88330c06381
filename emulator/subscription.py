"""One region that one stream asked for."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..codec.tidb.key import encode_bytes
from ..events import Ts

if TYPE_CHECKING:
    from .connection import Connection
    from .region import Region


class State(IntEnum):
    WAITING = 0
    """For its scan; deaf."""
    SCANNING = 1
    """Its snapshot is taken: it hears changes, no resolved ts yet."""
    NORMAL = 2
    STOPPED = 3


class Subscription:
    """Small: a store may have 100,000 of them."""

    __slots__ = ("checkpoint_ts", "connection", "end", "old_value", "region", "request_id", "start", "state")

    def __init__(
        self,
        connection: Connection,
        region: Region,
        request_id: int,
        checkpoint_ts: Ts,
        span: tuple[bytes, bytes],
        old_value: bool,
    ) -> None:
        self.connection = connection
        self.region = region
        self.request_id = request_id
        self.checkpoint_ts = checkpoint_ts
        self.start, self.end = span
        """What it asked for, encoded; used only where the store filters."""
        self.old_value = old_value
        self.state = State.WAITING

    def wanted(self, raw: bytes) -> bool:
        """Whether a key lies in the span asked for."""
        at = encode_bytes(raw)
        return self.start <= at and (not self.end or at < self.end)
