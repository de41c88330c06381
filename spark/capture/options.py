"""Options of a capture: address, access and quotas."""

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
    """Options of a capture. Raises ConfigError if they are unsafe or conflict."""

    listen: str = "127.0.0.1:8815"
    """host:port; port 0 chooses a free one. A host other than loopback requires a token and TLS."""
    token_file: Path | None = None
    """File with the token that clients must send."""
    tls_cert: Path | None = None
    """PEM file of the server's certificate, with `tls_key`; without both, connections aren't encrypted."""
    tls_key: Path | None = None
    memory_bytes: Annotated[int, Meta(ge=1 << 16)] = 64 << 20  # 64 MiB
    """Maximum bytes of changes in memory; more are written to disk."""
    disk_bytes: Annotated[int, Meta(ge=0)] = 4 << 30  # 4 GiB
    """Maximum bytes of changes on disk; when it is full, reading from the source waits."""
    lease_seconds: Annotated[float, Meta(gt=0)] = 120.0
    """Time after its last request for which a query keeps its lease."""
    wait_seconds: Annotated[float, Meta(ge=0)] = 20.0
    """Maximum time that a request waits for changes that haven't arrived yet."""

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("capture: tls_cert and tls_key go together: give both or neither")
        check_listening(self.listen, has_token=self.token_file is not None, has_tls=self.tls_cert is not None)


def capture_options(found: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[FeedOptions, CaptureOptions]:
    """Return the options from the tables of a feed.toml, without its sinks, overridden by `flags`.

    Raises ConfigError.
    """
    section = found.get(SECTION, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{SECTION}: expected a table")
    given = {key: str(v) if isinstance(v, Path) else v for key, v in flags.items() if v is not None}
    rest = {key: value for key, value in found.items() if key not in (SECTION, "sink", "until")}
    options = feed_options(rest)
    options.reject_local_only("a capture")
    reading_of_kind(options.source_kind)
    return options, config.build(CaptureOptions, {**section, **given}, SECTION)
