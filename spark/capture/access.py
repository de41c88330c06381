"""Access to a capture: a token in each call's headers, required unless it listens on loopback."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from pyarrow import flight

from ...errors import ConfigError

_HEADER: Final = "authorization"
_SCHEME: Final = "Bearer "


def check_listening(listen: str, *, has_token: bool) -> None:
    """Raise ConfigError unless `listen` is host:port, with a loopback host if no token is required."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 0xFFFF:
        raise ConfigError(f'capture.listen: expected host:port as "127.0.0.1:8815", not {listen!r}')
    if not has_token and not _is_loopback(host):
        raise ConfigError(
            f"capture.listen: {listen} can be reached from outside: give a token_file, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(path: Path, option: str = "capture.token_file") -> str:
    """Return the token in the file. Raises ConfigError that names the option if there is none."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option}: {path}: {getattr(error, 'strerror', error)}") from None
    if not token or not token.isascii() or any(char.isspace() for char in token):
        raise ConfigError(f"{option}: {path}: expected one line of ASCII without blanks")
    return token


class Doorkeeper(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Rejects calls without the token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = (_SCHEME + token).encode()

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str]]) -> None:  # noqa: ARG002
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

    def connect(self, address: str) -> flight.FlightClient:
        """Return a client, without sending anything. Raises ConfigError if the address isn't host:port."""
        if ":" not in address:
            raise ConfigError(f"a capture's address is host:port, not {address!r}")
        options: dict[str, Any] = {"tls_root_certs": self.ca} if self.ca else {}
        scheme = "grpc+tls" if self.tls or self.ca else "grpc+tcp"
        return flight.FlightClient(f"{scheme}://{address}", **options)

    def call(self, seconds: float | None = None) -> flight.FlightCallOptions:
        headers = [(_HEADER.encode(), (_SCHEME + self.token).encode())] if self.token else []
        return flight.FlightCallOptions(timeout=seconds, headers=headers)
