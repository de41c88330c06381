"""Options of a relay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

MIN_SEGMENT_BYTES: Final = 4 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """Durable copy of what a sink is about to apply."""

    directory: Path
    """Directory of the relay, for this sink alone."""
    segment_bytes: Annotated[int, Meta(ge=MIN_SEGMENT_BYTES)] = 64 << 20  # 64 MiB
    """A file is finished once it holds this much; a larger transaction is never cut."""
    keep_bytes: Annotated[int, Meta(ge=0)] = 0
    """Size of the finished files that are kept though the target has all that is in them, so that a target
    restored from a backup can be brought to the end again."""
