"""The bytes that changes take in memory, measured or estimated."""

from __future__ import annotations

from typing import Final

from ..events import KvChange

_OBJECT_BYTES: Final = 208
"""Memory overhead of a change: the struct, the headers of its bytes and ints, two list slots."""
_STRIDE: Final = 13
"""An estimate samples every 13th change; a prime, so that it doesn't follow a pattern."""


def measure(changes: list[KvChange]) -> int:
    """Return the bytes that the changes take in memory; the first key's length stands for all keys."""
    each = _OBJECT_BYTES + len(changes[0].key)
    return len(changes) * each + sum([len(c.value) + len(c.old_value) for c in changes])


def estimate(changes: list[KvChange]) -> int:
    """Estimate `measure` from a sample: looking at each value would be a third of all the work."""
    if len(changes) < 4 * _STRIDE:
        return measure(changes)
    some = changes[::_STRIDE]
    sizes = [len(change.value) + len(change.old_value) for change in some]
    total = sum(sizes)
    if max(sizes) * len(sizes) > 8 * total:  # a few large ones among small: others may be between
        return measure(changes)
    return len(changes) * (_OBJECT_BYTES + len(changes[0].key) + total // len(sizes))
