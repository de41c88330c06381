"""What the loop's thread tells a store's region worker, in this order for each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .backlog import Backlog
from .error_table import Action
from .request import Request

if TYPE_CHECKING:
    from .store_stream import StoreStream


class Registered(Struct, frozen=True, gc=False):
    """The request is about to be sent on the stream; from now on it is the worker's."""

    stream: StoreStream
    request: Request


class Received(Struct, frozen=True, gc=False):
    """A cdcpb.ChangeDataEvent, as its bytes; its size is taken from the backlog when it is handled."""

    stream: StoreStream
    data: bytes
    backlog: Backlog | None = None


class Forget(Struct, frozen=True, gc=False):
    """The request is stopped: nothing is reported of it any more."""

    stream: StoreStream
    request: Request


class Ended(Struct, frozen=True, gc=False):
    """Nothing more comes on the stream; its requests are to be reported as lost."""

    stream: StoreStream
    action: Action
