"""Which region each part of a subscription's span belongs to, so that no key is pulled twice.

The algorithm is the range lock of TiCDC's kv client. A region locks its part before it is asked for; a
newer version of a region waits until the older ones over its keys have unlocked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ...errors import InvariantViolated
from ...events import Ts
from .span import Span, intersect


class Wait:
    """A turn in the queue behind the holders of that moment."""

    __slots__ = ("_ahead", "_callback")

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._callback: Callable[[], None] | None = None

    def when_free(self, callback: Callable[[], None]) -> None:
        """Call once all of them have unlocked, or the lock was cancelled: then lock again.

        At once, if that is so already.
        """
        if self._ahead:
            self._callback = callback
        else:
            callback()

    def one_left(self) -> None:
        """A holder unlocked. Called by the lock only."""
        self._ahead -= 1
        if not self._ahead:
            callback, self._callback = self._callback, None
            if callback is not None:
                callback()


class Locked(Struct, frozen=True):
    """The keys are the region's; nothing of them is missing up to `checkpoint_ts`."""

    checkpoint_ts: Ts


class Waiting(Struct, frozen=True):
    """Older regions hold some of the keys."""

    wait: Wait


class Stale(Struct, frozen=True):
    """A region as new or newer holds some of the keys; the others are to be divided again."""

    retry_ranges: list[Span]


class Cancelled(Struct, frozen=True):
    """The subscription is over."""


Outcome: TypeAlias = Locked | Waiting | Stale | Cancelled


_FEW: Final = 8
"""Regions to look through one by one. Most tables have fewer, and there may be 100,000 of them."""


class _Holder:
    __slots__ = ("region_id", "span", "ts", "version", "waits")

    def __init__(self, span: Span, region_id: int, version: int, ts: Ts) -> None:
        self.span = span
        self.region_id = region_id
        self.version = version
        self.ts = ts
        self.waits: list[Wait] | None = None


class _Hole(Struct, gc=False):
    """Keys that no region holds, and the ts up to which they are complete."""

    span: Span
    ts: Ts


class RangeLock:
    """The parts of one span: each is held by one region or free. Belongs to one thread."""

    __slots__ = ("_by_region", "_cancelled", "_held", "_holes", "span")

    def __init__(self, span: Span, ts: Ts) -> None:
        """Everything of `span` at or below `ts` is there already."""
        self.span = span
        self._held: list[_Holder] = []  # disjoint, in key order; the holes are the rest
        self._holes: list[_Hole] = [_Hole(span, ts)]
        self._by_region: dict[int, _Holder] | None = None  # once there are many
        self._cancelled = False

    def lock(self, start: bytes, end: bytes, region_id: int, version: int) -> Outcome:
        """Try to make [start, end) the region's, at `version` of its epoch.

        Raises InvariantViolated for keys outside the lock's span.
        """
        span = Span(start, end)
        if start >= end or not self.span.covers(span):
            raise InvariantViolated(f"region {region_id} would lock {span} of {self.span}")
        if self._cancelled:
            return Cancelled()
        holders = self._holders(span, region_id)
        if not holders:
            return Locked(self._take(span, region_id, version))
        if any(holder.version >= version for holder in holders):
            return Stale(_uncovered(span, [holder.span for holder in holders]))
        return Waiting(_queue(holders))

    def unlock(self, start: bytes, end: bytes, region_id: int, version: int, ts: Ts) -> None:
        """Give back what was locked, complete up to `ts`; those who waited for it are called.

        Raises InvariantViolated if it is not what the region locked.
        """
        span = Span(start, end)
        holder = self._holder(region_id)
        if holder is None or holder.span != span or holder.version != version:
            held = "nothing" if holder is None else f"{holder.span} at version {holder.version}"
            raise InvariantViolated(
                f"region {region_id} would unlock {span} at version {version}; it holds {held}"
            )
        if self._by_region is not None:
            del self._by_region[region_id]
        del self._held[bisect_left(self._held, start, key=_start_of_holder)]
        self._free(span, ts)
        waits, holder.waits = holder.waits, None
        for wait in waits or ():
            wait.one_left()

    def advance(self, region_id: int, ts: Ts) -> None:
        """What the region holds is complete up to `ts`. Nothing happens if it holds nothing."""
        holder = self._holder(region_id)
        if holder is not None:
            holder.ts = ts

    def cancel(self) -> None:
        """Every lock from now on is Cancelled, and who waits for one is called. Unlocking goes on."""
        self._cancelled = True
        for holder in self._held:
            waits, holder.waits = holder.waits, None
            for wait in waits or ():
                wait.one_left()

    def min_ts(self) -> Ts:
        """Up to where the whole span is complete."""
        return min([*(holder.ts for holder in self._held), *(hole.ts for hole in self._holes)])

    def holes(self) -> list[Span]:
        """The parts that no region holds, in key order."""
        return [hole.span for hole in self._holes]

    def free(self) -> list[tuple[Span, Ts]]:
        """The holes, each with the ts up to which it is complete."""
        return [(hole.span, hole.ts) for hole in self._holes]

    def __len__(self) -> int:
        """Regions that hold a part."""
        return len(self._held)

    def _holder(self, region_id: int) -> _Holder | None:
        if self._by_region is not None:
            return self._by_region.get(region_id)
        return next((holder for holder in self._held if holder.region_id == region_id), None)

    def _holders(self, span: Span, region_id: int) -> list[_Holder]:
        """Whoever holds some of the keys, in key order, and the region itself wherever it is."""
        first = bisect_right(self._held, span.start, key=_start_of_holder)
        if first and self._held[first - 1].span.end > span.start:
            first -= 1
        last = bisect_left(self._held, span.end, key=_start_of_holder)
        holders = self._held[first:last]
        itself = self._holder(region_id)
        if itself is not None and itself not in holders:
            holders.append(itself)
        return holders

    def _take(self, span: Span, region_id: int, version: int) -> Ts:
        """Cut `span` out of the holes; the least ts of what it took."""
        first = bisect_right(self._holes, span.start, key=_start_of_hole) - 1
        last = bisect_left(self._holes, span.end, key=_start_of_hole)
        taken = self._holes[first:last]
        ts = min(hole.ts for hole in taken)
        left, right = taken[0], taken[-1]
        rest = []
        if left.span.start < span.start:
            rest.append(_Hole(Span(left.span.start, span.start), left.ts))
        if right.span.end > span.end:
            rest.append(_Hole(Span(span.end, right.span.end), right.ts))
        self._holes[first:last] = rest
        holder = _Holder(span, region_id, version, ts)
        self._held.insert(bisect_left(self._held, span.start, key=_start_of_holder), holder)
        if self._by_region is not None:
            self._by_region[region_id] = holder
        elif len(self._held) > _FEW:
            self._by_region = {holder.region_id: holder for holder in self._held}
        return ts

    def _free(self, span: Span, ts: Ts) -> None:
        """Make `span` a hole."""
        self._holes.insert(bisect_left(self._holes, span.start, key=_start_of_hole), _Hole(span, ts))


def _queue(holders: Sequence[_Holder]) -> Wait:
    wait = Wait(len(holders))
    for holder in holders:
        if holder.waits is None:
            holder.waits = []
        holder.waits.append(wait)
    return wait


def _uncovered(span: Span, others: Sequence[Span]) -> list[Span]:
    """The parts of `span` that none of the others, in key order, covers."""
    found = []
    start = span.start
    for other in others:
        shared = intersect(span, other)
        if shared is None:
            continue
        if start < shared.start:
            found.append(Span(start, shared.start))
        start = shared.end
    if start < span.end:
        found.append(Span(start, span.end))
    return found


def _start_of_holder(holder: _Holder) -> bytes:
    return holder.span.start


def _start_of_hole(hole: _Hole) -> bytes:
    return hole.span.start
