"""Messages from the loop's thread to a store's region worker, in this order for each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .backlog import Backlog
from .error_table import Reaction
from .request import Request

if TYPE_CHECKING:
    from .store_stream import StoreStream


class Registered(Struct, frozen=True, gc=False):
    """The request is about to be sent on the stream. From now on it belongs to the worker."""

    stream: StoreStream
    request: Request


class EventReceived(Struct, frozen=True, gc=False):
    """A serialised cdcpb.ChangeDataEvent; its size is subtracted from the backlog when it was processed."""

    stream: StoreStream
    data: bytes
    backlog: Backlog | None = None


class Forget(Struct, frozen=True, gc=False):
    """The request is stopped: nothing more is reported for it."""

    stream: StoreStream
    request: Request


class StreamEnded(Struct, frozen=True, gc=False):
    """The stream has ended; its requests are to be reported as lost."""

    stream: StoreStream
    action: Reaction
