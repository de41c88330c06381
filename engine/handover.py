"""Batches of items from the thread of a sink to the program that reads the feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pykka

from ..actors import Stream
from ..errors import TidemillError
from ..events import Item

WAITING_BATCHES: Final = 4
"""Maximum number of batches that wait for the program; beyond it the source is slowed down."""


class HandoverClosed(TidemillError):
    """The reader has stopped."""


class Handover(Stream[Sequence[Item]]):
    """A bounded queue of batches, with an end."""

    def __init__(self) -> None:
        super().__init__(WAITING_BATCHES, name="feed")

    def put(self, item: Sequence[Item]) -> None:
        """Add a batch, waiting for room. Raises HandoverClosed."""
        try:
            super().put(item)
        except pykka.ActorDeadError:
            raise HandoverClosed("the feed is being closed") from None
