"""The states of a prefix: each commit's checkpoint and what it wrote, and the fence against a second writer.

    <root>/states/<epoch>-<number>-<writer>.json

The latest state counts: the highest epoch, and in it the highest number. A writer takes a new epoch at its
start, by an empty state of number 0, before it reads the latest one. So a state that an older writer saves
too late is either read by the new writer, or the older one finds the new epoch afterwards and publishes
nothing. It needs no conditional writes, only that a list shows what was written before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec
from msgspec import Struct

from ...errors import CheckpointError, Retryable, SinkError
from .layout import HIDDEN
from .store import Store

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
    journal: list[str] = []
    """Names of the journal's objects, in their order."""
    marks: dict[str, str] = {}
    """Small objects to be written last."""


class _Entry(NamedTuple):
    epoch: int
    number: int
    writer: str

    @property
    def name(self) -> str:
        return f"{self.epoch:08}-{self.number:012}-{self.writer}.json"


class Ledger:
    """The states of one feed's sink in a store. After `claim`, it writes as the only one, or finds out."""

    def __init__(self, store: Store, feed: str, sink: str, root: str = HIDDEN) -> None:
        """`root` is a hidden folder of the sink's own."""
        self.feed: Final = feed
        self.sink: Final = sink
        self.root: Final = root
        self._store: Final = store
        self._writer: Final = uuid4().hex[:12]
        self._epoch = 0  # not claimed
        self._number = 0

    def latest(self) -> State | None:
        """Return the latest state. Raises SinkError if it is another feed's, CheckpointError if damaged."""
        state = _latest(self._store, self.root, self._entries)
        if state is not None and (state.feed, state.sink) != (self.feed, self.sink):
            raise SinkError(
                f"{self._store.name} belongs to sink {state.sink!r} of feed {state.feed!r}: "
                "give another prefix"
            )
        return state

    def claim(self) -> State | None:
        """Fence off earlier writers, and return the latest state. Raises Retryable if another one claims."""
        self._epoch = self._number = 0
        self.latest()  # another feed isn't fenced off
        own = _Entry(1 + max([entry.epoch for entry in self._entries()], default=0), 0, self._writer)
        self._store.write(self._path(own), b"{}")
        self._epoch = own.epoch
        if self._others():
            self._store.remove(self._path(own))
            self._epoch = 0
            raise Retryable(f"{self._store.name}: another copy of feed {self.feed!r} starts at this moment")
        return self.latest()

    @property
    def epoch(self) -> int:
        return self._epoch

    def save(self, state: State) -> None:
        """Save a state: the commit. After Retryable it may have been saved, or may be later."""
        self._number += 1
        own = _Entry(self._epoch, self._number, self._writer)
        self._store.write(self._path(own), msgspec.json.format(msgspec.json.encode(state)))

    def check(self) -> None:
        """Raise SinkError if another writer has taken over."""
        if self._others():
            raise SinkError(
                f"{self._store.name}: another copy of feed {self.feed!r} has taken over: stop one of "
                "them, or give it a prefix of its own"
            )

    def clean(self) -> None:
        """Remove the states before the latest one."""
        for entry in self._entries():
            if entry < (self._epoch, self._number):
                self._store.remove(self._path(entry))

    def _others(self) -> list[_Entry]:
        """Return the states of writers that began with this one or later."""
        return [
            entry for entry in self._entries() if entry.epoch >= self._epoch and entry.writer != self._writer
        ]

    def _path(self, entry: _Entry) -> str:
        return f"{_folder(self.root)}/{entry.name}"

    def _entries(self) -> list[_Entry]:
        """Return all entries. After `claim`, raises Retryable if neither those of this writer are listed nor
        those of a later one, who may have removed them."""
        entries = _entries(self._store, self.root)
        if self._epoch and all(entry.epoch < self._epoch for entry in entries):
            raise Retryable(f"{self._store.name}: the store doesn't list what feed {self.feed!r} has written")
        return entries


def latest_state(store: Store, root: str) -> State | None:
    """Return the latest state in a hidden folder, whoever wrote it. Raises CheckpointError if damaged."""
    return _latest(store, root, lambda: _entries(store, root))


def _latest(store: Store, root: str, entries: Callable[[], list[_Entry]]) -> State | None:
    while True:
        written = [entry for entry in entries() if entry.number]
        if not written:
            return None
        path = f"{_folder(root)}/{max(written).name}"
        content = store.read(path)
        if content is not None:
            return _parsed(f"{store.name}/{path}", content)


def _folder(root: str) -> str:
    return f"{root}/states"


def _entries(store: Store, root: str) -> list[_Entry]:
    parts = [name.removesuffix(".json").split("-") for name in store.names(_folder(root))]
    return [_Entry(int(epoch), int(number), writer) for epoch, number, writer in parts]


def _parsed(path: str, content: bytes) -> State:
    try:
        state = msgspec.json.decode(content, type=State)
    except msgspec.DecodeError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if state.version != VERSION:
        raise CheckpointError(f"{path} has version {state.version}, which this program can't read")
    return state
