"""A part of a scan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias

Pair: TypeAlias = tuple[bytes, bytes]
"""Key and value."""


async def take_page(found: AsyncIterator[Pair], rows: int, max_bytes: int) -> list[Pair]:
    """Return the next pairs: at most `rows`, of about `max_bytes` of values; none at the end."""
    pairs: list[Pair] = []
    size = 0
    async for pair in found:
        pairs.append(pair)
        size += len(pair[1])
        if len(pairs) >= rows or size >= max_bytes:
            break
    return pairs
