"""The states of a prefix: each commit's checkpoint and what it wrote, and the fence against a second writer.

    _tidemill/states/<epoch>-<number>-<writer>.json

The latest state counts: the highest epoch, and in it the highest number. A writer takes a new epoch at its
start, by an empty state of number 0, before it reads the latest one. So a state that an older writer saves
too late is either read by the new writer, or the older one finds the new epoch afterwards and publishes
nothing. It needs no conditional writes, only that a list shows what was written before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ...errors import CheckpointError, Retryable, SinkError
from .names import HIDDEN
from .store import Store

_FOLDER: Final = f"{HIDDEN}/states"
VERSION: Final = 1


class State(Struct, frozen=True, kw_only=True):
    """One commit."""

    version: int = VERSION
    feed: str
    sink: str
    layout: str
    format: str
    commits: int
    """Number of this commit."""
    checkpoint: str
    """Checkpoint as text; see `codec.checkpoint`."""
    definitions: dict[str, str] = {}
    """Small objects to be written before the staged ones are published: contents by name."""
    staged: dict[str, str] = {}
    """Names of the objects by their staged names."""
    marks: dict[str, str] = {}
    """Small objects to be written last."""


class _Entry(NamedTuple):
    epoch: int
    number: int
    writer: str

    @property
    def name(self) -> str:
        return f"{self.epoch:08}-{self.number:012}-{self.writer}.json"

    @property
    def path(self) -> str:
        return f"{_FOLDER}/{self.name}"


class Ledger:
    """The states of one feed's sink in a store. After `claim`, it writes as the only one, or finds out."""

    def __init__(self, store: Store, feed: str, sink: str, writer: str) -> None:
        """`writer` is different in every process."""
        self._store: Final = store
        self._feed: Final = feed
        self._sink: Final = sink
        self._writer: Final = writer
        self._epoch = 0
        self._number = 0

    def latest(self) -> State | None:
        """Return the latest state. Raises SinkError if it is another feed's, CheckpointError if damaged."""
        while True:
            written = [entry for entry in self._entries() if entry.number]
            if not written:
                return None
            latest = max(written)
            content = self._store.read(latest.path)
            if content is not None:
                return self._parsed(latest, content)

    def claim(self) -> State | None:
        """Fence off earlier writers, and return the latest state. Raises Retryable if another one claims."""
        self.latest()  # another feed isn't fenced off
        self._epoch = 1 + max([entry.epoch for entry in self._entries()], default=0)
        self._number = 0
        own = _Entry(self._epoch, 0, self._writer)
        self._store.write(own.path, b"{}")
        if self._others():
            self._store.remove(own.path)
            raise Retryable(f"{self._store.name}: another copy of feed {self._feed!r} starts at this moment")
        return self.latest()

    @property
    def epoch(self) -> int:
        return self._epoch

    def save(self, state: State) -> None:
        """Save a state: the commit. After Retryable it may have been saved, or may be later."""
        self._number += 1
        own = _Entry(self._epoch, self._number, self._writer)
        self._store.write(own.path, msgspec.json.format(msgspec.json.encode(state)))

    def check(self) -> None:
        """Raise SinkError if another writer has taken over."""
        if self._others():
            raise SinkError(
                f"{self._store.name}: another copy of feed {self._feed!r} has taken over: stop one of "
                "them, or give it a prefix of its own"
            )

    def clean(self) -> None:
        """Remove the states before the latest one."""
        for entry in self._entries():
            if entry < (self._epoch, self._number):
                self._store.remove(entry.path)

    def _others(self) -> list[_Entry]:
        """Return the states of writers that began with this one or later."""
        found = self._entries()
        return [entry for entry in found if entry.epoch >= self._epoch and entry.writer != self._writer]

    def _entries(self) -> list[_Entry]:
        found = [name.removesuffix(".json").split("-") for name in self._store.names(_FOLDER)]
        return [_Entry(int(epoch), int(number), writer) for epoch, number, writer in found]

    def _parsed(self, entry: _Entry, content: bytes) -> State:
        try:
            state = msgspec.json.decode(content, type=State)
        except msgspec.DecodeError as error:
            raise CheckpointError(f"{self._store.name}/{entry.path} is damaged: {error}") from error
        if state.version != VERSION:
            raise CheckpointError(
                f"{self._store.name}/{entry.path} has version {state.version}, which this program can't read"
            )
        if (state.feed, state.sink) != (self._feed, self._sink):
            raise SinkError(
                f"{self._store.name} belongs to sink {state.sink!r} of feed {state.feed!r}: "
                "give another prefix"
            )
        return state
