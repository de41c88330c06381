"""The requests of a stream that share resolved-ts messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....codec.proto.change_data import Resolved, unpack
from ....events import Ts
from .request import Request

NOTED_BYTES: Final = 4 << 20
"""Limit for region ids kept unparsed; a store with 100,000 regions sends 300 kB five times a second."""


class RequestGroup:
    """Requests with one request id. Belongs to the stream's region worker; its shard workers may pop from
    `pending`."""

    __slots__ = ("_bytes", "_noted", "pending", "regions")

    def __init__(self) -> None:
        self.regions: dict[int, Request] = {}
        self.pending: dict[int, Ts] = {}
        """The last unprocessed resolved ts by region; complete after `settle`."""
        self._noted: list[Resolved] = []
        self._bytes = 0

    def note(self, resolved: Resolved) -> None:
        """Note a resolved ts of many regions; it is parsed when processed, since later ones replace most of
        them."""
        noted = self._noted
        if noted and noted[-1].packed == resolved.packed:
            noted[-1] = resolved
            return
        noted.append(resolved)
        self._bytes += len(resolved.packed)
        if self._bytes > NOTED_BYTES:
            self.settle()

    def drain(self) -> Iterator[tuple[int, Ts]]:
        """Yield all regions with a noted resolved ts, each once, with that ts."""
        if len(self._noted) == 1 and not self.pending:  # parsed when its turn comes: a store's ids take 4 MB
            (resolved,), self._noted, self._bytes = self._noted, [], 0
            return _each(resolved)
        self.settle()
        pending, self.pending = self.pending, {}
        return iter(pending.items())

    def settle(self) -> None:
        """Update `pending` with the notes."""
        noted, self._noted, self._bytes = self._noted, [], 0
        advanced: dict[int, Ts] = {}
        for resolved in reversed(noted):
            if len(advanced) >= len(self.regions) and advanced.keys() >= self.regions.keys():
                break  # all of them have sent a newer one
            advanced = {**dict.fromkeys(unpack(resolved.packed), resolved.ts), **advanced}
        if self.pending:
            self.pending.update(advanced)
        else:
            self.pending = advanced


def _each(resolved: Resolved) -> Iterator[tuple[int, Ts]]:
    for region_id in unpack(resolved.packed):
        yield region_id, resolved.ts
