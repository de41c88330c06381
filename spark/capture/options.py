"""Options of a capture: address, access and quotas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ...config.address import host_and_port, is_loopback
from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Options of `tidemill capture`. Raises ConfigError if they are unsafe or conflict."""

    listen: str = "127.0.0.1:8815"
    """host:port; port 0 chooses a free one. A host other than loopback requires a token and TLS."""
    token_file: Path | None = None
    """File with the token that clients must send."""
    tls_cert: Path | None = None
    """PEM file of the server's certificate, with `tls_key`; without both, connections aren't encrypted."""
    tls_key: Path | None = None
    """PEM file of its key."""
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
            raise ConfigError("tls_cert and tls_key go together: give both or neither")
        _check_listening(
            self.listen, has_token=self.token_file is not None, has_tls=self.tls_cert is not None
        )


def _check_listening(listen: str, *, has_token: bool, has_tls: bool) -> None:
    """Raise ConfigError unless `listen` is host:port, with a token and TLS beyond loopback."""
    host, _ = host_and_port(listen)
    if not (has_token and has_tls) and not is_loopback(host):
        needs = (
            "tls_cert and tls_key, for the token is sent in clear without them"
            if has_token
            else "a token_file"
        )
        raise ConfigError(
            f"listen: {listen} can be reached from outside: give {needs}, or listen on 127.0.0.1"
        )
