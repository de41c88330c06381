"""The requests of a stream that get their resolved ts together."""

from __future__ import annotations

from ...events import Ts
from .request import Request


class Lane:
    """Belongs to the stream's region worker; `pending` may be popped from by its handles."""

    __slots__ = ("pending", "regions")

    def __init__(self) -> None:
        self.regions: dict[int, Request] = {}
        self.pending: dict[int, Ts] = {}
        """By region: the resolved ts that came last and has not been looked at."""
