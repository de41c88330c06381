"""The lock over a subscription's span: each part belongs to one region, so that no key is pulled twice.

The algorithm is the range lock of TiCDC's kv client. A region locks its part before it is requested; a newer
version of a region waits until the older ones over its keys have unlocked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from ....errors import InvariantViolated
from ....events import Ts
from ..span import Span, intersect


class Holder(Protocol):
    """The holder of a part: a region at a version of its epoch."""

    @property
    def id(self) -> int: ...

    @property
    def span(self) -> Span: ...

    @property
    def version(self) -> int: ...


H = TypeVar("H", bound=Holder)


class QueuedLock:
    """A place in the queue, after the present holders."""

    __slots__ = ("_ahead", "_callback")

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._callback: Callable[[], None] | None = None

    def when_free(self, callback: Callable[[], None]) -> None:
        """Call `callback` when all of them have unlocked, or the lock was cancelled: then lock again.

        Calls it immediately if that is the case already.
        """
        if self._ahead:
            self._callback = callback
        else:
            callback()

    def one_left(self) -> None:
        """Note that a holder unlocked. Called by the lock only."""
        self._ahead -= 1
        if not self._ahead:
            callback, self._callback = self._callback, None
            if callback is not None:
                callback()


class Locked(Struct, frozen=True):
    """The region holds the keys; nothing is missing up to `checkpoint_ts`."""

    checkpoint_ts: Ts


class RangeWaits(Struct, frozen=True):
    """Older regions hold some of the keys."""

    wait: QueuedLock


class Stale(Struct, frozen=True):
    """A region of the same or a newer version holds some of the keys; the others are to be divided again."""

    retry_ranges: list[Span]


class Cancelled(Struct, frozen=True):
    """The subscription is over."""


Outcome: TypeAlias = Locked | RangeWaits | Stale | Cancelled


_FEW: Final = 8
"""Number of regions up to which a linear search is used. Most tables have fewer, and there may be 100,000
tables."""


class _Hole(Struct, gc=False):
    """Keys that no region holds, and the ts up to which they are complete."""

    span: Span
    ts: Ts


class RangeLock(Generic[H]):
    """The parts of one span: each is held by one region or free. Not thread-safe."""

    __slots__ = ("_by_region", "_cancelled", "_held", "_holes", "_waits", "span")

    def __init__(self, span: Span, ts: Ts) -> None:
        """Everything of `span` at or below `ts` has been received already."""
        self.span = span
        self._held: list[H] = []  # disjoint, in key order; the holes are the gaps between them
        self._holes: list[_Hole] = [_Hole(span, ts)]
        self._by_region: dict[int, H] | None = None  # index, used with many regions
        self._waits: dict[int, list[QueuedLock]] | None = None  # by the id of the region that is waited for
        self._cancelled = False

    def lock(self, holder: H) -> Outcome:
        """Try to lock the keys of a region's span. If Locked, it holds them until `unlock`.

        Raises InvariantViolated for keys outside the lock's span.
        """
        span = holder.span
        if span.start >= span.end or not self.span.covers(span):
            raise InvariantViolated(f"region {holder.id} would lock {span} of {self.span}")
        if self._cancelled:
            return Cancelled()
        others = self._holders(span, holder.id)
        if not others:
            return Locked(self._take(holder))
        if any(other.version >= holder.version for other in others):
            return Stale(_uncovered(span, [other.span for other in others]))
        return RangeWaits(self._queue(others))

    def unlock(self, holder: H, ts: Ts) -> None:
        """Unlock the holder's keys, complete up to `ts`, and call those that waited for it.

        Raises InvariantViolated if it holds no keys.
        """
        if not self.holds(holder):
            raise InvariantViolated(f"region {holder.id} would unlock {holder.span}, which it doesn't hold")
        if self._by_region is not None:
            del self._by_region[holder.id]
        del self._held[bisect_left(self._held, holder.span.start, key=_start)]
        self._free(holder.span, ts)
        self._left(holder)

    def holds(self, holder: H) -> bool:
        return self._holder(holder.id) is holder

    def cancel(self) -> list[H]:
        """Cancel the lock: all further locks are Cancelled, waiting callbacks are called, and every holder
        loses its keys. Return the former holders."""
        self._cancelled = True
        held, self._held, self._by_region = self._held, [], None
        for holder in held:
            self._left(holder)
        return held

    @property
    def held(self) -> list[H]:
        """The holders, in key order. This is the lock's own list: other threads must copy it."""
        return self._held

    def free(self) -> list[tuple[Span, Ts]]:
        """The holes, each with the ts up to which it is complete."""
        return [(hole.span, hole.ts) for hole in self._holes]

    def _holder(self, region_id: int) -> H | None:
        if self._by_region is not None:
            return self._by_region.get(region_id)
        return next((holder for holder in self._held if holder.id == region_id), None)

    def _holders(self, span: Span, region_id: int) -> list[H]:
        """Return the holders of some of the keys, in key order, and the region itself if it holds any
        part."""
        first = bisect_right(self._held, span.start, key=_start)
        if first and self._held[first - 1].span.end > span.start:
            first -= 1
        last = bisect_left(self._held, span.end, key=_start)
        holders = self._held[first:last]
        itself = self._holder(region_id)
        if itself is not None and itself not in holders:
            holders.append(itself)
        return holders

    def _queue(self, holders: Sequence[H]) -> QueuedLock:
        wait = QueuedLock(len(holders))
        if self._waits is None:
            self._waits = {}
        for holder in holders:
            self._waits.setdefault(holder.id, []).append(wait)
        return wait

    def _left(self, holder: H) -> None:
        """Notify those that waited for the holder."""
        if self._waits is None:
            return
        waits = self._waits.pop(holder.id, ())
        if not self._waits:
            self._waits = None
        for wait in waits:
            wait.one_left()

    def _take(self, holder: H) -> Ts:
        """Cut the holder's span out of the holes; return the least ts of the holes."""
        span = holder.span
        first = bisect_right(self._holes, span.start, key=_start) - 1
        last = bisect_left(self._holes, span.end, key=_start)
        taken = self._holes[first:last]
        ts = min(hole.ts for hole in taken)
        left, right = taken[0], taken[-1]
        rest = []
        if left.span.start < span.start:
            rest.append(_Hole(Span(left.span.start, span.start), left.ts))
        if right.span.end > span.end:
            rest.append(_Hole(Span(span.end, right.span.end), right.ts))
        self._holes[first:last] = rest
        self._held.insert(bisect_left(self._held, span.start, key=_start), holder)
        if self._by_region is not None:
            self._by_region[holder.id] = holder
        elif len(self._held) > _FEW:
            self._by_region = {holder.id: holder for holder in self._held}
        return ts

    def _free(self, span: Span, ts: Ts) -> None:
        """Make `span` a hole."""
        self._holes.insert(bisect_left(self._holes, span.start, key=_start), _Hole(span, ts))


def _uncovered(span: Span, others: Sequence[Span]) -> list[Span]:
    """Return the parts of `span` that none of the others, in key order, covers."""
    gaps = []
    start = span.start
    for other in others:
        shared = intersect(span, other)
        if shared is None:
            continue
        if start < shared.start:
            gaps.append(Span(start, shared.start))
        start = shared.end
    if start < span.end:
        gaps.append(Span(start, span.end))
    return gaps


def _start(held: Holder | _Hole) -> bytes:
    return held.span.start
