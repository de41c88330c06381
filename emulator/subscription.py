"""One region requested on one stream."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..codec.tidb.key import encode_bytes
from ..events import Ts

if TYPE_CHECKING:
    from .connection import Connection
    from .region import Region


class SubscriptionState(IntEnum):
    WAITING = 0
    """Waits for its scan; gets no changes."""
    SCANNING = 1
    """Its snapshot is taken: it gets changes, but no resolved ts."""
    NORMAL = 2
    STOPPED = 3


class Subscription:
    """A subscription. Kept small: a store may have 100,000."""

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
        """The requested span, encoded; used only if the store filters."""
        self.old_value = old_value
        self.state = SubscriptionState.WAITING

    def wanted(self, raw: bytes) -> bool:
        """True if a key lies in the requested span."""
        key = encode_bytes(raw)
        return self.start <= key and (not self.end or key < self.end)
