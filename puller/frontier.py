"""The resolved ts of a table, computed over regions that split and merge."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Protocol

from ..errors import InvariantViolated
from ..events import Ts

NEVER: Final = (1 << 64) - 1
"""The ts of the gaps between spans."""


class Bounds(Protocol):
    """A half-open range of keys."""

    @property
    def start(self) -> bytes: ...

    @property
    def end(self) -> bytes: ...


class Frontier:
    """The minimum ts over all keys of some disjoint spans (TiCDC puller document).

    Two parallel lists: the start of each segment, and its ts; the next start ends a segment. A segment takes
    about 70 bytes. Reading the minimum is one pass at C speed (3 ms over 270,000 segments), so read it once
    after a batch of `forward` calls.
    """

    __slots__ = ("_dirty", "_starts", "_ts", "_values")

    def __init__(self, spans: Sequence[Bounds], ts: Ts = 0) -> None:
        self._starts: list[bytes] = []
        self._values: list[Ts] = []
        self._ts = ts
        self._dirty = False
        for span in sorted(spans, key=lambda span: span.start):
            self._append(span, ts)

    def forward(self, span: Bounds, ts: Ts) -> None:
        """Record that everything of `span` at or below `ts` has been received.

        Raises InvariantViolated for keys outside the frontier's spans.
        """
        starts = self._starts
        first = bisect_left(starts, span.start)
        try:
            same = starts[first] == span.start and starts[first + 1] == span.end
        except IndexError:
            same = False
        if not same:
            self._cut(first, span)
            first = bisect_left(starts, span.start)
        elif self._values[first] == NEVER:
            raise _outside(span)
        self._values[first] = ts
        self._dirty = True

    @property
    def ts(self) -> Ts:
        """The minimum ts over all keys of the spans; NEVER if there are none."""
        if self._dirty:
            self._ts = min(self._values)
            self._dirty = False
        return self._ts

    def __len__(self) -> int:
        """Number of segments with a ts of their own."""
        return len(self._values) - self._values.count(NEVER)

    def _append(self, span: Bounds, ts: Ts) -> None:
        if self._starts and self._starts[-1] > span.start:
            raise ValueError(f"spans overlap at {span.start.hex()}: {self._starts[-1].hex()} is inside")
        if self._starts and self._starts[-1] == span.start:
            self._values[-1] = ts
        else:
            self._starts.append(span.start)
            self._values.append(ts)
        self._starts.append(span.end)
        self._values.append(NEVER)

    def _cut(self, first: int, span: Bounds) -> None:
        """Make `span` one segment. Neighbours that overlap it keep their ts outside of it."""
        starts, values = self._starts, self._values
        last = bisect_left(starts, span.end)
        covering = first if first < len(starts) and starts[first] == span.start else first - 1
        if span.start >= span.end or covering < 0 or last == len(starts) or NEVER in values[covering:last]:
            raise _outside(span)
        keys, rest = [span.start], [values[covering]]
        if starts[last] != span.end:
            keys.append(span.end)
            rest.append(values[last - 1])
        starts[first:last] = keys
        values[first:last] = rest


def _outside(span: Bounds) -> InvariantViolated:
    return InvariantViolated(f"[{span.start.hex()}, {span.end.hex()}) is outside of the puller's spans")
