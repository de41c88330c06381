"""Access to a capture: a token in each call's headers, required unless it listens on loopback."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyarrow import flight

from ...config.address import is_loopback
from ...errors import ConfigError

_HEADER: Final = "authorization"
_SCHEME: Final = "Bearer "


class Doorkeeper(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Rejects calls without the token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = (_SCHEME + token).encode()

    def start_call(self, info: object, headers: Mapping[str, Sequence[str]]) -> None:  # noqa: ARG002
        shown = headers.get(_HEADER, [""])[0]
        if not hmac.compare_digest(shown.encode(), self._token):
            raise flight.FlightUnauthenticatedError("the token is missing or isn't the capture's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A client's token, and the certificate authority that it trusts."""

    token: str = field(default="", repr=False)
    tls: bool = False
    ca: bytes = b""
    """PEM of the authority that signed the captures' certificates; empty: the system's authorities."""

    def check(self, address: str) -> None:
        """Raise ConfigError unless the address is host:port, with TLS for a token beyond loopback."""
        host, colon, _ = address.rpartition(":")
        if not colon:
            raise ConfigError(f"a capture's address is host:port, not {address!r}")
        if self.token and not (self.tls or self.ca) and not is_loopback(host):
            raise ConfigError(
                f"the token isn't sent to {address} in clear: use TLS (captureTls or captureCaFile of a "
                "reader, capture_tls or capture_ca_file of a feed.toml)"
            )

    def connect(self, address: str) -> flight.FlightClient:
        """Return a client, without sending anything. Raises ConfigError for an address as `check` does."""
        self.check(address)
        options: dict[str, object] = {"tls_root_certs": self.ca} if self.ca else {}
        scheme = "grpc+tls" if self.tls or self.ca else "grpc+tcp"
        return flight.FlightClient(f"{scheme}://{address}", **options)

    def call(self, seconds: float | None = None) -> flight.FlightCallOptions:
        headers = [(_HEADER.encode(), (_SCHEME + self.token).encode())] if self.token else []
        return flight.FlightCallOptions(timeout=seconds, headers=headers)
