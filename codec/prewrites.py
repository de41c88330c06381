"""Prewrites of a region that wait for their commits: native, or in Python where that isn't in use."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from ..events import DELETE, PUT, Block
from .blocks import BlockBuilder, new_builder
from .native import library
from .proto import cdcpb
from .proto.change_data import Rows

Prewrite: TypeAlias = tuple[bytes, bytes, int]
"""The part of a prewrite that its commit needs: value, old value, generation."""

Bounds: TypeAlias = tuple[bytes, bytes] | None
"""The lowest raw key, and the lowest one above; None for all keys."""

_PREWRITE: Final[int] = cdcpb.Event.PREWRITE
_COMMIT: Final[int] = cdcpb.Event.COMMIT
_COMMITTED: Final[int] = cdcpb.Event.COMMITTED
_KEYED: Final = frozenset((_PREWRITE, _COMMIT, _COMMITTED, cdcpb.Event.ROLLBACK))
"""Types of rows that have a key."""
_ROW_PUT: Final[int] = cdcpb.Event.Row.PUT
_OPS: Final[dict[int, int]] = {_ROW_PUT: PUT, cdcpb.Event.Row.DELETE: DELETE}

ENTRY_BYTES: Final = 320
"""Bytes that a prewrite in Python takes besides its key and values: tuples, ints and the slot in a dict."""


class PrewriteTable(Protocol):
    """Prewrites by start ts and raw key. Used by one thread at a time.

    A transaction writes a key once (with pipelined DML once per generation, and the highest one counts). A
    repeated prewrite is identical, or lacks the value: then it is a heartbeat of the lock, and the first one
    is kept.
    """

    def match(
        self,
        rows: Rows,
        first: int,
        builder: BlockBuilder,
        region_id: int,
        start_ts: int,
        resolved_ts: int,
        is_initialised: bool,
        bounds: Bounds,
        /,
    ) -> int:
        """Process rows from the index `first` on, and return the index of the first one that isn't regular;
        their number if there is none.

        Prewrites are stored and committed changes above `start_ts` are put into the builder, which shares the
        prewrites' memory; rollbacks remove a prewrite. Not regular are commits and rollbacks in a region that
        isn't initialised, commits without their prewrite, those at or below `resolved_ts` but above
        `start_ts`, unknown types and ops. Without the interpreter's lock if there are many rows.
        """

    def put(
        self,
        start_ts: int,
        key: bytes,
        value: bytes,
        old_value: bytes,
        generation: int,
        is_fake: bool,
        /,
    ) -> None:
        """Store a prewrite, unless one that takes precedence is there. A fake one, a PUT without a value,
        never replaces another."""

    def get(self, start_ts: int, key: bytes, /) -> Prewrite | None: ...

    def take(self, start_ts: int, key: bytes, /) -> Prewrite | None:
        """Remove and return a prewrite."""

    def sorted(self) -> Block:
        """Return all prewrites as changes of commit ts 0, with the generation as their region."""

    def load(self, block: Block, /) -> None:
        """Store the prewrites of such a block."""

    def remove(self, block: Block, /) -> None:
        """Remove the prewrites of such a block."""

    def __len__(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Bytes of memory that the prewrites take; 0 without any."""


def new_table() -> PrewriteTable:
    return library.native.PrewriteTable() if library.in_use else PlainTable()


class PlainTable:
    """See `PrewriteTable`."""

    __slots__ = ("_entries", "bytes")

    def __init__(self) -> None:
        self._entries: dict[tuple[int, bytes], Prewrite] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def match(
        self,
        rows: Rows,
        first: int,
        builder: BlockBuilder,
        region_id: int,
        start_ts: int,
        resolved_ts: int,
        is_initialised: bool,
        bounds: Bounds,
        /,
    ) -> int:
        entries, add = self._entries, builder.add
        lower, upper = bounds if bounds is not None else (b"", None)
        for number in range(first, len(rows)):
            kind, op, began, commit_ts, key, value, old_value, generation = rows[number]
            if kind not in _KEYED:
                return number
            if upper is not None and not lower <= key < upper:
                continue
            if kind == _PREWRITE:
                if (began, key) in entries:
                    self.put(began, key, value, old_value, generation, op == _ROW_PUT and not value)
                    entries = self._entries
                else:
                    entries[began, key] = value, old_value, generation
                    self.bytes += ENTRY_BYTES + len(key) + len(value) + len(old_value)
                continue
            is_new = commit_ts > start_ts
            is_regular = op in _OPS and (not is_new or commit_ts > resolved_ts)
            if kind == _COMMITTED:
                if not is_new:
                    continue
                if not is_regular:
                    return number
                add(commit_ts, began, _OPS[op], key, value, old_value, region_id)
                continue
            if not is_initialised or (kind == _COMMIT and not is_regular):
                return number
            prewrite = entries.pop((began, key), None)
            if prewrite is None:
                if kind == _COMMIT:
                    return number
                continue
            value, old_value, _ = prewrite
            self.bytes -= ENTRY_BYTES + len(key) + len(value) + len(old_value)
            if kind == _COMMIT and is_new:
                add(commit_ts, began, _OPS[op], key, value, old_value, region_id)
        return len(rows)

    def put(
        self, start_ts: int, key: bytes, value: bytes, old_value: bytes, generation: int, is_fake: bool, /
    ) -> None:
        former = self._entries.get((start_ts, key))
        if former is not None:
            if is_fake or (generation, bool(value)) < (former[2], True):
                return
            self.take(start_ts, key)
        self._entries[start_ts, key] = value, old_value, generation
        self.bytes += ENTRY_BYTES + len(key) + len(value) + len(old_value)

    def get(self, start_ts: int, key: bytes, /) -> Prewrite | None:
        return self._entries.get((start_ts, key))

    def take(self, start_ts: int, key: bytes, /) -> Prewrite | None:
        prewrite = self._entries.pop((start_ts, key), None)
        if prewrite is not None:
            self.bytes -= ENTRY_BYTES + len(key) + len(prewrite[0]) + len(prewrite[1])
            if not self._entries:
                self._entries = {}  # a dict doesn't shrink by itself
        return prewrite

    def sorted(self) -> Block:
        builder = new_builder()
        for (start_ts, key), (value, old_value, generation) in self._entries.items():
            builder.add(0, start_ts, 0, key, value, old_value, generation)
        return builder.take()

    def load(self, block: Block, /) -> None:
        for c in block:
            self.put(c.start_ts, c.key, c.value, c.old_value, c.region_id, False)

    def remove(self, block: Block, /) -> None:
        for c in block:
            self.take(c.start_ts, c.key)
