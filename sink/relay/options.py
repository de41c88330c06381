"""Options of a relay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...errors import ConfigError

MIN_SEGMENT_BYTES: Final = 4 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """Durable copy of what a sink is about to apply. Raises ConfigError that names the accepted values."""

    directory: Path
    """Directory of the relay, for this sink alone."""
    segment_bytes: int = 64 << 20  # 64 MiB
    """A file is finished once it holds this much; a larger transaction is never cut."""
    keep_bytes: int = 0
    """Size of the finished files that are kept though the target has all that is in them, so that a target
    restored from a backup can be brought to the end again."""

    def __post_init__(self) -> None:
        if self.segment_bytes < MIN_SEGMENT_BYTES:
            raise ConfigError(f"segment_bytes = {self.segment_bytes}: at least {MIN_SEGMENT_BYTES}")
        if self.keep_bytes < 0:
            raise ConfigError(f"keep_bytes = {self.keep_bytes}: 0 or more")
