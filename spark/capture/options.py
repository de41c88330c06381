"""How a capture listens, whom it lets in, and how much it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from ... import config
from ...engine.options import FeedOptions, feed_options
from ...errors import ConfigError
from ..reading import reading_of_kind
from .access import check_listening

SECTION = "capture"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Raises ConfigError for what isn't safe or doesn't go together."""

    listen: str = "127.0.0.1:8815"
    """host:port; port 0 takes a free one. Another host than a loopback one needs a token."""
    token_file: Path | None = None
    """Whoever asks must send what is in this file."""
    tls_cert: Path | None = None
    """PEM file of the certificate that is shown, with `tls_key`; without both nothing is encrypted."""
    tls_key: Path | None = None
    memory_bytes: Annotated[int, Meta(ge=1 << 16)] = 64 << 20  # 64 MiB
    """Changes that are kept in memory; what comes beyond goes to disk."""
    disk_bytes: Annotated[int, Meta(ge=0)] = 4 << 30  # 4 GiB
    """Changes that are kept on disk; beyond that the source is slowed down."""
    lease_seconds: Annotated[float, Meta(gt=0)] = 120.0
    """So long after its last request a query still owns what is kept."""
    wait_seconds: Annotated[float, Meta(ge=0)] = 20.0
    """No request waits longer for changes that are still to come."""

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("capture: tls_cert and tls_key go together: give both or neither")
        check_listening(self.listen, has_token=self.token_file is not None)


def capture_options(found: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[FeedOptions, CaptureOptions]:
    """From the tables of a feed.toml, whose sinks play no part, and from what was given beside it.

    Raises ConfigError.
    """
    section = found.get(SECTION, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{SECTION}: expected a table")
    given = {key: str(v) if isinstance(v, Path) else v for key, v in flags.items() if v is not None}
    rest = {key: value for key, value in found.items() if key not in (SECTION, "sink", "until")}
    options = feed_options(rest)
    reading_of_kind(options.source_kind)
    return options, config.build(CaptureOptions, {**section, **given}, SECTION)
