"""From a region's log of prewrites, commits and rollbacks to committed changes (TiCDC puller document).

Until a region is initialised, two streams of its rows are mixed: the incremental scan and the live changes.
So a commit may be received before its prewrite. Then it waits, and a COMMITTED row of the scan replaces it if
no prewrite follows.
"""

from __future__ import annotations

from typing import Final

from ....codec.blocks import BlockBuilder
from ....codec.prewrites import Bounds
from ....codec.proto import cdcpb
from ....codec.proto.change_data import Row, Rows
from ....codec.tidb.key import decode_bytes, encode_bytes
from ....errors import InvariantViolated, Retryable, SourceError
from ....events import DELETE, PUT, Ts
from ..region import RegionState
from ..span import UPPER_BOUND, Span
from .early import Early
from .prewrites import Prewrites
from .spill import Quota

_PREWRITE: Final[int] = cdcpb.Event.PREWRITE
_COMMIT: Final[int] = cdcpb.Event.COMMIT
_ROLLBACK: Final[int] = cdcpb.Event.ROLLBACK
_COMMITTED: Final[int] = cdcpb.Event.COMMITTED
_INITIALIZED: Final[int] = cdcpb.Event.INITIALIZED
_KEYED: Final = frozenset((_PREWRITE, _COMMIT, _ROLLBACK, _COMMITTED))
"""Types of rows that have a key."""
_ROW_PUT: Final[int] = cdcpb.Event.Row.PUT
_ROW_DELETE: Final[int] = cdcpb.Event.Row.DELETE

_OPS: Final = {_ROW_PUT: PUT, _ROW_DELETE: DELETE}


class PrewriteNotMatch(Retryable):
    """A commit in an initialised region has no prewrite: the region must be requested again."""

    def __init__(self, region_id: int, key: bytes, start_ts: Ts) -> None:
        super().__init__(
            f"region {region_id} committed key {key.hex()} of the transaction at {start_ts}, "
            "but its prewrite has not come",
            wait=1.0,
        )
        self.region_id = region_id
        self.key = key
        self.start_ts = start_ts


class Matcher:
    """The matcher of one region, for one request. Used in its region worker's turns only.

    After an error it must be closed, and the region requested again.
    """

    __slots__ = ("_bounds", "_early", "_prewrites", "_quota", "region")

    def __init__(self, region: RegionState, quota: Quota) -> None:
        self.region = region
        self._quota = quota
        self._prewrites: Prewrites | None = None
        self._early: Early | None = None
        self._bounds = None if region.whole else _raw_bounds(region.span)

    def feed(self, rows: Rows, builder: BlockBuilder) -> None:
        """Put the committed changes that these rows, in order, complete into the builder.

        Marks the region as initialised when the scan is complete. Raises PrewriteNotMatch, InvariantViolated
        for a commit at or below the region's resolved ts (but not at or below the subscription's start),
        SourceError for a row of an unknown kind, StoreError; the changes of earlier rows stay in the builder.
        """
        if self._prewrites is not None:
            self._prewrites.recall(rows)
        done = 0
        while True:
            if self.region.whole or self._bounds is not None:
                done = self._waiting().match(rows, done, builder, self.region, self._bounds)
            if done == len(rows):
                break
            self._take(rows[done], builder)
            done += 1
        if self._prewrites is not None and not self._prewrites:
            self._prewrites = None
        self._quota.fit()

    def close(self) -> None:
        """Drop the region's prewrites. Idempotent."""
        for held in (self._prewrites, self._early):
            if held is not None:
                held.clear()
        self._prewrites = self._early = None

    @property
    def waiting(self) -> int:
        """Number of prewrites in memory that wait for their commit."""
        return len(self._prewrites) if self._prewrites is not None else 0

    def _take(self, row: Row, builder: BlockBuilder) -> None:
        """Process a row: the complete rules."""
        kind, op, start_ts, commit_ts, key, value, old_value, generation = row
        region = self.region
        if kind in _KEYED and not self._contains(key):
            return  # a store may send its whole region's
        if kind == _PREWRITE:
            fake = op == _ROW_PUT and not value
            self._waiting().put((start_ts, key), value, old_value, generation, fake)
        elif kind == _COMMITTED:
            if self._is_new(commit_ts):
                builder.add(commit_ts, start_ts, self._op(op), key, value, old_value, region.id)
        elif kind == _COMMIT:
            new = self._is_new(commit_ts)
            if self._match(commit_ts, start_ts, self._op(op), key, builder if new else None):
                return
            if region.initialised:
                raise PrewriteNotMatch(region.id, key, start_ts)
            self._keep_early(commit_ts, start_ts, _OPS[op], key)
        elif kind == _ROLLBACK:
            if region.initialised:
                self._waiting().take((start_ts, key))
            else:
                self._keep_early(0, start_ts, DELETE, key)
        elif kind == _INITIALIZED:
            region.initialised = True
            self._settle(builder)
        else:
            raise self._not_known(f"type {kind}")

    def _match(self, commit_ts: Ts, start_ts: Ts, op: int, key: bytes, builder: BlockBuilder | None) -> bool:
        """Take a commit's prewrite, and put its change into the builder, if any. False if the prewrite
        isn't there, or another may still follow."""
        prewrites = self._prewrites
        if prewrites is None:
            return False
        if not self.region.initialised:
            waiting = prewrites.get((start_ts, key))
            if waiting is None or not waiting[0] or waiting[2]:
                return False  # the effective one may still follow: not fake, or of another generation
        prewrite = prewrites.take((start_ts, key))
        if prewrite is None:
            return False
        if builder is not None:
            value, old_value, _ = prewrite
            builder.add(commit_ts, start_ts, op, key, value, old_value, self.region.id)
        return True

    def _settle(self, builder: BlockBuilder) -> None:
        """Finish the initialisation: match the early commits, then drop the prewrites that were rolled back.

        A commit without prewrite is dropped: the scan returned it as COMMITTED.
        """
        early, self._early = self._early, None
        if early is None:
            return
        for rows in early.read():
            for row in rows.slice(rows.find(1), len(rows)):
                new = row.commit_ts > self.region.start_ts
                self._match(row.commit_ts, row.start_ts, row.op, row.key, builder if new else None)
        if self._prewrites is not None:
            for rows in early.read():
                for row in rows.slice(0, rows.find(1)):
                    self._prewrites.take((row.start_ts, row.key))
        early.clear()

    def _keep_early(self, commit_ts: Ts, start_ts: Ts, op: int, key: bytes) -> None:
        if self._early is None:
            self._early = Early(self._quota)
        self._early.add(commit_ts, start_ts, op, key)

    def _waiting(self) -> Prewrites:
        if self._prewrites is None:
            self._prewrites = Prewrites(self._quota)
        return self._prewrites

    def _is_new(self, commit_ts: Ts) -> bool:
        """False if the commit is at or below the subscription's start.

        A store sends such a commit if its key was still locked when the region was requested: a transaction
        is committed with its primary key, the secondary keys follow. Besides, the commit ts of a 1PC or async
        commit may be below a ts that PD has given before.
        """
        if commit_ts <= self.region.start_ts:
            return False
        if commit_ts <= self.region.resolved_ts:
            raise InvariantViolated(
                f"{self.region} committed at {commit_ts}, not above its resolved ts {self.region.resolved_ts}"
            )
        return True

    def _op(self, op: int) -> int:
        if op not in _OPS:
            raise self._not_known(f"op {op}")
        return _OPS[op]

    def _not_known(self, what: str) -> SourceError:
        return SourceError(
            f"{self.region} sent a row of {what}, which is unknown: use a tidemill that supports the cluster"
        )

    def _contains(self, key: bytes) -> bool:
        if self.region.whole:
            return True
        if self._bounds is None:
            return self.region.span.contains(encode_bytes(key))
        lower, upper = self._bounds
        return lower <= key < upper


def _raw_bounds(span: Span) -> Bounds:
    """Return a span's bounds as raw keys; None if one of them isn't an encoded key."""
    try:
        return _decoded(span.start) if span.start else b"", _decoded(span.end)
    except ValueError:
        return None


def _decoded(bound: bytes) -> bytes:
    if bound == UPPER_BOUND:
        return bound  # above all raw keys too
    raw, end = decode_bytes(bound)
    if end < len(bound):
        raise ValueError(f"{bound.hex()} has bytes after the encoded key")
    return raw
