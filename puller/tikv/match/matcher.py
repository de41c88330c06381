"""From a region's log of prewrites, commits and rollbacks to committed changes (TiCDC puller document).

Until a region is initialised, two streams of its rows are mixed: the incremental scan and the live changes.
So a commit may be received before its prewrite. Then it waits, and a COMMITTED row of the scan replaces it if
no prewrite follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import attrgetter
from typing import Final

from ....codec.proto import cdcpb
from ....codec.proto.columns import Rows
from ....codec.tidb.key import decode_bytes, encode_bytes
from ....errors import InvariantViolated, Retryable, SourceError
from ....events import DELETE, PUT, KvChange, Ts
from ..region import RegionState
from ..span import UPPER_BOUND, Span
from .early import Early
from .prewrites import Entry, Prewrites
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

_value: Final = attrgetter("value")
_old_value: Final = attrgetter("old_value")
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
        self._bounds: tuple[bytes, bytes, bool] | None = None

    def feed(self, rows: Rows) -> list[KvChange]:
        """Return the committed changes that these rows, in order, complete.

        Marks the region as initialised when the scan is complete. Raises PrewriteNotMatch, InvariantViolated
        for a commit at or below the region's resolved ts (but not at or below the subscription's start),
        SourceError for a row of an unknown kind, StoreError.
        """
        if not rows.types:
            return []
        changes = self._in_columns(rows)
        if changes is None:
            changes = self._each(rows)
        if self._prewrites is not None and not self._prewrites:
            self._prewrites = None
        self._quota.fit()
        return changes

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

    def _in_columns(self, rows: Rows) -> list[KvChange] | None:
        """Do the same as _each for rows of one type, in a fifth of its time; None for other rows."""
        kind = rows.types[0]
        if rows.generations is not None or rows.types.count(kind) < len(rows):
            return None
        if kind == _COMMITTED:
            return self._committed(self._inside(rows))
        if kind == _COMMIT and self.region.initialised:
            return self._commits(rows)
        if kind == _PREWRITE and self._waiting().put_many(self._inside(rows)):
            return []
        return None

    def _committed(self, rows: Rows) -> list[KvChange]:
        if not rows.types:
            return []
        return self._changes(rows, rows.values, rows.old_values)

    def _commits(self, rows: Rows) -> list[KvChange]:
        """Match commits. Keys outside of the span have no prewrite here; they are checked only if one is
        missing."""
        waiting = self._waiting()
        first = waiting.take_first(rows)
        if first is not None:
            return self._changes(rows, *first)
        found = waiting.take_many(rows.start_ts, rows.keys)
        if not all(found):
            rows, found = self._missing(rows, found)
            if not found:
                return []
        return self._changes(rows, [*map(_value, found)], [*map(_old_value, found)])

    def _missing(self, rows: Rows, found: list[Entry | None]) -> tuple[Rows, list[Entry | None]]:
        """Return the commits that have their prewrite; the others must be outside of the span."""
        inside = self._inside(rows.pick([entry is None for entry in found]))
        if inside.keys:
            raise PrewriteNotMatch(self.region.id, inside.keys[0], inside.start_ts[0])
        return rows.pick(found), [entry for entry in found if entry is not None]

    def _changes(self, rows: Rows, values: Sequence[bytes], old_values: Sequence[bytes]) -> list[KvChange]:
        start_ts = self.region.start_ts
        least = min(rows.commit_ts)
        if least <= start_ts:
            new = [commit_ts > start_ts for commit_ts in rows.commit_ts]
            if not any(new):
                return []
            values, old_values = [*compress(values, new)], [*compress(old_values, new)]
            rows = rows.pick(new)
            least = min(rows.commit_ts)
        self._check_ts(least)
        region = repeat(self.region.id)
        ops = self._ops(rows)
        return [*map(KvChange, rows.commit_ts, rows.start_ts, ops, rows.keys, values, old_values, region)]

    def _ops(self, rows: Rows) -> Iterable[int]:
        """Return the op of each KvChange."""
        if rows.ops.count(_ROW_PUT) == len(rows.ops):
            return repeat(PUT)
        try:
            return [*map(_OPS.__getitem__, rows.ops)]
        except KeyError as error:
            raise self._not_known(f"op {error}") from None

    def _each(self, rows: Rows) -> list[KvChange]:
        """Process row by row: the complete rules."""
        rows = self._inside(rows)
        changes: list[KvChange] = []
        region = self.region
        generations = rows.generations or [0] * len(rows)
        for kind, op, start_ts, commit_ts, key, value, old_value, generation in zip(
            rows.types, rows.ops, rows.start_ts, rows.commit_ts, rows.keys, rows.values, rows.old_values,
            generations, strict=True,
        ):  # fmt: skip
            if kind == _PREWRITE:
                fake = op == _ROW_PUT and not value
                self._waiting().put((start_ts, key), value, old_value, generation, fake)
            elif kind == _COMMITTED:
                if self._is_new(commit_ts):
                    changes.append(
                        KvChange(commit_ts, start_ts, self._op(op), key, value, old_value, region.id)
                    )
            elif kind == _COMMIT:
                new = self._is_new(commit_ts)
                change = self._match(commit_ts, start_ts, self._op(op), key)
                if change is not None:
                    if new:
                        changes.append(change)
                elif region.initialised:
                    raise PrewriteNotMatch(region.id, key, start_ts)
                else:
                    self._keep_early(commit_ts, start_ts, _OPS[op], key)
            elif kind == _ROLLBACK:
                if region.initialised:
                    self._waiting().take((start_ts, key))
                else:
                    self._keep_early(0, start_ts, 0, key)
            elif kind == _INITIALIZED:
                region.initialised = True
                changes += self._settle()
            else:
                raise self._not_known(f"type {kind}")
        return changes

    def _match(self, commit_ts: Ts, start_ts: Ts, op: int, key: bytes) -> KvChange | None:
        prewrites = self._prewrites
        if prewrites is None:
            return None
        if not self.region.initialised:
            entry = prewrites.get((start_ts, key))
            if entry is None or not entry.value or entry.generation:
                return None  # the effective one may still follow: not fake, or of another generation
        entry = prewrites.take((start_ts, key))
        if entry is None:
            return None
        return KvChange(commit_ts, start_ts, op, key, entry.value, entry.old_value, self.region.id)

    def _settle(self) -> list[KvChange]:
        """Finish the initialisation: match the early commits, then drop the prewrites that were rolled back.

        A commit without prewrite is dropped: the scan returned it as COMMITTED.
        """
        early, self._early = self._early, None
        if early is None:
            return []
        changes = []
        for rows in early.read():
            for commit_ts, start_ts, op, key in rows:
                change = self._match(commit_ts, start_ts, op, key) if commit_ts else None
                if change is not None and commit_ts > self.region.start_ts:
                    changes.append(change)
        if self._prewrites is not None:
            for rows in early.read():
                for commit_ts, start_ts, _, key in rows:
                    if not commit_ts:
                        self._prewrites.take((start_ts, key))
        early.clear()
        return changes

    def _keep_early(self, commit_ts: Ts, start_ts: Ts, op: int, key: bytes) -> None:
        if self._early is None:
            self._early = Early(self._quota)
        self._early.add((commit_ts, start_ts, op, key))

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
        self._check_ts(commit_ts)
        return True

    def _check_ts(self, commit_ts: Ts) -> None:
        if commit_ts <= self.region.resolved_ts:
            raise InvariantViolated(
                f"{self.region} committed at {commit_ts}, not above its resolved ts {self.region.resolved_ts}"
            )

    def _op(self, op: int) -> int:
        if op not in _OPS:
            raise self._not_known(f"op {op}")
        return _OPS[op]

    def _not_known(self, what: str) -> SourceError:
        return SourceError(
            f"{self.region} sent a row of {what}, which is unknown: use a tidemill that supports the cluster"
        )

    def _inside(self, rows: Rows) -> Rows:
        """Return the rows without a key or with a requested key: a store may send its whole region's."""
        if self.region.whole:
            return rows
        if self._bounds is None:
            self._bounds = _raw_bounds(self.region.span)
        lower, upper, whole = self._bounds
        keys = rows.keys
        if not keys or (whole and min(keys) >= lower and max(keys) < upper):
            return rows
        contains = self.region.span.contains
        inside = [
            kind not in _KEYED or (lower <= key < upper if whole else contains(encode_bytes(key)))
            for kind, key in zip(rows.types, keys, strict=True)
        ]
        return rows.pick(inside)


def _raw_bounds(span: Span) -> tuple[bytes, bytes, bool]:
    """Return a span's bounds as raw keys, and True if both bounds are encoded keys."""
    try:
        return _decoded(span.start) if span.start else b"", _decoded(span.end), True
    except ValueError:
        return b"", b"", False


def _decoded(bound: bytes) -> bytes:
    if bound == UPPER_BOUND:
        return bound  # above all raw keys too
    raw, end = decode_bytes(bound)
    if end < len(bound):
        raise ValueError(f"{bound.hex()} has bytes after the encoded key")
    return raw
