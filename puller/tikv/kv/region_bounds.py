"""Region bounds, at which spans may be divided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....codec.tidb.key import decode_bytes
from ....errors import SourceError
from ..span import Span
from .region_cache import RegionCache

_REGIONS: Final = 256
"""Number of regions per request to PD."""


async def region_bounds(cache: RegionCache, spans: Iterable[Span]) -> list[list[bytes]]:
    """Return for each span the raw keys at which one of its regions ends and the next begins, from PD.

    The spans must be in key order: those that share a region cost one request. Raises Retryable, and
    SourceError for a bound that isn't a key.
    """
    bounds_of_spans = []
    known = b""  # end of the regions seen without a gap since the span's start
    for span in spans:
        bounds = [known] if span.start < known < span.end else []
        while known < span.end:
            at = Span(max(known, span.start), span.end)
            for region in await cache.load(at, _REGIONS):
                known = region.end
                bounds.append(known)
        bounds_of_spans.append([_raw(bound) for bound in bounds if bound < span.end])
    return bounds_of_spans


def _raw(bound: bytes) -> bytes:
    try:
        return decode_bytes(bound)[0]
    except ValueError as error:
        raise SourceError(f"a region ends at {bound.hex()}: not a key of TiDB") from error
